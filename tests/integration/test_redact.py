"""`oomrec redact` and `report --redact` remove machine and user, and keep everything else."""

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from report_page import Page
from schemas import check

PROGRAM = """\
import ctypes, os, sys, threading
lib = ctypes.CDLL(os.environ["LD_PRELOAD"])
lib.oomrec_context_push(b"customer Grendel")
kept = []
def make_batch():
    return bytearray(8 << 20)
def train():
    while True:
        kept.append(make_batch())
thread = threading.Thread(target=train)
thread.start()
thread.join()
lib.oomrec_context_push(b"inside of it")
kept.append(make_batch() if len(kept) < 3 else bytearray(100_000))
lib.oomrec_dump(b"for the eyes of Hrothgar")
"""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SECRETS = ["Grendel", "Hrothgar", "beowulf", "mead-hall", "--golden=ring", "sesame"]


@pytest.fixture
def bundles(oomrec, tmp_path):
    """Two bundles, of a failure and of a request, by a program of user beowulf."""
    home = tmp_path / "home" / "beowulf" / "mead-hall"
    home.mkdir(parents=True)
    (home / "train.py").write_text(PROGRAM)
    run = oomrec(
        "run", "--mode", "exact", "--limit", "96M", "--", "python3", "train.py", "--golden=ring",
        cwd=home, env={"PYTHONPATH": home, "OOMREC_NOTE": "sesame"},
    )  # fmt: skip
    found = run.bundles()
    assert len(found) == 2, str(run)
    return found


def secrets(bundle) -> list[str]:
    """Words of a bundle that its redacted copy must not have."""
    environment = json.loads((bundle / "environment.json").read_text())
    cgroup = (environment["cgroup"] or {}).get("path")
    boot_id = BOOT_ID.read_text().strip()
    found = [
        *SECRETS,
        environment["cwd"],
        os.path.dirname(environment["cwd"]),
        boot_id,
        boot_id.replace("-", ""),
        *(value for value in environment["environment"].values() if "/" in value),
    ]
    if len(socket.gethostname()) >= 3:
        found.append(socket.gethostname())
    return found + ([cgroup] if cgroup and len(cgroup) > 1 else [])


def has_word(content: bytes, word: bytes) -> bool:
    at = content.find(word)
    while at >= 0:
        around = content[max(at - 1, 0) : at] + content[at + len(word) : at + len(word) + 1]
        if not re.search(rb"\w", around):
            return True
        at = content.find(word, at + 1)
    return False


def leaks(content: bytes, words: list[str]) -> list[str]:
    """The secrets found as whole words: a host may be called 'vm'."""
    return [word for word in words if has_word(content, word.encode())]


def test_no_trace_of_machine_and_user_remains(oomrec, bundles, tmp_path):
    for number, bundle in enumerate(bundles):
        words = secrets(bundle)
        whole = b"".join(path.read_bytes() for path in bundle.iterdir())
        assert set(SECRETS) - {"Hrothgar"} <= set(leaks(whole, words)), (
            "what is to be left out is there"
        )

        redacted = tmp_path / f"redacted-{number}"
        result = oomrec.json("redact", bundle, "-o", redacted)
        check("redact", result)
        assert result["bundle"] == str(redacted)
        names = sorted(path.name for path in redacted.iterdir())
        assert {path.name for path in bundle.iterdir()} | {"redacted.json"} == set(names)
        for path in redacted.iterdir():
            assert leaks(path.read_bytes(), words) == [], path.name
            if path.suffix == ".json":
                check(path.stem, json.loads(path.read_text()))
        boot_id = bytes.fromhex(BOOT_ID.read_text().strip().replace("-", ""))
        assert boot_id in (bundle / "recording.oomrec").read_bytes()
        assert boot_id not in (redacted / "recording.oomrec").read_bytes()
        manifest = json.loads((redacted / "manifest.json").read_text())
        assert sorted(manifest["files"]) == names

        page = Page(oomrec("report", "--redact", bundle, "-o", "-").stdout)
        assert page.json["meta"]["redacted"] is True
        assert leaks(page.inflated, words) == []
        template = page.html.replace(page.json["meta"]["title"], "")
        assert leaks(template.encode(), SECRETS) == []


def test_a_row_has_names_only(oomrec, bundles):
    """Of what a redacted bundle must not have, a row has the host, a file's last directory and the program's own label."""
    for bundle in bundles:
        run = oomrec("export", "--format", "row", bundle)
        row = json.loads(run.stdout)
        label = row.pop("label")
        assert label is None or "Grendel" in label or "inside" in label
        del row["host"]
        assert set(leaks(json.dumps(row).encode(), secrets(bundle))) <= {"mead-hall"}


def test_a_redacted_bundle_reads_like_the_original(oomrec, bundles, tmp_path):
    bundle = bundles[0]
    oomrec("redact", bundle, "-o", "redacted")
    before, after = oomrec.json("show", bundle), oomrec.json("show", tmp_path / "redacted")
    check("show", after)
    for key in ("trigger", "outcome", "verdict", "limit", "spaces", "crash", "child"):
        assert after[key] == before[key], key
    assert after["process"]["argv"] == [] and after["process"]["cwd"] is None
    assert [row["bytes"] for row in after["holders"]] == [row["bytes"] for row in before["holders"]]

    def named(frames):  # the outermost is the program's label, replaced by a number
        assert frames[-1]["function"].startswith("[") and frames[-1]["module"] is None
        return [(frame["kind"], frame["function"], frame["line"]) for frame in frames[:-1]]

    assert named(after["request"]["stack"]) == named(before["request"]["stack"])
    files = {frame["file"] for frame in after["request"]["stack"] if frame["kind"] == "python"}
    assert "train.py" in files and "/lib/python3.11/threading.py" in files or len(files) > 1
    for command in (["stats"], ["tree"], ["tree", "--json"], ["stats", "--json"]):
        whole, redacted = (oomrec(*command, path) for path in (bundle, tmp_path / "redacted"))
        assert redacted.exit_code == 0
        assert redacted.stdout.count("make_batch") == whole.stdout.count("make_batch") > 0

    again = oomrec("redact", bundle, "-o", "redacted")
    assert again.exit_code == 2 and "File exists" in again.stderr
    assert oomrec("redact", bundle).stdout == f"{tmp_path}/{bundle.name}-redacted\n"


def test_labels_stay_distinct_without_their_text(oomrec, bundles, tmp_path):
    page = Page(oomrec("report", bundles[1], "-o", "-").stdout)
    assert {"", "customer Grendel", "customer Grendel / inside of it"} == set(page.json["labels"])
    redacted = Page(oomrec("report", "--redact", bundles[1], "-o", "-").stdout)
    assert set(redacted.json["labels"]) == {"", "1", "1 / 2"}
    assert len(redacted["row_node"]) == len(page["row_node"])


def test_redaction_of_a_recording_alone(oomrec, preload, tmp_path):
    """A session without a bundle."""
    preload("python3", "-c", "import os\nkept = bytearray(40 << 20)\nos.kill(os.getpid(), 9)",
            env={"OOMREC_MODE": "exact"})  # fmt: skip
    (session,) = preload.session_dir.rglob("*.session")
    oomrec("redact", session, "-o", "redacted", exits=0)
    before, after = oomrec.json("show", session), oomrec.json("show", tmp_path / "redacted")
    for key in ("outcome", "verdict", "spaces", "request"):
        assert after[key] == before[key], key
    assert leaks((tmp_path / "redacted" / "recording.oomrec").read_bytes(), [str(tmp_path)]) == []


def test_a_hostile_recording_is_redacted_harmlessly(oomrec, build_dir, tmp_path):
    """Names with terminal escapes, markup and invalid UTF-8 are read like any others."""
    generator = build_dir / "tests" / "unit" / "tools" / "hostile_recording"
    subprocess.run([generator, tmp_path / "recording.oomrec"], check=True)
    run = oomrec("redact", "recording.oomrec", "-o", "a\x1b[31m<script>")
    assert run.exit_code == 0 and "\x1b" not in run.stdout + run.stderr
    (made,) = (path for path in tmp_path.iterdir() if path.name.startswith("a\x1b"))
    for path in made.glob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    shown = oomrec("show", made)
    assert shown.exit_code == 0 and "\x1b" not in shown.stdout
    page = Page(oomrec("report", made, "-o", "-").stdout)
    assert len(page["row_node"]) > 0
    assert "<script>alert" not in page.html and "<img src=x" not in page.html
