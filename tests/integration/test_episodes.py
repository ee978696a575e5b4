"""One verdict for one run: a failure's after-shocks, a job's deaths and their order in `show`, `ls`
and retention. And ends of healthy programs, which leave no bundle.
"""

from __future__ import annotations

import json
import sys

import pytest
from conftest import full, written

HOLDS = "held = bytearray(b'x' * (40 << 20))\n"

GROWS_BY_OBJECTS = """
held = []
while True:
    held.append([None] * 1000)
"""

KILLS = """
import multiprocessing, pathlib
def grow():
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    held = []
    while True:
        held.append(bytearray(b"x" * (1 << 20)))
for _ in range(10):
    worker = multiprocessing.get_context("fork").Process(target=grow)
    worker.start()
    worker.join()
"""

POOL = """
import multiprocessing
def hold(_):
    held = bytearray(b"x" * (40 << 20))
    return len(held)
def keep(_):
    global kept
    kept = bytearray(b"x" * (40 << 20))
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.map(keep, range(4))
"""


def script(tmp_path, text: str, name: str = "job.py") -> str:
    path = written(tmp_path / name, text)
    return str(path)


def by_bundle(oomrec) -> dict[str, dict]:
    return {row["bundle"]: row for row in oomrec.json("ls")["bundles"]}


def test_a_memory_error_is_one_bundle(oomrec, tmp_path):
    """The traceback of a Python at its limit asks for memory, too."""
    run = oomrec(
        "run", "--limit-as", "300M", "--", sys.executable, script(tmp_path, GROWS_BY_OBJECTS)
    )
    assert run.exit_code == 1, str(run)
    assert run.stderr.count("was refused") == 1
    shown = oomrec.json("show", run.only_bundle())
    assert shown["outcome"] == "exited 1" and shown["verdict"]["code"] == "address_space_limit"
    aftershocks = shown["request"]["aftershocks"]
    assert aftershocks["count"] > 0 and aftershocks["last_after_ms"] < 10_000
    words = "was refused afterwards" if aftershocks["count"] == 1 else "were refused afterwards"
    assert words in oomrec("show").stdout


TWO_REQUESTS = """
import time
def first(): bytearray(1 << 50)
def second(): bytearray(SIZE)
for request in (first, second):
    try: request()
    except MemoryError: time.sleep(PAUSE)
"""


@pytest.mark.parametrize(
    "size, pause_s, bundles",
    [("1 << 51", 1.5, 2), ("1 << 49", 1.5, 1), ("1 << 51", 0, 1)],
)
def test_a_large_request_a_while_later_is_no_aftershock(preload, tmp_path, size, pause_s, bundles):
    """The program wants so much again: it has dealt with the first failure."""
    text = TWO_REQUESTS.replace("SIZE", size).replace("PAUSE", str(pause_s))
    run = preload(sys.executable, script(tmp_path, text))
    assert run.exit_code == 0 and len(run.bundles()) == bundles, str(run)


GOES_ON = """
import sys, time
held = [bytearray(80 << 20)] if FIRST else []
try: bytearray(FIRST or 1 << 50)
except MemoryError: pass
held.clear()
time.sleep(PAUSE)
grow = []
for _ in range(GROWTH): grow.append(bytearray(b"x" * (1 << 20)))
bytearray(LAST)
"""


@pytest.mark.parametrize(
    "pause_s, limit",
    [(0, "--limit"), (1.5, "--limit-as"), full(1.5, "--limit"), full(0, "--limit-as")],
)
@pytest.mark.parametrize("first", [0, 400 << 20], ids=["impossible", "at the limit"])
def test_a_failure_after_a_handled_one(oomrec, tmp_path, first, limit, pause_s):
    """The program has gone on since: what it dies of has a bundle of its own, from that moment."""
    text = GOES_ON.replace("FIRST", str(first)).replace("PAUSE", str(pause_s))
    text = text.replace("GROWTH", "100_000").replace("LAST", "0")
    run = oomrec("run", limit, "400M", "--", sys.executable, script(tmp_path, text))
    assert run.exit_code == 1 and len(run.bundles()) == 2, str(run)
    shown = oomrec.json("show")
    assert shown["outcome"] == "exited 1" and shown["request"]["size"] <= 2 << 20, shown
    assert shown["holders"][0]["bytes"] > 200 << 20
    assert oomrec.json("show", run.bundles()[0])["outcome"] == "recovered"


IN_THREADS = """
import threading, time
def work():
    held = []
    try:
        while True: held.append(bytearray(b"x" * (1 << 20)))
    except MemoryError: time.sleep(0.3)
workers = [threading.Thread(target=work) for _ in range(6)]
for worker in workers: worker.start()
for worker in workers: worker.join()
def grow():
    held = []
    while True: held.append(bytearray(b"y" * (300 << 10)))
grow()
"""


def test_a_failure_after_those_of_threads(oomrec, tmp_path):
    """Six threads fail at the same moment, for one reason. What the program dies of is another."""
    run = oomrec("run", "--limit", "300M", "--", sys.executable, script(tmp_path, IN_THREADS))
    assert run.exit_code == 1 and len(run.bundles()) == 2, str(run)
    shown = oomrec.json("show")
    assert shown["outcome"] == "exited 1" and "grow" in str(shown["holders"][0]["stack"])


@pytest.mark.parametrize("growth", [0, 12])
def test_what_the_handling_of_a_failure_takes_is_no_growth(oomrec, tmp_path, growth):
    text = GOES_ON.replace("FIRST", "0").replace("PAUSE", "0")
    text = text.replace("GROWTH", str(growth)).replace("LAST", "1 << 49")
    run = oomrec("run", "--limit", "400M", "--", sys.executable, script(tmp_path, text))
    assert run.exit_code == 1 and len(run.bundles()) == 1, str(run)
    assert oomrec.json("show")["outcome"] == "exited 1"


def test_independent_jobs_are_separate_episodes(oomrec, tmp_path):
    for size in (60, 61):
        oomrec("run", "--", sys.executable, "-c", f"bytearray(1 << {size})")
    rows = list(by_bundle(oomrec).values())
    assert [row["episode_role"] for row in rows] == ["root", "root"]
    assert oomrec.json("show")["bundle"] == rows[0]["bundle"]


@pytest.mark.needs_cgroup_write
def test_ten_kills_leave_kills(oomrec, tmp_path, cgroup, calm_machine):
    """Each is an episode with its warning. Retention keeps the newest kills, and no warning."""
    group = cgroup("150M")
    run = oomrec(
        "run", "--", sys.executable, script(tmp_path, KILLS), preexec_fn=group.enter, timeout=300
    )
    assert run.exit_code == 0 and group.kills() == 10, str(run)
    verdicts = [
        json.loads((bundle / "manifest.json").read_text())["verdict"] for bundle in run.bundles()
    ]
    assert verdicts == ["cgroup_oom_kill"] * 5


@pytest.mark.needs_cgroup_write
def test_the_warning_before_a_kill_is_folded(oomrec, victim, cgroup, calm_machine):
    group = cgroup("64M")
    run = oomrec("run", "--", victim("grows"), preexec_fn=group.enter, input="go on\n")
    assert group.kills() == 1, str(run)
    rows = by_bundle(oomrec)
    roles = {row["verdict"]: row["episode_role"] for row in rows.values()}
    assert roles == {"near_limit": "warning", "cgroup_oom_kill": "root"}
    assert len({row["episode"] for row in rows.values()}) == 1
    lines = oomrec("ls").stdout.splitlines()
    assert (
        "cgroup_oom_kill" in lines[1] and lines[3].startswith("  + ") and "near_limit" in lines[3]
    )
    shown = oomrec.json("show")
    assert shown["verdict"]["code"] == "cgroup_oom_kill"
    assert [row["role"] for row in shown["episode"]["bundles"]] == ["root", "warning"]
    assert "other bundles of the same episode" in oomrec("show").stdout


HEALTHY = {
    "broken pipe": "import signal, sys\n"
    "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
    "while True: sys.stdout.write('y\\n' * 1000)\n",
    "Ctrl-C": "import os, signal\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.kill(os.getpid(), signal.SIGINT)\n",
    "exit past the hooks": "import ctypes, time\n"
    "time.sleep(0.3)\n"
    "ctypes.CDLL(None).syscall(231, 0)\n",
}


@pytest.mark.parametrize("way", ["run", "bare"])
@pytest.mark.parametrize("end", HEALTHY)
def test_a_healthy_end_leaves_no_bundle(oomrec, preload, tmp_path, end, way):
    command = f"{sys.executable} {script(tmp_path, HOLDS + HEALTHY[end])} | head -1"
    run = oomrec("run", "--", "sh", "-c", command) if way == "run" else preload("sh", "-c", command)
    recovered = oomrec("recover")
    assert run.bundles() == [], str(run)
    # Nobody saw the end: it stays until somebody asks (`recover --unknown`).
    unseen = "unknown exit status was left" in recovered.stdout
    assert len(list(preload.session_dir.rglob("*.session"))) == unseen


@pytest.mark.parametrize("way", ["run", "bare"])
def test_a_pool_that_ends_its_workers_leaves_no_bundle(oomrec, preload, tmp_path, way):
    words = [sys.executable, script(tmp_path, POOL)]
    run = oomrec("run", "--", *words) if way == "run" else preload(*words)
    oomrec("recover")
    assert run.exit_code == 0 and run.bundles() == [], str(run)


def test_a_program_that_was_killed_by_hand_leaves_one(oomrec, tmp_path):
    code = HOLDS + "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    run = oomrec("run", "--", sys.executable, "-c", code)
    assert oomrec.json("show", run.only_bundle())["verdict"]["code"] == "killed_externally"
