"""Every kind of death in every language, with the verdict that each way to record must give.

A cell is the verdict's code and the outcome. A recorder never guesses: without a parent or a
watcher, nothing reveals which signal ended a process that had no failed allocation.
The victims follow the steps on their command line (tests/victims/steps.h).
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import pytest
from consistency import contradictions
from kernel_log import report_fault, report_oom_kill
from watching import IN_FIRST_PID_NAMESPACE, SEES_FOREIGN_EXITS, Watch, wait_for

MIB = 1 << 20
GIB = 1 << 30
ABSURD = 99_999_999_999_999
WAYS = ["run", "watch", "bare"]
EVERY = "c cxx python numpy"
NO_BUNDLE = "no bundle"
# Functions of the victims with a failing allocation.
ASK = {"ask", "demand", "crowd", "start_thread", "start_process", "thread", "fork"}

# --- What happens to a victim that waits ----------------------------------------------------------


@dataclass
class Scene:
    pid: int
    log: Path  # read instead of the kernel's log, if the row says so
    start_another: Callable[[], subprocess.Popen]  # an unrecorded process in the same cgroup


def nothing(scene: Scene) -> None:
    """The victim continues with its steps."""


def signalled(number: signal.Signals) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        send(scene.pid, number)

    return act


def send(pid: int, number: signal.Signals) -> None:
    subprocess.run(["kill", f"-{number:d}", str(pid)], check=True)


def logged(name: str = "") -> Callable[[Scene], None]:
    """SIGKILL, with a kernel log since boot that reports an OOM kill of this pid."""

    def act(scene: Scene) -> None:
        named = name or Path(f"/proc/{scene.pid}/comm").read_text().strip()
        report_oom_kill(scene.log, scene.pid, named)
        send(scene.pid, signal.SIGKILL)

    return act


def with_fault_in_log(scene: Scene) -> None:
    """The kernel's log has the line about a fault; who waits for the process sees another signal."""
    report_fault(scene.log, scene.pid, Path(f"/proc/{scene.pid}/comm").read_text().strip())
    send(scene.pid, signal.SIGKILL)


def after_a_while(number: signal.Signals) -> Callable[[Scene], None]:
    """The signal comes when `run` and `watch` have read the level from outside."""

    def act(scene: Scene) -> None:
        time.sleep(1.2)
        send(scene.pid, number)

    return act


def after_another_s_kill(scene: Scene) -> None:
    """The kernel kills another process in its cgroup. Over a second later it is killed by hand."""
    another = scene.start_another()
    another.communicate(b"go on\n")
    assert another.returncode == -signal.SIGKILL
    time.sleep(1.2)  # within a second it may be taken for the first kill
    send(scene.pid, signal.SIGKILL)


# --- The table ------------------------------------------------------------------------------------


@dataclass
class Death:
    name: str
    languages: str
    steps: str  # after it holds its memory and got the signal to continue
    everywhere: str = ""  # the cell for all three ways, unless one is given below
    run: str = ""
    watch: str = ""
    bare: str = ""
    request: tuple | None = None  # API and bytes (None: any)
    says: str = ""  # part of the verdict's sentence under `run`
    before: str = ""  # start of the cell of a bundle written before its end
    holds: str = "hold:24"  # steps before it waits
    happens: Callable[[Scene], None] = nothing
    env: dict = field(default_factory=dict)
    limit: tuple | None = None  # the system's limit: kind and bytes
    cgroup: str = ""  # its limit

    def cell(self, way: str) -> str:
        if way == "watch" and not SEES_FOREIGN_EXITS:
            way = "bare"  # whether anything more can be known
        return getattr(self, way) or self.everywhere


SOFT = {"OOMREC_LIMIT": "512M"}
WARNING_OFF = {"OOMREC_WARN": "0"}  # no bundle before the end
NO_LOG = {"OOMREC_KERNEL_LOG": "/nowhere", **WARNING_OFF}
FIXTURE = {"OOMREC_KERNEL_LOG": "kernel.log"}
# It checks usage at the first request at least 0.1 s after the previous check.
NEARLY_256 = "hold:231 pause_ms:200 hold:1"
ADDRESS_SPACE = (resource.RLIMIT_AS, 2 * GIB)
DATA = (resource.RLIMIT_DATA, 2 * GIB)

MEMORY = [
    # A failure, then it continued or exited.
    Death("soft_limit_handled", EVERY, f"ask:{GIB} end:0", "soft_limit recovered",
          request=("malloc", GIB), env=SOFT),
    Death("soft_limit", "c python numpy", f"demand:{GIB}", "soft_limit exited 1",
          request=("malloc", GIB), env=SOFT),
    Death("address_space_limit", EVERY, f"ask:{3 * GIB} end:3", "address_space_limit exited 3",
          request=("malloc", 3 * GIB), limit=ADDRESS_SPACE),
    Death("data_limit", EVERY, f"ask:{3 * GIB} end:3", "data_limit exited 3",
          request=("malloc", 3 * GIB), limit=DATA),
    Death("too_large", EVERY, f"ask:{ABSURD} end:0", "request_too_large recovered",
          request=("malloc", ABSURD)),
    Death("injected", EVERY, "ask:104857601 end:3", "injected exited 3",
          request=("malloc", 104857601), env={"OOMREC_FAIL": "heap:min=100M"}),
    Death("no_thread", "c cxx python", "no_tasks thread end:3", "thread_creation_failed exited 3",
          request=("pthread_create", None),
          says="the user's limit of tasks (RLIMIT_NPROC) of 0"),
    Death("no_fork", "c cxx python", "no_tasks fork end:3", "fork_failed exited 3",
          request=("fork", 0), says="the user's limit of tasks (RLIMIT_NPROC) of 0"),
    Death("no_mapping", "c", "crowd end:3", "mapping_failed exited 3", request=("mmap", 4096)),
    # Within a second it would be an after-shock.
    Death("no_heap", "c", f"crowd pause_ms:1300 ask:{5 * MIB} end:3",
          "allocation_failed exited 3", request=("malloc", 5 * MIB), before="mapping_failed"),

    # A failure that led to a crash.
    Death("null", "c cxx", f"ask:{GIB} use:16", "null_dereference signal 11",
          request=("malloc", GIB), env=SOFT),
    Death("uncaught", "cxx", f"demand:{ABSURD}", "uncaught_bad_alloc signal 6",
          request=("malloc", ABSURD)),
    Death("abort", "c cxx python", f"ask:{ABSURD} abort", "crash_after_refusal signal 6",
          request=("malloc", ABSURD)),

    # Killed for its memory. The kernel names a live thread if the main one has ended.
    Death("thread_cgroup_kill", "c cxx", "grow", "cgroup_oom_kill oom_killed", cgroup="128M",
          env=WARNING_OFF, holds="hold:24 leave", says="was killed by the kernel"),
    Death("thread_kill_near_limit", "c", "", "killed_near_limit signal 9",
          bare="killed_near_limit unknown", happens=after_a_while(signal.SIGKILL),
          holds=f"leave {NEARLY_256}", cgroup="256M", env=WARNING_OFF, says="% of 256.0 MiB"),
    Death("cgroup_kill", EVERY, "grow", "cgroup_oom_kill oom_killed", cgroup="128M", env=WARNING_OFF,
          says="rose from 0 to 1 within 1 s of its end; it was the only process there"),
    Death("cgroup_kill_warned", "c python", "grow", "cgroup_oom_kill oom_killed",
          before="near_limit oom_killed", cgroup="200M"),
    Death("cgroup_kill_refused", "c", f"ask:{ABSURD} grow", "cgroup_oom_kill oom_killed",
          before="request_too_large recovered", cgroup="64M", env=WARNING_OFF,
          says="its limit of 64.0 MiB; it held "),
    Death("cgroup_kill_unlogged", "c python", "grow", run="cgroup_oom_kill oom_killed",
          watch="killed_near_limit signal 9", bare="killed_near_limit unknown", cgroup="128M",
          env=NO_LOG, says="the kernel's log could not be read"),
    Death("system_kill", EVERY, "", "system_oom_kill oom_killed", happens=logged(),
          env=FIXTURE),
    Death("kill_near_limit", "c cxx python", "", "killed_near_limit signal 9",
          bare="killed_near_limit unknown", happens=signalled(signal.SIGKILL), holds=NEARLY_256,
          cgroup="256M", env=WARNING_OFF),
    Death("term_near_limit", "c cxx python", "", "terminated_under_pressure signal 15",
          bare="killed_near_limit unknown", happens=signalled(signal.SIGTERM), holds=NEARLY_256,
          cgroup="256M", env=WARNING_OFF),
]  # fmt: skip

OTHER_CAUSES = [
    Death("crash", "c cxx python", "crash:16", "crashed signal 11", bare="unknown unknown",
          env=FIXTURE),
    Death("crash_in_log", "c", "", "killed_externally signal 9", bare="crashed signal 11",
          happens=with_fault_in_log, env=FIXTURE),
    Death("assertion", "c cxx python", "abort", "crashed signal 6", bare="unknown unknown"),
    Death("thread_kill_far_from_limit", "c", "", "killed_externally signal 9",
          bare="unknown unknown", happens=after_a_while(signal.SIGKILL), holds="hold:24 leave",
          cgroup="800M", says="SIGKILL, and not for lack of memory"),
    # It had been near the limit, and freed most of it.
    Death("kill_after_freeing", "python", "", "killed_externally signal 9",
          bare="unknown unknown", happens=after_a_while(signal.SIGKILL), cgroup="256M",
          env=WARNING_OFF, holds="hold:24 lend:205 pause_ms:150 hold:1 repay",
          says="SIGKILL, and not for lack of memory"),
    Death("kill_of_a_promise", "python", "", "killed_externally signal 9",
          bare="unknown unknown", happens=after_a_while(signal.SIGKILL), cgroup="256M",
          holds="hold:24 promise:1024 hold:1", says="allocated but not in memory at its last check: "),
    Death("kill_at_the_soft_limit", "c", "", "killed_externally signal 9",
          bare="unknown unknown", happens=signalled(signal.SIGKILL), env={"OOMREC_LIMIT": "30M"},
          holds="hold:28", says="SIGKILL, and not for lack of memory"),
    Death("kill_far_from_limit", "c python numpy", "", "killed_externally signal 9",
          bare="unknown unknown", happens=signalled(signal.SIGKILL), cgroup="800M",
          says="SIGKILL, and not for lack of memory"),
    Death("term_at_rest", "c python", "", "killed_externally signal 15", bare="unknown unknown",
          happens=signalled(signal.SIGTERM), says="SIGTERM, and not for lack of memory"),
    Death("interrupt", "c", "", NO_BUNDLE, bare="unknown unknown",
          happens=signalled(signal.SIGINT)),
    # After a failure that the program had handled, and one of which that is unknown.
    Death("overflow", "c cxx", f"ask:{ABSURD} dig", "crashed signal 11",
          before="request_too_large recovered", says="the thread's stack overflowed"),
    Death("crash_long_after", "c", f"ask:{ABSURD} pause_ms:11000 crash:16",
          "null_dereference signal 11",
          request=("malloc", ABSURD), says="may have used the NULL it was given; nothing excludes"),
    Death("kill_logged_of_its_pid", "c", "", "killed_externally signal 9", bare="unknown unknown",
          happens=logged("another"), env=FIXTURE),
    Death("kill_of_another", "c", "", "killed_externally signal 9", bare="unknown unknown",
          happens=after_another_s_kill, cgroup="96M", env=WARNING_OFF,
          says="the killed process may be another"),
    Death("kill_of_another_unlogged", "c", "", "unknown signal 9", bare="unknown unknown",
          happens=after_another_s_kill, cgroup="96M", env=NO_LOG),
    # A recorded launcher ends the other ranks after one rank's failure.
    Death("rank_beside", "launcher", "", "killed_externally signal 15",
          before="request_too_large exited 1"),
]  # fmt: skip

# A row's first language in each way, the others in one; with --full all.
CASES = [
    pytest.param(
        death,
        language,
        way,
        id=f"{death.name}-{language}-{way}",
        marks=[pytest.mark.needs_cgroup_write] * bool(death.cgroup)
        + [pytest.mark.needs_numpy] * (language == "numpy")
        + [pytest.mark.full] * (number > 0 and way != WAYS[number % 3]),
    )
    for death in MEMORY + OTHER_CAUSES
    for number, language in enumerate(death.languages.split())
    for way in WAYS
]


def words_of(death: Death, language: str, victim) -> list[str]:
    steps = [*death.holds.split(), "wait", *death.steps.split()]
    if language == "launcher":
        rank = f"{victim('steps')} {' '.join(steps)}"
        failing = f"{victim('steps')} hold:24 demand:{ABSURD}"
        return [sys.executable, victim("python/launcher.py"), rank, failing]
    if language in ("python", "numpy"):
        return [sys.executable, victim("python/steps.py"), language, *steps]
    return [victim({"c": "steps", "cxx": "steps_in_cxx"}[language]), *steps]


@pytest.mark.parametrize("death, language, way", CASES)
def test_a_death_is_explained(death, language, way, oomrec, preload, plain, victim, cgroup):
    if "crowd" in death.steps and int(Path("/proc/sys/vm/max_map_count").read_text()) > 100_000:
        pytest.skip("vm.max_map_count: too many mappings to make")
    if death.name == "crash_in_log" and not IN_FIRST_PID_NAMESPACE:
        pytest.skip("not in the first pid namespace, whose pids the kernel's log has")
    for runner in (oomrec, preload):
        runner.environment.update(death.env)
    preload.directory.chmod(0o777)  # for no_tasks, which runs as nobody
    group = cgroup(death.cgroup) if death.cgroup else None
    words = words_of(death, language, victim)

    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
        if group is not None:
            group.enter()
        if death.limit is not None:
            kind, size = death.limit
            resource.setrlimit(kind, (size, size))

    def start(runner, *words):
        process = runner.start(*words, preexec_fn=prepare, stdin=subprocess.PIPE)
        ready, _, pid = process.stdout.readline().partition(b" ")
        assert ready == b"ready", process.stderr.read()
        return process, int(pid)

    # Pressure on the whole machine is tested in test_command_watch.py.
    watching = Watch(oomrec, MEMORY_PRESSURE_WATCH="/dev/null") if way == "watch" else None
    process, pid = start(oomrec, "run", "--", *words) if way == "run" else start(preload, *words)
    if watching:
        wait_for(lambda: watching.sees(pid))
    death.happens(
        Scene(pid, oomrec.directory / "kernel.log",
              lambda: start(plain, victim("steps"), "wait", "grow")[0])
    )  # fmt: skip
    run = oomrec.finish(process, input="go on\n")
    if way == "bare" or (way == "run" and language == "launcher"):  # `run` sees to its own program
        oomrec("recover", "--unknown")
    assert oomrec.sessions_left() == [], str(run)

    if death.cell(way) == NO_BUNDLE:
        assert run.bundles() == []
        return

    shown = [oomrec.json("show", bundle) for bundle in run.bundles()]
    *before, last = [f"{each['verdict']['code']} {each['outcome']}" for each in shown]
    assert last == death.cell(way), f"{run}\n{shown[-1]['verdict']}"
    verdict = shown[-1]["verdict"]
    if way == "run":
        assert death.says in "\n".join([verdict["summary"], *verdict["evidence"]])
    assert len(before) == bool(death.before), str(run)
    assert all(cell.startswith(death.before) for cell in before), before
    assert shown[-1]["process"]["pid"] == pid
    assert_request(shown[-1]["request"], death.request, language)
    assert contradictions(shown[-1]) == []
    top = next(holder for holder in shown[-1]["holders"] if holder["space"] == "heap")
    assert top["bytes"] >= 24 * MIB
    assert "hold" in [frame["function"] for frame in top["stack"]], top["stack"]


def assert_request(request: dict | None, expected: tuple | None, language: str) -> None:
    if expected is None:
        assert request is None
        return
    api, size = expected
    own = language == "python" and api == "malloc"  # a bytearray is one byte larger
    assert request["api"] == api
    assert size is None or request["size"] == size + own
    assert ASK & {frame["function"] for frame in request["stack"]}, request["stack"]
