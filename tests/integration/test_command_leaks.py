"""oomrec leaks: programs with known leaks, running and as bundles; exit codes for CI."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from report_page import Page
from schemas import check
from sizes import MOST_ROUNDED

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "leaks"))
import cases  # noqa: E402

SECONDS = 4
# scripts/bench --only leaks runs all of them, in both modes.
QUICK = [
    ("fast_leak", "exact"),
    ("endless_buffer", "sampled"),
    ("batches_in_a_list", "sampled"),
    ("results_of_threads", "exact"),
    ("sawtooth", "sampled"),
    ("cache_that_levels_off", "exact"),
    ("window", "sampled"),
    ("imports", "exact"),
]


def test_leaking_and_healthy_programs_are_distinguished(oomrec, build_dir):
    by_name = {case.name: case for case in cases.CASES}

    def run(name, mode):
        return cases.run_case(build_dir, by_name[name], mode, SECONDS, oomrec.environment)

    with ThreadPoolExecutor(len(QUICK)) as pool:
        judged = list(pool.map(lambda row: run(*row), QUICK))

    for one in judged:
        check("leaks", one.result)
        reported = [(leak["growth_bytes"], leak["stack"][:3]) for leak in one.result["leaks"]]
        assert one.as_labelled, (one.case.name, one.mode, reported)
        assert one.result["detected"] == bool(one.case.culprit)


LEAKS = """\
import os, sys, time
kept = []
def keep():
    kept.append(bytearray(300_000))
for i in range(int(sys.argv[1])):
    keep()
    time.sleep(0.02)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def leaking(oomrec, tmp_path):
    """leaking(120) is the pid of a running process that has leaked 120 blocks."""
    (tmp_path / "leaks.py").write_text(LEAKS)
    started = []

    def start(blocks):
        words = ["run", "--quiet", "--mode", "exact", "--", sys.executable, "leaks.py", blocks]
        process = oomrec.start(*words, stdin=-1)
        started.append(process)
        return int(process.stdout.readline())

    return start


def test_the_report_of_a_leak(oomrec, leaking):
    pid = leaking(120)

    result = oomrec.json("leaks", pid)

    check("leaks", result)
    assert result["detected"] and result["checkpoints"] >= 8
    (leak,) = result["leaks"]
    assert 100 * 300_000 < leak["live_bytes"] <= 121 * (300_000 + MOST_ROUNDED)
    assert 20e6 < leak["growth_bytes"] <= leak["live_bytes"]
    assert leak["bytes_per_second"] * leak["window_seconds"] == pytest.approx(
        leak["growth_bytes"], rel=0.5
    )
    assert leak["r_squared"] > 0.8 and leak["survivor_share"] > 0.95 and leak["confidence"] > 0.6
    assert leak["oldest_seconds"] >= 0 and leak["space"] == "heap" and leak["device"] is None
    python = [frame for frame in leak["stack"] if frame["kind"] == "python"]
    assert (python[0]["function"], python[0]["line"]) == ("keep", 4)
    assert result["memory_increase_mb"] == pytest.approx(leak["growth_bytes"] / 2**20, rel=0.01)
    assert result["severity"] in ("medium", "high", "critical")
    assert result["suggestions"] == [leak["suggestion"]] and "leaks.py:4 keep" in leak["suggestion"]
    assert (
        result["limit"]["name"] in ("RAM", "cgroup") and result["limit"]["reached_in_seconds"] > 0
    )
    assert [row["pid"] for row in result["processes"]] == [pid]

    page = oomrec("leaks", pid)
    assert page.exit_code == 0 and max(map(len, page.stdout.splitlines())) <= 100
    assert page.stdout.startswith("1 leak: ") and "leaks.py:4 keep" in page.stdout
    assert "is reached in about" in page.stdout and "R²" in page.stdout


def test_exit_codes_for_ci(oomrec, leaking):
    pid = leaking(80)

    assert oomrec("leaks", pid).exit_code == 0
    assert oomrec("leaks", "--fail", pid).exit_code == 1
    assert oomrec("leaks", "--fail-above", "1G", pid).exit_code == 0
    above = oomrec("leaks", "--json", "--fail-above", "1M", pid)
    assert above.exit_code == 1 and above.json()["detected"]
    assert above.stderr.startswith("oomrec leaks: ")
    assert " leaked, more than --fail-above 1.0 MiB\n" in above.stderr
    unclear = oomrec("leaks", "--fail-above", "lots", pid)
    assert unclear.exit_code == 2 and "invalid value 'lots' for --fail-above" in unclear.stderr


def test_too_little_history(oomrec, leaking):
    pid = leaking(3)

    result = oomrec.json("leaks", pid)
    check("leaks", result)
    assert not result["detected"] and result["severity"] == "none" and result["leaks"] == []
    assert result["checkpoints"] < result["checkpoints_needed"]
    page = oomrec("leaks", "--fail", pid)
    assert page.exit_code == 0 and page.stdout.startswith("too early to tell\n")


def test_a_bundle_gives_the_same_leaks_as_its_process(oomrec, leaking, tmp_path):
    pid = leaking(100)
    result = oomrec.json("leaks", pid)

    bundle = oomrec.json("dump", pid)["bundle"]
    os.kill(pid, signal.SIGKILL)
    of_bundle = oomrec.json("leaks", bundle)

    check("leaks", of_bundle)
    # Estimates are scaled so that they add up to the heap's total of the moment.
    assert [leak["live_bytes"] for leak in of_bundle["leaks"]] == [
        pytest.approx(leak["live_bytes"], rel=1e-3) for leak in result["leaks"]
    ]
    assert of_bundle["processes"][0]["bundle"] == Path(bundle).name


def without_offsets(value):
    """Frames stand for lines: the offset is that of the first instruction seen on the line."""
    if isinstance(value, list):
        return [without_offsets(member) for member in value]
    if isinstance(value, dict):
        return {key: without_offsets(row) for key, row in value.items() if key != "offset"}
    return value


def test_the_report_agrees_with_leaks_and_fragmentation(oomrec, leaking):
    bundle = oomrec.json("dump", leaking(100))["bundle"]

    report = Page(oomrec("report", "-o", "-", bundle).stdout).json

    result = oomrec.json("leaks", bundle)
    assert result["detected"] and without_offsets(report["leaks"]) == without_offsets(result)
    assert report["fragmentation"] == oomrec.json("fragmentation", bundle)


RANKS = """\
import os, sys, time
rank = int(os.environ["RANK"])
kept = []
def keep():
    kept.append(bytearray(400_000))
until = time.monotonic() + 3
while time.monotonic() < until:
    block = bytearray(400_000)
    if rank == 1:
        keep()
    time.sleep(0.02)
def meet(place):
    open(f"{place}{rank}", "w").close()
    while not all(os.path.exists(f"{place}{other}") for other in range(2)): time.sleep(0.01)
meet("before")
try:
    kept.append(bytearray(1 << 40))
finally:
    meet("after")
"""
PARENT = """\
import os, subprocess, sys
workers = [subprocess.Popen([sys.executable, "rank.py"],
                            env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"})
           for rank in range(2)]
for worker in workers:
    worker.wait()
"""


def test_the_rank_that_leaks_is_named(oomrec, tmp_path):
    """Each rank dies of too large a request. Both bundles list both ranks."""
    (tmp_path / "rank.py").write_text(RANKS)
    (tmp_path / "parent.py").write_text(PARENT)
    run = oomrec("run", "--quiet", "--mode", "exact", "--", sys.executable, "parent.py")

    bundles = run.bundles_for("allocation_failed")
    assert len(bundles) == 2, str(run)
    for bundle in bundles:
        result = oomrec.json("leaks", bundle)
        check("leaks", result)
        leaking = {row["rank"]: row["detected"] for row in result["processes"]}
        assert leaking == {"0": False, "1": True}
    assert "\nprocesses, this one first\n" in oomrec("leaks", bundles[0]).stdout


ENDS = """
import sys, time
kept = []
def keep(size):
    kept.append(bytearray(b"x" * size))
if sys.argv[1] == "loads":
    for _ in range(30): keep(1_000_000)
for step in range(120):
    if sys.argv[1] == "leaks": keep(300_000)
    batch = [bytearray(b"y" * 2_000_000) for _ in range(5)]
    time.sleep(0.02)
"""


@pytest.mark.parametrize("way, leaks", [("leaks", 1), ("loads", 0), ("works", 0)])
def test_what_the_exit_freed_has_leaked(oomrec, tmp_path, way, leaks):
    """The bundle is written when the interpreter has freed what it could."""
    (tmp_path / "ends.py").write_text(ENDS)
    run = oomrec("run", "--dump-at-exit", "--", sys.executable, tmp_path / "ends.py", way)
    result = oomrec.json("leaks", run.only_bundle())
    check("leaks", result)
    assert len(result["leaks"]) == leaks, result["leaks"]
    assert "until the process freed most and ended" in oomrec("leaks", run.only_bundle()).stdout
    if leaks:
        leak = result["leaks"][0]
        assert 20 << 20 < leak["growth_bytes"] < 37 << 20 and 90 <= leak["live_count"] <= 120
        assert leak["oldest_seconds"] is None
        assert "keep" in {frame["function"] for frame in leak["stack"]}
