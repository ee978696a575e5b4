"""Programs of several processes: a bundle lists the recorded ones and the cgroup's largest others."""

import json
import os
import signal
import subprocess
import sys

import pytest
from watching import has_ended, wait_for

MIB = 2**20
HELD = 24 * MIB  # of each worker


def processes(bundle) -> dict:
    return json.loads((bundle / "processes.json").read_text())


def rows_by_pid(bundle) -> dict[int, dict]:
    """The processes of the group by pid. Each is listed once."""
    rows = processes(bundle)["processes"]
    by_pid = {row["pid"]: row for row in rows}
    assert len(by_pid) == len(rows), rows
    return by_pid


def sessions(runner) -> list:
    return list(runner.session_dir.rglob("*.session"))


@pytest.fixture
def stranger(preload):
    """A recorded process outside of the group in the same directory, and an invalid recording."""
    process = preload.start("cat", stdin=subprocess.PIPE)
    [recorded] = wait_for(lambda: sessions(preload))
    whole = wait_for(recorded.read_bytes)
    (recorded.parent / "torn.session").write_bytes(whole[:9000])
    (recorded.parent / "noise.session").write_bytes(os.urandom(40_000))
    (recorded.parent / "zero.session").symlink_to("/dev/zero")
    os.mkfifo(recorded.parent / "pipe.session")
    yield process.pid
    assert process.poll() is None


@pytest.mark.parametrize("way", ["preload", "run"])
@pytest.mark.parametrize("how", ["fork", "spawn", "vfork"])
@pytest.mark.parametrize("refused", ["parent", "worker"])
def test_each_process_of_the_group_is_listed_once(
    preload, oomrec, victim, stranger, how, refused, way
):
    words = [victim("group"), how, 5, 24, refused]
    run = preload(*words) if way == "preload" else oomrec("run", "--", *words)
    assert run.exit_code == 0, str(run)
    *workers, asked = map(int, run.stdout.split())
    members = rows_by_pid(run.only_bundle())
    [parent] = {members[pid]["ppid"] for pid in workers}

    assert set(members) == {parent, *workers}
    assert members[asked]["relation"] == "self"
    assert members[asked]["bundle"] == run.only_bundle().name
    for pid in workers:
        assert members[pid]["live_bytes"] >= HELD
        assert members[pid]["peak_bytes"] >= HELD
        assert members[pid]["rss_bytes"] >= HELD
        assert members[pid]["program"] == "group"
        assert members[pid]["outcome"] == "running"
    assert members[parent]["live_bytes"] < HELD
    others = "relative" if refused == "worker" else "child"
    assert {members[pid]["relation"] for pid in workers if pid != asked} == {others}
    if refused == "worker":
        assert members[parent]["relation"] == "parent"


def test_a_server_with_50_workers(preload, oomrec, victim):
    run = preload(victim("group"), "fork", 50, 2, "parent")
    *workers, parent = map(int, run.stdout.split())
    members = rows_by_pid(run.only_bundle())
    assert set(members) == {parent, *workers}
    assert all(members[pid]["live_bytes"] >= 2 * MIB for pid in workers)

    page = oomrec("show", run.only_bundle()).stdout
    assert "and 39 others with" in page
    page = oomrec("show", "--full", run.only_bundle()).stdout
    section = page.split("processes of its group")[1].split("\n\n")[0]
    assert [int(line.split()[0]) for line in section.splitlines()[2:]][0] == parent
    assert len(section.splitlines()) == 2 + 51


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing(preload, victim, stranger, method):
    run = preload(sys.executable, victim("python/pool.py"), method, exits=0)
    workers = [int(word) for word in run.stdout.split()]
    members = rows_by_pid(run.only_bundle())
    assert run.pid in members and stranger not in members
    for pid in workers:
        starter = members[members[pid]["ppid"]]
        assert members[pid]["live_bytes"] >= HELD
        if method == "forkserver":
            assert members[pid]["relation"] == "descendant"
            assert starter["relation"] == "child" and starter["ppid"] == run.pid
        else:
            assert members[pid]["relation"] == "child" and starter["pid"] == run.pid


FEED = """
import sys
held = bytearray(24 << 20)
while True:
    print("ready", flush=True)
"""
DRAIN = """
import sys
sys.stdin.readline()
try:
    bytearray(1 << 46)
except MemoryError:
    print("refused")
"""


def test_a_shell_pipeline(preload, stranger):
    run = preload(
        "sh", "-c", '"$0" -c "$1" 2>/dev/null | "$0" -c "$2"', sys.executable, FEED, DRAIN
    )
    assert run.stdout == "refused\n", str(run)
    members = rows_by_pid(run.only_bundle())
    by_relation = {row["relation"]: row for row in members.values()}
    assert set(by_relation) == {"self", "parent", "relative"} and len(members) == 3
    assert by_relation["parent"]["pid"] == run.pid
    assert {by_relation[name]["ppid"] for name in ("self", "relative")} == {run.pid}
    assert by_relation["relative"]["live_bytes"] >= HELD


HOLD_AND_FORK = """
import os, time
held = bytearray(24 << 20)
child = os.fork()
if child == 0:
    own = bytearray(25 << 20)
    os.write(1, f"{os.getpid()}\\n".encode())
while True:
    time.sleep(60)
"""


def test_bundles_of_dead_processes_name_each_other(preload, oomrec):
    """Whichever is recovered first."""
    process = preload.start(sys.executable, "-c", HOLD_AND_FORK)
    child = int(process.stdout.readline())
    for pid in (child, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: has_ended(child))
    made = oomrec.json("recover", "--unknown")["bundles"]
    assert len(made) == 2

    pages = [oomrec.json("show", bundle) for bundle in made]
    by_pid = {page["process"]["pid"]: page for page in pages}
    assert set(by_pid) == {process.pid, child}
    names = {page["process"]["pid"]: os.path.basename(page["bundle"]) for page in pages}
    for own, other, relation in ((process.pid, child, "child"), (child, process.pid, "parent")):
        [self_row, other_row] = by_pid[own]["processes"]
        assert (self_row["pid"], self_row["bundle"]) == (own, names[own])
        assert (other_row["pid"], other_row["bundle"]) == (other, names[other])
        assert other_row["relation"] == relation and other_row["live_bytes"] >= HELD
        assert other_row["outcome"] == "unknown"


HOLD = """
held = bytearray(32 << 20)
held[::4096] = bytes(len(held) // 4096)
print("held", flush=True)
input()
"""
ASK = """
try:
    bytearray(1 << 46)
except MemoryError:
    pass
"""


@pytest.mark.needs_cgroup_write
def test_the_largest_others_of_the_cgroup(preload, plain, oomrec, cgroup):
    group = cgroup("300M")
    neighbours = [
        runner.start(sys.executable, "-c", HOLD, preexec_fn=group.enter, stdin=subprocess.PIPE)
        for runner in (plain, preload)
    ]
    for neighbour in neighbours:
        assert neighbour.stdout.readline() == b"held\n"
    run = preload(sys.executable, "-c", ASK, preexec_fn=group.enter)
    bundle = run.only_bundle()
    listed = processes(bundle)

    assert listed["cgroup"] == str(group.path)
    others = {row["pid"]: row for row in listed["others"]}
    assert set(others) == {neighbour.pid for neighbour in neighbours}
    assert [others[neighbour.pid]["recorded"] for neighbour in neighbours] == [False, True]
    assert all(row["rss_bytes"] >= 32 * MIB for row in others.values())
    page = oomrec("show", bundle).stdout
    section = page.split("largest other processes in its cgroup\n")[1].split("\n\n")[0]
    assert {int(line.split()[0]) for line in section.splitlines()} == set(others)


def test_a_bundle_with_a_missing_or_broken_process_list(preload, oomrec, victim):
    run = preload(victim("group"), "fork", 2, 24, "parent")
    file = run.only_bundle() / "processes.json"
    assert "processes of its group" in oomrec("show", run.only_bundle()).stdout
    for text in (None, "", "[]", '{"processes": 5, "others": []}', '{"processes": [{"pid": [1]}]}'):
        file.unlink() if text is None else file.write_text(text)
        shown = oomrec("show", run.only_bundle())
        assert shown.exit_code == 0 and "processes of its group" not in shown.stdout
        page = oomrec.json("show", run.only_bundle())
        assert page["processes"] is None and page["others"] is None
