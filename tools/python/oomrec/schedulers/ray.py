"""Ray: records its workers, and explains those that Ray ended because the node ran low on memory.

    import oomrec.schedulers.ray

    ray.init(runtime_env=oomrec.schedulers.ray.runtime_env())
    oomrec.schedulers.ray.watch_nodes()

Ray's memory monitor ends workers at `RAY_memory_usage_threshold` (95 % of the node). What they held is then in
bundles, the verdicts are printed beside the output of tasks, and `verdicts()` lists them.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, Iterator

from .. import _ended
from . import Verdict, environment, recover

if TYPE_CHECKING:
    from io import BufferedReader

__all__ = ["runtime_env", "verdicts", "watch", "watch_nodes"]

_NAMESPACE = "oomrec"
_POLL_S = 0.1
_DEATH_S = 10.0  # Ray sends SIGKILL at once
# Older events are of processes whose pids others may have by now.
_OLDEST_S = 60.0
# Not of a process that Ray no longer found: "actual memory used=Not FoundGB".
_SELECTED = re.compile(
    r"Selected to kill: \(.*?task name=(.*?), .*?pid=(\d+), actual memory used=([\d.]+GB)"
)
_REASON = re.compile(r"OOM kill reason: (.*?)(?:\\n|\n|$)")


def runtime_env(dump_dir: str | None = None) -> dict[str, Any]:
    """A `runtime_env` for `ray.init`, a task or an actor: its workers are recorded.

    `oomrec.schedulers.environment` has the variables. A runtime_env of your own takes them in its `env_vars`.
    """
    return {"env_vars": environment(dump_dir)}


def watch_nodes() -> list[Any]:
    """Starts a watcher on each node of the cluster that has none yet, and returns all of them, as actors.

    They take no CPU of Ray's, outlive this program, and start anew if they end. Call it again when nodes have
    joined, or let a node's own start script call `watch`.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def on(node: str) -> Any:
        return ray.remote(_Watcher).options(
            name=f"oomrec-{node}",
            namespace=_NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            num_cpus=0,
            runtime_env={"env_vars": {"LD_PRELOAD": ""}},
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )

    watchers = [on(node["NodeID"]).remote() for node in ray.nodes() if node["Alive"]]
    ray.get([watcher.verdicts.remote() for watcher in watchers])  # they are ready
    return watchers


def verdicts() -> list[dict[str, Any]]:
    """The deaths of workers so far that `watch_nodes` has explained, oldest first.

    Each has the keys node (its id), pid, code, certainty, summary and bundle (a path on that node).
    """
    import ray

    def of(node: str) -> list[Verdict]:
        try:
            watcher = ray.get_actor(f"oomrec-{node}", namespace=_NAMESPACE)
            return list(ray.get(watcher.verdicts.remote(), timeout=30))
        except (ValueError, ray.exceptions.RayError):  # none there, or it is being started anew
            return []

    nodes = [node["NodeID"] for node in ray.nodes()]
    return [{"node": node, **verdict._asdict()} for node in nodes for verdict in of(node)]


def watch(session_dir: str = "/tmp/ray/session_latest") -> Iterator[Verdict]:
    """Enters Ray's reasons into the recordings of workers on this node, and yields their verdicts. Never ends.

    Reads the raylet's events in `session_dir`. Needs neither Ray nor a connection to it, but must run as the
    user of the workers.
    """
    told: set[int] = set()
    path = os.path.join(session_dir, "logs", "events", "event_RAYLET.log")
    until = 0.0
    for line in _lines(path):
        for pid, reason in _killed(line):
            if _ended.ended(pid, "Ray's memory monitor", reason):
                told.add(pid)
                until = time.monotonic() + _DEATH_S
        if line or not told:
            continue
        if time.monotonic() > until or not any(_is_alive(pid) for pid in told):
            told.clear()
            yield from recover()


def _killed(line: bytes) -> Iterator[tuple[int, str]]:
    """The workers that an event of the raylet says Ray has ended for memory, and why."""
    if b'"Out of Memory"' not in line:
        return
    try:
        event = json.loads(line)
        message, age_s = str(event["message"]), time.time() - float(event["timestamp"])
    except (ValueError, KeyError, TypeError):
        return
    if age_s > _OLDEST_S:
        return
    reason = _REASON.search(message)
    for task, pid, used in _SELECTED.findall(message):
        because = f": {reason[1]}" if reason else ""
        yield int(pid), f"task {task} used {used}{because}"


def _lines(path: str) -> Iterator[bytes]:
    """The file's lines, whole ones, as they are written; an empty one at each poll that finds none."""
    file: BufferedReader | None = None
    rest = b""
    while True:
        if file is None or _is_replaced(file, path):
            file, rest = _opened(path), b""
        rest += file.read() if file is not None else b""
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


class _Watcher:
    """The actor on each node."""

    def __init__(self) -> None:
        import threading

        import ray

        context = ray.get_runtime_context()
        self._session_dir = os.path.join(context.get_temp_dir(), context.get_session_name())
        self._verdicts: list[Verdict] = []
        threading.Thread(target=self._watch, name="oomrec", daemon=True).start()

    def verdicts(self) -> list[Verdict]:
        return list(self._verdicts)

    def _watch(self) -> None:
        for verdict in watch(self._session_dir):
            self._verdicts.append(verdict)
            print(f"oomrec: {verdict.summary}; oomrec show {verdict.bundle}", flush=True)
