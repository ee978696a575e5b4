"""`oomrec export --format row`: rows of real deaths, and whether their signatures tell causes apart."""

import itertools
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Runner, rounds
from python_programs import CUDA
from pythons import find_python
from schemas import problems

SOURCES = Path(__file__).parent / "signatures"
PYTHON_CAUSES = [
    "cache",
    "queue",
    "rows",
    "closure",
    "recursion",
    "pictures",
    "thumbnails",
    "giant",
]
CPP_CAUSES = ["index", "log", "chain", "results"]
C_CAUSES = ["jobs", "table"]
MOST_BYTES = 16 * 1024
SECRET = "hunter2-5f0b"
KEEP_ALL = {"OOMREC_MAX_DUMPS": "1000", "OOMREC_MAX_TOTAL_MB": "1000"}
VARIABLES = {
    "OTEL_SERVICE_NAME": "shop",
    "OTEL_RESOURCE_ATTRIBUTES": f"service.version=1.8,k8s.pod.name=shop%2D0,api.token={SECRET}",
    "SHOP_PASSWORD": SECRET,
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Keeps 900 MiB on the second device and 600 MiB on the first, which then has none left for it.
ON_TWO_GPUS = f"""{CUDA}
def prepare(): allocate(900)
def keep(): allocate(600)
def ask(): return allocate(450)
use(1)
prepare()
use(0)
keep()
raise SystemExit(ask())
"""


def rows_of(run) -> list[dict]:
    """The rows of an export; each one is checked against the schema and the bound."""
    rows = []
    for line in run.stdout.splitlines():
        assert len(line) < MOST_BYTES
        rows.append(json.loads(line))
        found = problems("row", rows[-1])
        assert not found, found[:3]
    return rows


def compiled(compiler: str, source: Path, program: Path, *flags: str) -> Path:
    subprocess.run([compiler, "-g", *flags, "-o", program, source, "-pthread"], check=True)
    return program


class Set:
    """Programs in a directory of their own for each variant; every run leaves one bundle."""

    def __init__(self, directory: Path, library: Path):
        self.directory = directory
        self.runner = Runner(directory, [], {"LD_PRELOAD": str(library), **KEEP_ALL})
        self.runs = 0

    def run(self, cause: str, words: list, cwd: Path, limit: str = "64M") -> None:
        labels = f"cause={cause},attempt=3"
        env = {**VARIABLES, "OOMREC_LABELS": labels, "OOMREC_LIMIT": limit}
        run = self.runner(*words, cwd=cwd, env=env)
        assert run.exit_code != 0, str(run)
        self.runs += 1

    def checkout(self, name: str, shifted: int) -> Path:
        """A copy of the sources, each `shifted` lines further down."""
        directory = self.directory / name
        directory.mkdir(parents=True)
        for source in SOURCES.iterdir():
            lines = ("#\n" if source.suffix == ".py" else "//\n") * shifted
            (directory / source.name).write_text(lines + source.read_text())
        return directory


@pytest.fixture(scope="module")
def labelled(tmp_path_factory, build_dir, library):
    """Deaths of known causes: the rows, with the cause as a label; the bundles; the command."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    deaths = Set(tmp_path_factory.mktemp("deaths"), library)
    base = deaths.checkout("src/shop", 0)
    other = deaths.checkout("elsewhere/checkout-2/shop", 9)
    pythons = list(dict.fromkeys(filter(None, map(find_python, ("3.11", "3.8", "3.13"))))) or [
        "python3"
    ]
    first_of_each = [PYTHON_CAUSES[0], CPP_CAUSES[0], C_CAUSES[0]]
    every_variant = [first_of_each, PYTHON_CAUSES + CPP_CAUSES + C_CAUSES][rounds(0, 1)]
    for cause in PYTHON_CAUSES:
        deaths.run(cause, [pythons[0], "-S", "service.py", cause, SECRET], base)
        deaths.run(cause, [pythons[-1], "-S", "service.py", cause], other, "96M")
        if cause in every_variant:
            deaths.run(cause, [pythons[0], "-S", "-m", "service", cause], other)
        if cause in every_variant and cause != "giant":
            deaths.run(
                cause, [pythons[0], "-S", base / "service.py", cause, "killed"], deaths.directory
            )
    builds = [
        (compiled("g++", base / "engine.cpp", base / "engine", "-O2"), base),
        (compiled("g++", other / "engine.cpp", other / "engine_fast", "-O3"), other),
    ]
    c_builds = [
        (compiled("gcc", base / "spool.c", base / "spool", "-O2"), base),
        (compiled("gcc", other / "spool.c", other / "spool_fast", "-O3"), other),
    ]
    for causes, (slow, fast) in ((CPP_CAUSES, builds), (C_CAUSES, c_builds)):
        for cause in causes:
            deaths.run(cause, [slow[0], cause], slow[1])
            deaths.run(cause, [fast[0], cause, "killed"], fast[1])
            if cause in every_variant:
                deaths.run(cause, [slow[0], cause, "killed"], deaths.directory)
                deaths.run(cause, [fast[0], cause], fast[1], "96M")

    command = Runner(deaths.directory, [str(build_dir / "oomrec")], KEEP_ALL)
    for _ in range(9):
        if command("recover", "--unknown").exit_code == 1:  # nothing is left
            break
    run = command("export", "--format", "row", deaths.runner.dump_dir)
    assert run.exit_code == 0 and run.stderr == "", str(run)
    rows = rows_of(run)
    bundles = sorted(deaths.runner.dump_dir.glob("oom_*"))
    assert len(rows) == len(bundles) == deaths.runs
    yield rows, bundles, command
    deaths.runner.end_all()


def same_pairs(names: list) -> set:
    """The pairs of places with the same name."""
    return {
        pair
        for pair in itertools.combinations(range(len(names)), 2)
        if names[pair[0]] == names[pair[1]]
    }


def check_that_a_signature_is_a_cause(rows):
    truth = same_pairs([row["labels"]["cause"] for row in rows])
    found = same_pairs([row["signature"] for row in rows])
    groups = Counter((row["labels"]["cause"], row["signature"]) for row in rows)
    assert len(truth & found) >= 0.99 * len(found), groups
    assert len(truth & found) >= 0.95 * len(truth), groups


def check_that_a_signature_follows_from_its_row(rows):
    """Bytes by path, and a giant request like a holder: no more is needed."""
    for row in rows:
        sums = Counter()
        for holder in row["holders"]:
            weight = holder["resident_bytes"]
            sums[holder["sig"]] += holder["bytes"] if weight is None else weight
        whole = sum(sums.values())
        if row["cause"] == "giant_request":
            assert row["request"]["size"] > row["limit_bytes"] / 4
            continue
        del sums[None]
        (largest, bytes), *_ = sums.most_common()
        assert row["signature"] == largest and row["signature_version"] == 2
        assert row["top_share"] <= bytes / whole + 1e-5
        assert row["signature_coarse"] == largest.split(" <- ")[0]


def check_that_a_row_says_where_and_how(rows):
    for row in rows:
        assert (row["service"], row["release"], row["pod"]) == ("shop", "1.8", "shop-0")
        assert row["attempt"] == 3 and set(row["labels"]) == {"cause"}
        assert row["kind"] == "death" and row["episode_role"] == "root"
        assert row["episode_id"] == row["death_id"]
        assert row["need_bytes"] >= row["peak_bytes"] >= row["rss_bytes"] > 0
        assert row["need_is_bound"]
        assert len(row["timeline_ms"]) == len(row["timeline_rss"]) == len(row["timeline_live"]) > 0
        assert row["timeline_ms"] == sorted(row["timeline_ms"])
        if row["trigger"] == "soft_limit":
            assert row["used_bytes"] <= row["limit_bytes"]
            assert row["need_bytes"] >= row["used_bytes"] + row["request"]["size"]
    assert len({row["death_id"] for row in rows}) == len(rows)


def check_that_a_row_tells_no_secret(rows):
    for row in rows:
        text = json.dumps(row)
        assert not [word for word in (SECRET, "checkout-2") if word in text]
        for holder in row["holders"]:
            assert all(
                frame["file"] is None or frame["file"].count("/") < 2 for frame in holder["frames"]
            )


def check_that_a_redacted_bundle_is_the_same_death(rows, bundles, command, tmp_path):
    by_id = {row["death_id"]: row for row in rows}
    assert command("redact", bundles[0], "-o", tmp_path / "shared").exit_code == 0
    (row,) = rows_of(command("export", "--format", "row", tmp_path / "shared"))
    original = by_id[row["death_id"]]
    assert row["signature"] == original["signature"]
    for key in ("sig", "bytes", "resident_bytes", "space"):
        assert [h[key] for h in row["holders"]] == [h[key] for h in original["holders"]]
    assert row["service"] is None and row["host"] is None


def check_that_show_has_the_same_signature(rows, bundles, command):
    shown = command.json("show", bundles[-1])["signature"]
    (row,) = rows_of(command("export", "--format", "row", bundles[-1]))
    assert row in rows
    assert (shown["key"], shown["title"]) == (row["signature"], row["title"])
    assert f"signature {row['title'][:60]}" in command("show", bundles[-1]).stdout


def check_that_ls_has_the_same_signatures(rows, bundles, command):
    listed = command.json("ls", bundles[0].parent)["bundles"]
    assert Counter(each["signature"] for each in listed) == Counter(
        row["signature"] for row in rows
    )


def check_that_rows_can_be_renewed(rows, command, tmp_path):
    """As if an older release had written them: what is in a row suffices for all of the signature."""
    names = ("signature", "signature_coarse", "signature_also", "title", "top_share", "cause")
    older = [{**row, "signature_version": 0, "signature": "?", "title": "?"} for row in rows]
    (tmp_path / "older.jsonl").write_text("".join(json.dumps(row) + "\n" for row in older))
    renewed = rows_of(command("export", "--format", "row", tmp_path / "older.jsonl"))
    for row, again in zip(rows, renewed):
        assert [again[name] for name in names] == [row[name] for name in names]
        assert again["signature_alias"] == "?" and again["holders"] == row["holders"]
        assert again.keys() == row.keys()


def check_that_a_broken_bundle_costs_its_own_row(bundles, command, tmp_path):
    for number, bundle in enumerate(bundles[:3]):
        shutil.copytree(bundle, tmp_path / "dumps" / bundle.name)
        if number == 1:
            (tmp_path / "dumps" / bundle.name / "recording.oomrec").write_bytes(b"OOMREC")
    run = command("export", "--format", "row", tmp_path / "dumps")
    assert run.exit_code == 1 and len(rows_of(run)) == 2
    assert run.stderr.startswith("oomrec: left out: ") and run.stderr.count("\n") == 1
    alone = command("export", "--format", "row", tmp_path / "dumps" / bundles[1].name)
    assert alone.exit_code == 2 and alone.stdout == ""


def test_rows_of_known_causes(labelled, tmp_path):
    """In one test: workers of a parallel run would each make the set."""
    rows, bundles, command = labelled
    check_that_a_signature_is_a_cause(rows)
    check_that_a_signature_follows_from_its_row(rows)
    check_that_a_row_says_where_and_how(rows)
    check_that_a_row_tells_no_secret(rows)
    check_that_a_redacted_bundle_is_the_same_death(rows, bundles, command, tmp_path)
    check_that_show_has_the_same_signature(rows, bundles, command)
    check_that_ls_has_the_same_signatures(rows, bundles, command)
    check_that_rows_can_be_renewed(rows, command, tmp_path)
    check_that_a_broken_bundle_costs_its_own_row(bundles, command, tmp_path)


def test_a_row_is_bounded(oomrec, preload, tmp_path):
    """10,000 holders with long names and deep stacks."""
    names = [f"{'x' * 150}_{number}_ä" for number in range(40)]
    program = "import sys\nsys.setrecursionlimit(10000)\nkept = []\n"
    for name, inner in zip(names, names[1:] + ["end"]):
        program += f"def {name}(): {inner}()\n"
    program += "def end(): kept.append(bytearray(20000))\n"
    program += "for line in range(3000): exec('\\n' * line + names[line % 40] + '()')\n"
    program += "bytearray(1 << 40)\n"
    (tmp_path / "deep.py").write_text("names = " + repr(names) + "\n" + program)
    labels = ",".join(f"{'k' * 40}{number}={'ö' * 60}" for number in range(40))
    env = {"OOMREC_LIMIT": "1G", "OOMREC_LABELS": labels}
    bundle = preload("python3", "-S", "deep.py", env=env).only_bundle()
    (row,) = rows_of(oomrec("export", "--format", "row", bundle))
    assert row["holders"][0]["sig"] and row["signature"]


def test_many_small_stacks_of_one_function_are_its_memory(oomrec, preload, tmp_path):
    """None of its 2,000 callers has much of it."""
    program = "kept = []\ndef keep(): kept.append(bytearray(20000))\n"
    program += "".join(f"def call_{number}(): keep()\n" for number in range(2000))
    program += "for number in range(2000): globals()[f'call_{number}']()\n"
    program += "bytearray(1 << 26)\n"
    (tmp_path / "many.py").write_text(program)
    env = {"OOMREC_LIMIT": "90M", "OOMREC_MODE": "exact"}
    bundle = preload("python3", "-S", "many.py", env=env).only_bundle()
    (row,) = rows_of(oomrec("export", "--format", "row", bundle))
    (keep,) = [holder for holder in row["holders"] if holder["sig"] == "many.py:keep"]
    assert keep["bytes"] >= 2000 * 20000 and [f["function"] for f in keep["frames"]][-1] == "keep"


def test_a_row_takes_no_options_of_stacks(oomrec, preload):
    bundle = preload("python3", "-S", "-c", "bytearray(1 << 60)").only_bundle()
    for words in (["--frames", "native"], ["--at", "end"], ["--space", "heap"]):
        run = oomrec("export", "--format", "row", *words, bundle)
        assert run.exit_code == 2 and f"{words[0]} does not apply to the format row" in run.stderr
    assert oomrec("export", "--format", "csv", bundle, bundle).exit_code == 2


def test_a_failure_on_a_gpu_is_about_that_gpu(oomrec, build_dir, tmp_path):
    """The other one's memory, and the host's, do not count."""
    oomrec.environment["LD_LIBRARY_PATH"] = str(build_dir / "tests" / "fake_gpu")
    (tmp_path / "train.py").write_text(ON_TWO_GPUS)
    bundle = oomrec("run", "--", "python3", "-S", "train.py").only_bundle()
    (row,) = rows_of(oomrec("export", "--format", "row", bundle))
    assert row["signature"] == "train.py:allocate <- train.py:keep"
    assert {holder["device"] for holder in row["holders"]} == {"cuda:0"}
    assert sum(holder["bytes"] for holder in row["holders"]) == 600 << 20
    assert row["limit_kind"] == "device" and row["request"]["size"] == 450 << 20
    assert row["need_bytes"] == row["used_bytes"] + row["request"]["size"]
    assert {gpu["device"]: gpu["held"] >> 20 for gpu in row["gpu"]} == {
        "cuda:1": 900,
        "cuda:0": 600,
    }
