"""Workers that died of memory and the parents that ended because of it: a DataLoader,
multiprocessing, a prefork server. And workers that ended for other reasons.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import full, written
from python_programs import line_of
from watching import wait_for
from ways import WAYS

pytestmark = pytest.mark.usefixtures("without_warning", "calm_machine")
MIB = 1 << 20
FATAL = ("cgroup_oom_kill", "killed_near_limit")


def by_verdict(run) -> dict[str, Path]:
    """Bundles by verdict, one each, without those caused by a busy machine."""
    found = {}
    for bundle in run.bundles():
        manifest = json.loads((bundle / "manifest.json").read_text())
        code = manifest["verdict"]
        if manifest["reason"] == "pressure":
            continue
        assert code not in found, run.bundles()
        found[code] = bundle
    return found


def python_lines(row: dict) -> list:
    """Of a stack without Python: itself."""
    stack = row["stack"]
    lines = [(f["function"], f["file"], f["line"]) for f in stack if f["kind"] == "python"]
    return lines or stack


def assert_parent_names_worker(oomrec, run, where: str) -> None:
    """The parent's bundle names the worker, its memory and the line. The worker has a bundle, too."""
    bundles = by_verdict(run)
    parent_bundle = bundles.pop("child_killed")
    bundles.pop("near_limit", None)  # if there was time for one before the kill
    assert len(bundles) == 1 and bundles.keys() <= set(FATAL), bundles
    ((code, worker_bundle),) = bundles.items()
    # The parent's is newer, but only a consequence: `show` opens the cause, `ls` folds the rest.
    cause = oomrec.json("show")
    assert cause["bundle"] == str(worker_bundle)
    assert (cause["episode"]["role"], cause["episode"]["job_outcome"]) == ("root", "exited 1")
    assert "its job ended with exit status 1" in oomrec("show").stdout
    roles = {row["bundle"]: row["episode_role"] for row in oomrec.json("ls")["bundles"]}
    assert roles[str(parent_bundle)] == "consequence" and roles[str(worker_bundle)] == "root"
    parent = oomrec.json("show", parent_bundle)
    worker = oomrec.json("show", "--top", "1000000", worker_bundle)  # a line's small holders, too
    child = parent["child"]
    assert child["pid"] == worker["process"]["pid"] and child["verdict"] == code
    assert parent_bundle.parent / child["bundle"] == worker_bundle
    assert worker["process"]["ppid"] == parent["process"]["pid"] and worker["child"] is None
    assert (parent["trigger"], parent["outcome"]) == ("killed", "exited 1")

    own = [row for row in worker["holders"] if row["stack"][-1]["function"] != INHERITED]
    # What a line of Python holds through several functions is one holder.
    key = "bytes" if own[0]["resident_bytes"] is None else "resident_bytes"
    of_line = sum(row[key] for row in own if python_lines(row) == python_lines(own[0]))
    assert child["largest_bytes"] == of_line >= 0.9 * sum(row[key] for row in own)
    assert child["held_bytes"] >= child["largest_bytes"] > 16 * MIB
    assert where in child["where"]
    verdict = parent["verdict"]
    assert f"ended with exit status 1 after its worker {child['pid']} " in verdict["summary"]
    assert any(line.endswith(f"bundle: {child['bundle']}") for line in verdict["evidence"])
    assert any(where in line for line in verdict["evidence"])
    stored = json.loads((parent_bundle / "metadata.json").read_text())
    assert (stored["verdict"], stored["child"]) == (verdict, child)


INHERITED = "[inherited from the parent process]"


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_torch
@pytest.mark.parametrize("way", ["run", *map(full, WAYS[1:])])
def test_a_data_loader_worker(oomrec, recorded, victim, cgroup, way):
    script = victim("python/loader_grows.py")
    group = cgroup("1G")
    run = recorded(way, "python3", script, preexec_fn=group.enter_exempt, timeout=180)
    assert run.exit_code == 1 and "is killed by signal: Killed" in run.stderr, str(run)
    assert group.kills() == 1
    where = (
        f"loader_grows.py:{line_of(script, '# grows here')} "  # the name is qualified since 3.11
    )
    assert_parent_names_worker(oomrec, run, where)


LARGE = """\
import os, sys
def load():
    return [bytearray(b"x") * (1 << 20) for _ in range(30)]
def index():
    return bytearray(b"y") * (20 << 20)
"""
# Then a child, or a grandchild, allocates itself and fails.
WORK = """\
data, table = load(), index()
def work(generations):
    if generations > 0:
        pid = os.fork()
        if pid == 0:
            work(generations - 1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    {first}
    own = {own}
    try:
        bytearray(1 << 46)
    except MemoryError:
        os._exit(0)
work(int(sys.argv[1]))
"""


def python_function(row: dict) -> str:
    """The innermost of Python; without any, the outermost frame's."""
    functions = [frame["function"] for frame in row["stack"] if frame["kind"] == "python"]
    return (functions or [row["stack"][-1]["function"]])[0]


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@pytest.mark.parametrize(
    "generations, first, names",
    [
        (1, "pass", {"load": 30, "index": 20}),
        (2, "pass", {"load": 30, "index": 20}),  # the grandchild of the one that loaded it
        (1, "globals().pop('table')", {"load": 30}),  # freed before the child has a session
        (1, "early = bytearray(2 << 20); globals().pop('table')", {"load": 30}),
    ],
    ids=["child", "grandchild", "freed at once", "freed later"],
)
def test_what_a_forked_worker_inherited_has_its_parents_names(
    preload, oomrec, mode, generations, first, names
):
    program = LARGE + WORK.format(first=first, own='bytearray(b"z") * (5 << 20)')
    words = ["python3", "-c", program, generations]
    run = preload(*words, env={"OOMREC_MODE": mode}, exits=0)
    shown = oomrec.json("show", run.only_bundle())
    inherited = {
        python_function(row).partition(".")[0]: row["bytes"]
        for row in shown["holders"]
        if any(frame["function"] == INHERITED for frame in row["stack"])
    }
    named = {name: bytes for name, bytes in inherited.items() if name in ("load", "index")}
    assert named.keys() == names.keys(), inherited
    for name, size in names.items():
        assert size * MIB <= named[name] < (size + 1) * MIB
    # Together they are what was there: nothing counts twice.
    assert sum(inherited.values()) < (sum(names.values()) + 12) * MIB
    own = [row for row in shown["holders"] if python_function(row) == "work"]
    assert sum(row["bytes"] for row in own) >= 5 * MIB


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing(oomrec, recorded, victim, cgroup, method):
    script = victim("python/process_grows.py")
    run = recorded("recover", "python3", script, method, preexec_fn=cgroup("128M").enter_exempt)
    assert run.exit_code == 1, str(run)
    where = f"process_grows.py:{line_of(script, '# grows here')} grow"
    assert_parent_names_worker(oomrec, run, where)


@pytest.mark.needs_cgroup_write
def test_a_worker_of_a_fork_server(oomrec, recorded, victim, cgroup):
    """The fork server reaps the worker, the program only gets a message: no bundle names a parent."""
    words = ["python3", victim("python/process_grows.py"), "forkserver"]
    run = recorded("recover", *words, preexec_fn=cgroup("128M").enter_exempt, exits=1)
    assert list(by_verdict(run)) == ["cgroup_oom_kill"]


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("way", WAYS)
def test_a_worker_of_a_prefork_server(oomrec, recorded, victim, cgroup, way):
    """The sibling that the master ended is not taken for the cause, and is not reported."""
    run = recorded(way, victim("loses_worker"), preexec_fn=cgroup("96M").enter_exempt, exits=1)
    assert_parent_names_worker(oomrec, run, "grow")


@pytest.mark.needs_cgroup_write
def test_the_parents_verdict_is_used_by_the_launcher(oomrec, recorded, victim, cgroup):
    """Without the kernel's log only the parent knows the signal. The near-limit evidence is kept."""
    closed = {"OOMREC_KERNEL_LOG": "/nowhere"}
    oomrec.environment.update(closed)
    words = [victim("loses_worker")]
    run = recorded("recover", *words, preexec_fn=cgroup("96M").enter_exempt, env=closed)
    shown = [oomrec.json("show", bundle) for bundle in run.bundles()]
    (worker,) = (page for page in shown if page["outcome"] == "signal 9")
    assert "was killed by SIGKILL" in worker["verdict"]["summary"]
    assert "signal 15" not in [
        page["outcome"] for page in shown
    ]  # sent to its sibling by the parent
    parents = [page for page in shown if page["verdict"]["code"] == "child_killed"]
    assert len(parents) == (worker["verdict"]["code"] == "killed_near_limit")


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("way", WAYS)
def test_a_parent_that_recovers_is_not_reported(recorded, victim, cgroup, way):
    run = recorded(way, victim("loses_worker"), "copes", preexec_fn=cgroup("96M").enter_exempt)
    assert run.exit_code == 0
    assert by_verdict(run).keys() == {"cgroup_oom_kill"}


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("way", WAYS)
def test_a_surrounding_shell_is_not_a_parent_of_workers(recorded, victim, cgroup, way):
    script = f"{victim('grows')} < /dev/zero; exit 3"
    run = recorded(way, "sh", "-c", script, preexec_fn=cgroup("96M").enter, exits=3)
    assert list(by_verdict(run)) == ["cgroup_oom_kill"]


def rested(runner, words, **options) -> tuple[subprocess.Popen, int]:
    """The master, and the worker to kill."""
    process = runner.start(*words, **options)
    word, worker = process.stdout.readline().split()
    assert word == b"ready"
    return process, int(worker)


@pytest.mark.parametrize("way", ["run", "recover"])
def test_a_worker_killed_by_hand_is_not_memory(oomrec, preload, victim, way):
    words = [victim("loses_worker"), "rest"]
    runner = preload if way == "recover" else oomrec
    process, worker = rested(runner, words if way == "recover" else ["run", "--", *words])
    wait_for(lambda: holds(worker, 24 * MIB))
    os.kill(worker, signal.SIGKILL)
    run = runner.finish(process)
    oomrec("recover")
    assert run.exit_code == 1
    # The workers held enough for a bundle; their parent did not.
    for bundle in run.bundles():
        shown = oomrec.json("show", bundle)
        assert shown["verdict"]["code"] == "killed_externally", shown["verdict"]
        assert shown["process"]["ppid"] not in (os.getpid(), None) and shown["child"] is None
    pids = {oomrec.json("show", bundle)["process"]["pid"] for bundle in run.bundles()}
    assert worker in pids and process.pid not in pids
    assert not list(preload.session_dir.rglob("*.session"))


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_parent_that_is_killed_by_hand_does_not_die_of_its_worker(oomrec, victim, cgroup, number):
    words = ["run", "--", victim("loses_worker"), "stays"]
    process, parent = rested(oomrec, words, preexec_fn=cgroup("96M").enter_exempt)
    time.sleep(2)
    os.kill(parent, number)
    run = oomrec.finish(process, exits=128 + number)
    codes = [oomrec.json("show", bundle)["verdict"]["code"] for bundle in run.bundles()]
    assert sorted(codes) == ["cgroup_oom_kill", "killed_externally"]


def test_workers_are_younger_than_their_parent_in_the_same_tick_of_the_clock(
    oomrec, preload, victim
):
    """Only the parent's recording says how they ended: it is read last, else they stay behind."""
    for _ in range(6):  # of three processes: so many recordings of dead ones are kept
        process, worker = rested(preload, [victim("loses_worker"), "rest"])
        wait_for(lambda worker=worker: holds(worker, 24 * MIB))
        os.kill(worker, signal.SIGKILL)
        preload.finish(process)
    oomrec("recover")
    assert not list(preload.session_dir.rglob("*.session"))


def holds(pid: int, resident: int) -> bool:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 >= resident


@pytest.mark.needs_cgroup_write
def test_an_unrelated_kill_beside_a_workers(oomrec, preload, plain, victim, cgroup):
    """In one cgroup the kernel kills another process, and a worker is killed by hand."""
    group = cgroup("256M")
    process, worker = rested(
        preload, [victim("loses_worker"), "rest"], preexec_fn=group.enter_exempt
    )
    wait_for(lambda: holds(worker, 24 * MIB))
    grows = plain.start(victim("grows"), stdin=subprocess.PIPE, preexec_fn=preferred_in(group))
    plain.finish(grows, input="go on\n")
    assert group.kills() == 1 and process.poll() is None
    os.kill(worker, signal.SIGKILL)
    run = preload.finish(process)
    oomrec("recover")
    assert run.exit_code == 1
    verdicts = {oomrec.json("show", b)["verdict"]["code"] for b in run.bundles()}
    assert "child_killed" not in verdicts and "cgroup_oom_kill" not in verdicts, verdicts


def preferred_in(group):
    def enter():
        group.enter()
        Path("/proc/self/oom_score_adj").write_text("1000")

    return enter


POOL = """
import multiprocessing
def hold(number):
    global held
    held = bytearray(b"x" * (24 << 20))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(12) as pool:
        pool.map(hold, range(12), chunksize=1)
"""


@pytest.mark.parametrize("way", ["run", "bare"])
def test_the_end_of_a_healthy_pool_is_not_reported(oomrec, preload, tmp_path, way):
    """The parent ends its workers with SIGTERM."""
    script = written(tmp_path / "pool.py", POOL)
    words = [sys.executable, script]
    run = oomrec("run", "--", *words) if way == "run" else preload(*words)
    assert run.exit_code == 0, str(run)
    oomrec("recover")
    assert run.bundles() == [] and oomrec.sessions_left() == [], str(run)


SMALL = """\
import os, sys
def load():
    return [str(n) * 12 for n in range(300_000)]  # 30 MiB
def index():
    return {n: float(n) for n in range(400_000)}
"""


@pytest.mark.parametrize(
    "generations, first, names",
    [
        (1, "pass", {"load", "index"}),
        (2, "pass", {"load", "index"}),
        (1, "globals().pop('table')", {"load"}),  # freed before the child has a session
        (1, "early = [str(n) * 12 for n in range(50_000)]; globals().pop('data')", {"index"}),
        (2, "early = [str(n) * 12 for n in range(50_000)]; globals().pop('table')", {"load"}),
    ],
    ids=["child", "grandchild", "freed at once", "freed later", "freed by a grandchild"],
)
def test_small_objects_that_a_forked_worker_inherited(preload, oomrec, generations, first, names):
    """By the parent's lines, as estimates, until the child frees them; the rest of the pool is unnamed."""
    own = "[str(n) * 12 for n in range(100_000)]"  # 10 MiB
    run = preload("python3", "-c", SMALL + WORK.format(first=first, own=own), generations, exits=0)
    shown = oomrec.json("show", "--top", "100000", run.only_bundle())
    rows = [row for row in shown["holders"] if row["space"] == "python"]
    inherited = dict.fromkeys(("load", "index", "work"), 0)
    for row in rows:
        is_inherited = any(frame["function"] == INHERITED for frame in row["stack"])
        name = python_function(row).partition(".")[0]
        if name in inherited and is_inherited == (name != "work"):
            inherited[name] += row["bytes"]
    # Of the objects alone, texts and pairs of numbers, as the pools have them: in multiples of 16.
    sizes = {"load": 300_000 * 125, "index": 400_000 * 64}
    for name, size in sizes.items():
        if name in names:
            assert 0.75 * size < inherited[name] < 1.25 * size, inherited
        else:
            assert inherited[name] < 0.1 * size, inherited
    assert inherited["work"] > 100_000 * 113 * 0.75
    # No byte counts twice: these rows and those of mappings, with the rest of the pool, add up.
    mapped = sum(row["bytes"] for row in shown["holders"] if row["space"] in ("map", "python"))
    assert mapped == pytest.approx(shown["spaces"]["map"]["live_bytes"], rel=0.05)
