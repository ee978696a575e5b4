"""A bundle's files lie in it. What stands in their place (a link, a FIFO, a device) is neither followed nor read.

One door opens them all: ForeignPath::in (tools/base/foreign_file.h).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from command_lines import reading_lines
from conftest import SOURCE

RECORDING = "recording.oomrec"
# The others of docs/bundle-format.md, and those that other commands add.
OTHERS = [
    "manifest.json",
    "metadata.json",
    "events.json",
    "environment.json",
    "symbols.json",
    "processes.json",
    "objects.json",
    "torch_snapshot.pickle",
    "gpu_processes.json",
    "telemetry.json",
]
SECRET = "c4n4ry-of-another-file"


def link_out(path: Path) -> None:
    """To a file that would be read well: it has the right content, and a secret in it."""
    outside = path.parent.parent.parent / "outside"
    outside.mkdir(exist_ok=True)
    shutil.move(path, outside / path.name)
    path.symlink_to(outside / path.name)


def link_to_zero(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def unix_socket(path: Path) -> None:
    path.unlink()
    before = os.getcwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(before)


def device(path: Path) -> None:
    path.unlink()
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no permission to make a device")


KINDS = [link_out, link_to_zero, fifo, directory, unix_socket, device]
WORDS = {link_out: "is a symbolic link", link_to_zero: "is a symbolic link"}


@pytest.fixture
def bundle(oomrec):
    """A bundle with every file, each of which says the secret where a command shows it."""
    run = oomrec("run", "--limit", "128M", "--", "python3", "-c", "kept = bytearray(1 << 30)")
    path = run.only_bundle()
    metadata = json.loads((path / "metadata.json").read_text())
    metadata["exception_message"] = metadata["exception_type"] = SECRET
    environment = json.loads((path / "environment.json").read_text())
    environment["argv"] = [SECRET]
    processes = json.loads((path / "processes.json").read_text())
    processes["processes"] += [{**processes["processes"][0], "program": SECRET, "pid": 7}]
    objects = {"objects": [{"type": SECRET, "bytes": 1, "shape": [], "referrers": []}], "count": 1}
    for name, value in {
        "metadata.json": metadata,
        "environment.json": environment,
        "processes.json": processes,
        "objects.json": objects,
        "gpu_processes.json": {"devices": []},
        "telemetry.json": [{"context": SECRET}],
    }.items():
        (path / name).write_text(json.dumps(value))
    (path / "torch_snapshot.pickle").write_bytes(b"\x80\x02N.")
    assert {entry.name for entry in path.iterdir()} == {RECORDING, *OTHERS}
    return path


@pytest.fixture
def run(oomrec):
    """Runs the command, which must not wait: a FIFO would block it, /dev/zero would fill the memory."""

    def run(*words):
        result = oomrec(*words)
        assert result.exit_code in (0, 1, 2), str(result)
        assert SECRET not in result.stdout + result.stderr, str(result)
        return result

    return run


def test_regular_files_are_read(oomrec, bundle, tmp_path):
    """The control: what the other tests do not find is here, also through a link to the bundle."""
    (tmp_path / "latest").symlink_to(bundle)
    shown = oomrec.json("show", tmp_path / "latest")
    assert shown["objects"]["objects"][0]["type"] == SECRET
    assert SECRET in [row["program"] for row in shown["processes"]]
    assert SECRET in json.dumps(shown["exception"])
    assert shown["torch_snapshot"].endswith("torch_snapshot.pickle")
    assert not [note for note in shown["notes"] if "is not a file" in note or "link" in note]
    assert oomrec("report", "-o", "page.html", bundle).exit_code == 0
    assert oomrec("redact", "-o", "shared", bundle).exit_code == 0
    names = {path.name for path in (tmp_path / "shared").iterdir()}
    assert {"events.json", "telemetry.json", "environment.json"} <= names


@pytest.mark.parametrize("kind", KINDS)
def test_each_other_file_is_left_out_with_a_note(run, bundle, kind):
    """Each alone: the rest is shown."""
    for name in OTHERS:
        shutil.copytree(bundle, one := bundle.parent / f"oom_{name.partition('.')[0]}")
        for left in OTHERS:  # their secrets would hide one that leaks
            if left != name and left not in ("manifest.json", "events.json", "symbols.json"):
                (one / left).unlink()
        kind(one / name)
        shown = run("show", "--json", one)
        assert shown.exit_code == 0, str(shown)
        notes = [note for note in shown.json()["notes"] if note.startswith(name)]
        assert len(notes) == 1 and WORDS.get(kind, "is not a file") in notes[0], (name, notes)
        assert shown.json()["holders"]
        shutil.rmtree(one)


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_reads_what_is_left(run, oomrec, bundle, kind, tmp_path):
    for name in OTHERS:
        kind(bundle / name)
    for command, words in reading_lines(oomrec, bundle):
        result = run(command, *words)
        assert result.exit_code == 0 or command == "ls", str(result)
    assert run("report", "-o", "page.html", bundle).exit_code == 0
    assert SECRET not in (tmp_path / "page.html").read_text()
    assert run("redact", "-o", "shared", bundle).exit_code == 0
    shared = {path.name: path.read_bytes() for path in (tmp_path / "shared").iterdir()}
    assert set(shared) == {RECORDING, "metadata.json", "symbols.json", "redacted.json"}
    assert not [name for name, text in shared.items() if SECRET.encode() in text]
    run("merge", "-o", "job", bundle)
    run("recover")


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_reads_another_recording(run, oomrec, bundle, kind):
    kind(bundle / RECORDING)
    for command, words in reading_lines(oomrec, bundle):
        result = run(command, *words)
        if command in ("ls", "info"):
            continue
        assert result.exit_code == 2, str(result)
        assert WORDS.get(kind, "is not a recording") in result.stderr or kind is unix_socket, str(
            result
        )
    run("ls", bundle.parent)
    run("recover")


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_of_a_job(run, oomrec, bundle, kind, tmp_path):
    (bundle / "metadata.json").write_text("{}")  # its secret would be in the job's
    for name in ("environment.json", "processes.json", "objects.json", "telemetry.json"):
        (bundle / name).unlink()
    assert oomrec("merge", "-o", "job", bundle).exit_code == 0
    job = tmp_path / "inner" / "more" / "job"
    shutil.copytree(tmp_path / "job", job)
    ranks = json.loads((job / "ranks.json").read_text())
    ranks["job_id"] = SECRET
    (job / "ranks.json").write_text(json.dumps(ranks))
    kind(job / "ranks.json")
    shown = run("show", "--json", job)
    note = f"ranks.json {WORDS.get(kind, 'is not a file')}: the ranks are unknown"
    assert shown.exit_code == 0 and note in shown.json()["notes"], str(shown)


def test_ranks_behind_a_link_are_no_part_of_a_job(run, oomrec, preload, victim, tmp_path):
    for rank in range(2):
        preload(victim("naive_malloc"), env={"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2})
    assert oomrec("merge", "-o", "job", oomrec.dump_dir).exit_code == 0
    assert oomrec("merge", "-o", "again", tmp_path / "job").exit_code == 0
    shutil.move(tmp_path / "job" / "ranks", tmp_path / "elsewhere")
    (tmp_path / "job" / "ranks").symlink_to(tmp_path / "elsewhere")
    assert run("merge", "-o", "third", tmp_path / "job").exit_code != 0
    assert not (tmp_path / "third").exists()


def test_no_command_waits_inside_open(oomrec, bundle, build_dir):
    """No call opens a path in the bundle beside the door: each has O_NOFOLLOW and O_NONBLOCK."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    for command, words in reading_lines(oomrec, bundle):
        traced = subprocess.run(
            ["strace", "-f", "-y", "-e", "trace=open,openat,openat2", build_dir / "oomrec"]
            + [command, *map(str, words)],
            env=oomrec.environment,
            cwd=bundle.parent.parent,
            capture_output=True,
            text=True,
        )
        opened = [
            line
            for line in traced.stderr.splitlines()
            if f"{bundle}" in line and "O_DIRECTORY" not in line
        ]
        assert opened
        for line in opened:
            assert "O_NOFOLLOW" in line and "O_NONBLOCK" in line, (command, line)


def test_files_of_bundles_pass_one_function():
    """No path to a file of a bundle is put together and opened beside the door."""
    together = re.compile(
        r'(?:bundle|directory|path)\w*(?:\.\w+)* / (?:k\w*Name|kFile|"\w+\.(?:json|pickle)")'
    )
    allowed = {
        # Writes into a directory that it has just made, or asks whether the file exists.
        "tools/bundles/ranks/job.cpp",
        "tools/bundles/ranks/merged.cpp",
        "tools/bundles/redact/bundle.cpp",
        "tools/bundles/store/bundles.cpp",
        "tools/bundles/store/source.cpp",
        "tools/bundles/opening/open.cpp",
        "tools/bundles/store/process_tree.cpp",
        "tools/findings/diagnose/diagnosis.cpp",
        "tools/processes/gpus/gpu_processes.cpp",
        "tools/service/metrics/textfile.cpp",  # not a bundle
        "tools/service/ship/shipper.cpp",
    }
    found = {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "tools").rglob("*.cpp")
        if together.search(path.read_text())
    }
    assert found <= allowed, found - allowed
