"""Ray: records its workers, and explains those that Ray ended because the node ran low on memory.

    import oomrec.schedulers.ray

    ray.init(runtime_env=oomrec.schedulers.ray.runtime_env())
    oomrec.schedulers.ray.watch_nodes()

Ray's memory monitor ends workers at `RAY_memory_usage_threshold` (95 % of the node). What they held is then in
bundles, and `verdicts()` lists how they ended. On a node without this program's help,

    python -m oomrec.schedulers.ray /tmp/ray/session_latest

does what `watch_nodes` starts there; it ends with the process whose pid is a second argument, such as the raylet.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypeVar

from .._impl.command import ended
from . import Verdict, environment, recover

if TYPE_CHECKING:
    from io import BufferedReader

__all__ = ["runtime_env", "verdicts", "watch", "watch_nodes"]

_POLL_S = 0.1
_DEATH_S = 10.0  # Ray sends SIGKILL at once
# Older lines are of processes whose pids others may have by now.
_OLDEST_S = 60.0
_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),")  # a report's first line begins with it
_REASON = re.compile(r"OOM kill reason: (.*)")
# "(Task: …, task name=parse, …, pid=17, actual memory used=0.36GB, …)", "(Worker with no lease granted: pid=…".
# Not "actual memory used=Not FoundGB": that process was gone already.
_SELECTED = re.compile(r"Selected to kill: \((.*?)pid=(\d+), actual memory used=([\d.]+GB)")
_TASK = re.compile(r"task name=(.*?), ")

_T = TypeVar("_T")


def runtime_env(dump_dir: str | None = None) -> dict[str, Any]:
    """A `runtime_env` for `ray.init`, a task or an actor: its workers are recorded.

    `oomrec.schedulers.environment` has the variables. A runtime_env of your own takes them in its `env_vars`.
    """
    return {"env_vars": environment(dump_dir)}


def watch_nodes() -> None:
    """Starts a watcher on each node of the cluster that has none yet. It ends with the node's raylet.

    A watcher is no worker of Ray's, which would end it for memory, too. Call this again when nodes have joined.
    """
    _on_each_node(_start_watcher)


def verdicts() -> list[dict[str, Any]]:
    """The deaths of workers so far that the nodes' watchers have explained; those of a node are oldest first.

    Each has the keys node (its id), pid, code, certainty, summary and bundle (a path on that node).
    """
    found = _on_each_node(_read_verdicts)
    return [{"node": node, **verdict} for node, those in found.items() for verdict in those]


def watch(
    session_dir: str = "/tmp/ray/session_latest", until: int | None = None
) -> Iterator[Verdict]:
    """Enters Ray's reasons into the recordings of workers on this node, and yields their verdicts.

    Reads the raylet's log in `session_dir`; needs no connection to Ray, but must run as the user of the
    workers. Ends with the process `until`, if one is given.
    """
    told: set[int] = set()
    # Not its events, of which Ray writes at most one in ten seconds.
    path = os.path.join(session_dir, "logs", "raylet.out")
    reports = _KillReports()
    deadline = 0.0
    for line in _lines(path):
        killed = reports.killed_in(line.decode(errors="replace"))
        if killed is not None and ended(killed[0], "Ray's memory monitor", killed[1]):
            told.add(killed[0])
            deadline = time.monotonic() + _DEATH_S
        if line:
            continue
        if told and (time.monotonic() > deadline or not any(map(_is_alive, told))):
            told.clear()
            yield from recover()
        if until is not None and not told and not _is_alive(until):
            return


class _KillReports:
    """The raylet's reports of workers that it ends for memory. A report has many lines."""

    def __init__(self) -> None:
        self._time = ""
        self._reason = ""

    def killed_in(self, line: str) -> tuple[int, str] | None:
        """The pid of a worker that this line of the log names, and why it is ended."""
        begins = _TIME.match(line)
        if begins:
            self._time = begins[1]
        reason = _REASON.match(line)
        if reason:
            self._reason = reason[1]
        selected = _SELECTED.match(line)
        if selected is None or not self._is_recent():
            return None
        task = _TASK.search(selected[1])
        who = f"task {task[1]}" if task else "an idle worker"
        return int(selected[2]), f"{who} used {selected[3]}: {self._reason}"

    def _is_recent(self) -> bool:
        try:
            began = time.mktime(time.strptime(self._time, "%Y-%m-%d %H:%M:%S"))
        except ValueError:
            return False
        return time.time() - began <= _OLDEST_S


def _lines(path: str) -> Iterator[bytes]:
    """The file's lines, whole ones, as they are written; an empty one at each poll that finds none."""
    file: BufferedReader | None = None
    rest = b""
    while True:
        read = file.read() if file is not None else b""
        if not read and (file is None or _is_replaced(file, path)):
            file, rest = _opened(path), b""
            read = file.read() if file is not None else b""
        rest += read
        *lines, rest = rest.split(b"\n")
        yield from filter(None, lines)
        yield b""
        time.sleep(_POLL_S)


def _opened(path: str) -> BufferedReader | None:
    try:
        return open(path, "rb")  # noqa: SIM115
    except OSError:
        return None


def _is_replaced(file: BufferedReader, path: str) -> bool:
    try:
        now, before = os.stat(path), os.fstat(file.fileno())
    except OSError:
        return False
    return (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino) or now.st_size < file.tell()


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _on_each_node(function: Callable[[], _T]) -> dict[str, _T]:
    """What it returns on each living node, by the node's id. Runs as a task that is not recorded and takes no CPU."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    tasks = [
        ray.remote(function).options(
            num_cpus=0,
            max_retries=-1,  # Ray ends it, too, if the node is still low on memory
            runtime_env={"env_vars": {"LD_PRELOAD": ""}},
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        for node in nodes
    ]
    return dict(zip(nodes, ray.get([task.remote() for task in tasks])))


def _start_watcher() -> None:
    import subprocess

    package = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2))
    paths = filter(None, (package, os.environ.get("PYTHONPATH")))
    raylet = os.getppid()
    words = [sys.executable, "-m", "oomrec.schedulers.ray", _session_dir(), str(raylet)]
    # Twice forked, in a session of its own: a worker that ends, ends its children.
    subprocess.run(
        ["setsid", "--fork", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def _read_verdicts() -> list[dict[str, Any]]:
    try:
        with open(_verdicts_path(_session_dir()), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def _session_dir() -> str:
    import ray

    context = ray.get_runtime_context()
    return f"{context.get_temp_dir()}/{context.get_session_name()}"


def _verdicts_path(session_dir: str) -> str:
    return os.path.join(session_dir, "logs", "oomrec_verdicts.jsonl")


def _main(session_dir: str, until: str | None = None) -> None:
    """Watches this node, unless another process does, and writes the verdicts beside Ray's logs."""
    import fcntl

    with open(_verdicts_path(session_dir), "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        for verdict in watch(session_dir, int(until) if until else None):
            file.write(json.dumps(verdict._asdict()) + "\n")
            file.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:3])
