"""`oomrec watch`: a bundle within a second of each death, and on memory pressure."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_log import report_oom_kill
from watching import (
    CONNECTED,
    SEES_FOREIGN_EXITS,
    Watch,
    cpu_s,
    eventually,
    part_of_core,
    wait_for,
)


@pytest.fixture
def watch(oomrec):
    return lambda **env: Watch(oomrec, **env)


def started(preload, victim, way="never"):
    process = preload.start(victim("dies"), way, stdin=subprocess.PIPE).once("ready")
    return process


def finished_bundles(runner):
    return sorted(path.parent for path in runner.dump_dir.glob("oom_*/manifest.json"))


@pytest.mark.parametrize("order", ["watched from its start", "there before"])
def test_a_death_is_a_bundle_within_a_second(preload, oomrec, victim, watch, order):
    """A second of CPU time: the kernel notifies the watch, which does not poll."""
    process = started(preload, victim) if order == "there before" else None
    watching = watch()
    process = process or started(preload, victim)
    time.sleep(0.3)
    before = cpu_s(watching.process.pid)
    process.kill()
    process.wait()
    (bundle,) = wait_for(lambda: finished_bundles(preload))
    assert cpu_s(watching.process.pid) - before < 1
    run = watching.stop()
    assert run.exit_code == 0 and f"process {process.pid} (dies) is gone" in run.stdout, str(run)
    shown = oomrec.json("show", bundle)
    assert shown["trigger"] == "killed"
    assert shown["outcome"] == ("signal 9" if SEES_FOREIGN_EXITS else "unknown")
    assert shown["process"]["pid"] == process.pid
    assert preload.sessions_left() == []


@pytest.mark.skipif(
    not CONNECTED, reason="the process connector is for root in the first namespace"
)
@pytest.mark.parametrize(
    "number, code",
    [
        (signal.SIGTERM, "killed_externally"),
        (signal.SIGKILL, "killed_externally"),
        (signal.SIGABRT, "crashed"),
    ],
)
def test_root_learns_the_exit_status_on_an_older_kernel(
    preload, oomrec, victim, watch, number, code
):
    watching = watch(OOMREC_NO_PIDFD_INFO=1, MEMORY_PRESSURE_WATCH="/dev/null")
    process = started(preload, victim)
    wait_for(lambda: watching.sees(process.pid))
    for _ in range(20):
        subprocess.run(["true"], check=True)  # an unrecorded process
    process.send_signal(number)
    process.wait()
    (bundle,) = wait_for(lambda: finished_bundles(preload))
    shown = oomrec.json("show", bundle)
    assert (shown["verdict"]["code"], shown["outcome"]) == (code, f"signal {number:d}")


NEVER_WAITS = """
import subprocess, sys, time
child = subprocess.Popen([sys.argv[1], "never"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_parent_need_not_wait(preload, oomrec, victim, watch):
    """As a container's first process that is no init."""
    watching = watch()
    parent = preload.start(sys.executable, "-c", NEVER_WAITS, victim("dies"))
    pid = int(parent.stdout.readline())
    wait_for(lambda: watching.sees(pid))
    os.kill(pid, signal.SIGKILL)
    (bundle,) = wait_for(lambda: finished_bundles(preload))
    shown = oomrec.json("show", bundle)
    assert (shown["verdict"]["code"], shown["outcome"]) == ("killed_externally", "signal 9")
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    parent.kill()
    preload.finish(parent)


def test_a_normal_exit_is_not_reported(preload, oomrec, victim, watch):
    watching = watch()
    for _ in range(5):
        assert preload("sh", "-c", "exit 3").exit_code == 3
    process = started(preload, victim)
    wait_for(lambda: watching.sees(process.pid))
    process.kill()
    process.wait()
    wait_for(lambda: finished_bundles(preload))
    run = watching.stop()
    assert len(run.stdout.splitlines()) == len(finished_bundles(preload)) == 1, str(run)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_it_ends_on_a_signal(watch, name):
    watching = watch()
    watching.process.send_signal(getattr(signal, name))
    assert watching.process.wait(5) == 0


def kill(process, *runners):
    """As the kernel does. Unlike another end that nobody saw, its log line deserves a bundle."""
    log = runners[0].directory / "kernel.log"
    for runner in runners:
        runner.environment["OOMREC_KERNEL_LOG"] = str(log)
    report_oom_kill(log, process.pid, "dies")
    process.kill()
    process.wait()


def test_once_writes_bundles_for_dead_processes(preload, oomrec, victim):
    assert oomrec("watch", "--once").exit_code == 1
    process = started(preload, victim)
    assert oomrec("watch", "--once").exit_code == 1
    kill(process, oomrec, preload)
    run = oomrec("watch", "--once", preload.session_dir, env={"OOMREC_SESSION_DIR": None})
    assert run.exit_code == 0 and "is gone" in run.stdout, str(run)
    assert len(finished_bundles(preload)) == 1
    assert oomrec("watch", "--once").exit_code == 1


def test_an_end_that_nobody_saw_is_left_at_the_start(preload, oomrec, victim, watch):
    process = started(preload, victim)
    process.kill()
    process.wait()
    assert oomrec("watch", "--once").exit_code == 1
    (session,) = preload.session_dir.rglob("*.session")
    watching = watch()
    other = started(preload, victim)
    wait_for(lambda: watching.sees(other.pid))  # it has scanned once more
    assert watching.stop().exit_code == 0
    assert session.exists() and finished_bundles(preload) == []
    assert oomrec("recover", "--unknown").exit_code == 0
    (bundle,) = finished_bundles(preload)
    assert oomrec.json("show", bundle)["process"]["pid"] == process.pid
    assert other.poll() is None


def started_elsewhere(preload, victim):
    """A process whose recording is in a default directory, the one for bundles."""
    preload.dump_dir.mkdir(exist_ok=True)
    process = preload.start(
        victim("dies"), "never", stdin=subprocess.PIPE, env={"OOMREC_SESSION_DIR": None}
    ).once("ready")
    return process


def test_a_given_directory_is_the_only_one(preload, oomrec, victim, tmp_path):
    elsewhere = started_elsewhere(preload, victim)
    here = started(preload, victim)
    for process in (elsewhere, here):
        kill(process, oomrec, preload)
    ran = tmp_path / "ran"
    run = oomrec(
        "watch", "--once", "--on-oom-exec", f"echo %p >> {ran}", f"{preload.session_dir}/",
        env={"OOMREC_SESSION_DIR": None},
    )  # fmt: skip
    assert f"process {here.pid} " in run.stdout, str(run)
    assert f"process {elsewhere.pid} " not in run.stdout, str(run)
    assert ran.read_text() == f"{here.pid}\n"
    run = oomrec("watch", "--once")
    assert f"process {elsewhere.pid} " in run.stdout, str(run)


def test_a_watch_of_one_directory_passes_over_deaths_elsewhere(preload, oomrec, victim, watch):
    elsewhere = started(preload, victim)
    preload.dump_dir.mkdir(exist_ok=True)
    other = preload.directory / "other"
    other.mkdir()
    here = preload.start(
        victim("dies"), "never", stdin=subprocess.PIPE, env={"OOMREC_SESSION_DIR": other}
    ).once("ready")
    watching = Watch(oomrec, other)
    wait_for(lambda: watching.sees(here.pid))
    assert not watching.sees(elsewhere.pid)
    for process in (elsewhere, here):
        process.kill()
        process.wait()
    wait_for(lambda: finished_bundles(preload))
    said = watching.stop().stdout
    assert f"process {here.pid} " in said and str(elsewhere.pid) not in said


def test_a_hundred_processes_cost_little(preload, watch):
    """Less than half a percent of a core, unless the machine runs short of memory meanwhile."""
    watching = watch(MEMORY_PRESSURE_WATCH="/dev/null")
    for _ in range(100):
        preload.start("sleep", "100")
    wait_for(lambda: len(list(preload.session_dir.rglob("*.session"))) == 100, 120)
    wait_for(watching.is_sleeping, 30)  # it has opened all of them

    @eventually  # others may keep the machine busy for a while
    def costs_little():
        assert part_of_core(watching.process.pid, 8) <= 0.005


def test_an_invalid_directory_is_reported(oomrec):
    run = oomrec("watch", "/no/such/directory")
    assert run.exit_code == 2 and "OOMREC_SESSION_DIR" in run.stderr


@pytest.mark.needs_cgroup_write
def test_pressure_is_reported_once_per_episode(preload, oomrec, start_thrashing, watch, tmp_path):
    """A program that does not allocate cannot notice memory pressure itself."""
    trigger = tmp_path / "trigger"
    os.mkfifo(trigger)
    waiting = start_thrashing(preload)
    watching = watch(MEMORY_PRESSURE_WATCH=trigger)
    wait_for(lambda: watching.sees(waiting.pid))
    time.sleep(1.2)  # two samples from outside
    for _ in range(2):
        with trigger.open("w") as fifo:
            fifo.write("x")
        (bundle,) = wait_for(lambda: finished_bundles(preload))
        time.sleep(0.2)
    assert len(finished_bundles(preload)) == 1
    shown = oomrec.json("show", bundle)
    assert (shown["trigger"], shown["verdict"]["code"]) == ("pressure", "memory_pressure")
    assert shown["process"]["pid"] == waiting.pid
    resident = next(line for line in shown["verdict"]["evidence"] if "resident" in line)
    assert float(re.search(r"resident ([\d.]+) MiB", resident)[1]) >= 20
    assert f"process {waiting.pid}" in watching.stop().stdout
