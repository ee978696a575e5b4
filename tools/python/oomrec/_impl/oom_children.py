"""Decides whether a child process died for lack of memory, for exceptions that say only that it died.

An exit status of -9 is a SIGKILL, which has many causes. If the child was recorded, its bundle has a
verdict; `oomrec ls` writes the bundle if it does not exist yet. Only recent bundles of this process' own
descendants count.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .command import run_json
from .foreign_files import read_in

# What `oomrec ls --json` says of a death for lack of memory.
KILLS = ("killed",)
DEATHS = (*KILLS, "itself")
# A pool reports a worker's death at once, but `oomrec ls` or another command may write the bundle later.
_RECENT_S = 120.0
_MOST_BYTES = 4 << 20  # of a file in a bundle
_KILLED = (-9, 128 + 9)  # SIGKILL, as Python and as a shell reports it


class Ending(NamedTuple):
    """What an exception says about a child's death."""

    pids: frozenset[int] | None  # None: the exception names no child
    deaths: tuple[str, ...]  # that count, of KILLS or DEATHS


def _of_pool(_exc: BaseException, _text: str) -> Ending | None:
    return Ending(None, DEATHS)


def _of_exit_status(exc: BaseException, _text: str) -> Ending | None:
    return Ending(None, KILLS) if getattr(exc, "returncode", None) in _KILLED else None


def _of_torch_spawn(exc: BaseException, _text: str) -> Ending | None:
    pid, code = getattr(exc, "error_pid", None), getattr(exc, "exit_code", None)
    if code not in _KILLED:
        return None
    return Ending(frozenset([pid]) if isinstance(pid, int) else None, KILLS)


def _of_torch_elastic(exc: BaseException, _text: str) -> Ending | None:
    failures = getattr(exc, "failures", None)
    each = list(failures.values()) if isinstance(failures, dict) else []
    killed = [failure for failure in each if getattr(failure, "exitcode", None) in _KILLED]
    pids = frozenset(getattr(failure, "pid", -1) for failure in killed)
    return Ending(pids, KILLS) if killed else None


_LOADER = re.compile(r"DataLoader worker \(pid\(s\) ([\d, ]+)\) exited unexpectedly")


def _of_data_loader(_exc: BaseException, text: str) -> Ending | None:
    found = _LOADER.match(text)
    return (
        Ending(frozenset(int(pid) for pid in re.findall(r"\d+", found.group(1))), DEATHS)
        if found
        else None
    )


class ChildRow(NamedTuple):
    """Exceptions that report a child's death."""

    package: str
    name: str
    ending: Callable[[BaseException, str], Ending | None]
    meaning: str  # for people: what it says
    source: str


CHILDREN = (
    ChildRow(
        "concurrent",
        "BrokenProcessPool",
        _of_pool,
        "a worker ended (joblib's and loky's TerminatedWorkerError are of this type)",
        "CPython, Lib/concurrent/futures/process.py",
    ),
    ChildRow(
        "distributed",
        "KilledWorker",
        _of_pool,
        "all workers that tried a task ended",
        "distributed, distributed/scheduler.py",
    ),
    ChildRow(
        "subprocess",
        "CalledProcessError",
        _of_exit_status,
        "exit status -9, or 137 of a shell",
        "CPython, Lib/subprocess.py",
    ),
    ChildRow(
        "torch",
        "ProcessExitedException",
        _of_torch_spawn,
        "exit code -9",
        "PyTorch, torch/multiprocessing/spawn.py",
    ),
    ChildRow(
        "torch",
        "ChildFailedError",
        _of_torch_elastic,
        "exit code -9 of a rank",
        "PyTorch, torch/distributed/elastic/multiprocessing/errors/__init__.py",
    ),
    ChildRow(
        "builtins",
        "RuntimeError",
        _of_data_loader,
        "DataLoader worker (pid(s) …) exited unexpectedly",
        "PyTorch, torch/utils/data/dataloader.py",
    ),
)


def reason_of(exc: BaseException, text: str) -> str | None:
    """ "child_process:VERDICT" if a child that `exc` may refer to died for lack of memory; else None."""
    names = {
        ((base.__module__ or "").split(".", 1)[0], base.__name__) for base in type(exc).__mro__
    }
    for row in CHILDREN:
        ending = row.ending(exc, text) if (row.package, row.name) in names else None
        if ending is not None:
            return next(
                (
                    "child_process:" + verdict
                    for verdict, death in _verdicts(ending.pids)
                    if death in ending.deaths
                ),
                None,
            )
    return None


def _verdicts(pids: frozenset[int] | None) -> Iterator[tuple[str, object]]:
    """Verdict and kind of death, by the newest bundle of each recently died descendant."""
    listing = run_json("ls", "--json") or {}
    seen: set[int] = set()
    for row in listing.get("bundles") or []:
        pid = row.get("pid")
        if pid in seen or (pids is not None and pid not in pids):
            continue
        if pid != os.getpid() and _is_recent(row) and _is_descendant(row):
            seen.add(pid)
            yield str(row.get("verdict")), row.get("death")


def _is_recent(row: dict[str, Any]) -> bool:
    import calendar

    try:
        created = time.strptime(str(row.get("created_at_utc"))[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return False
    return time.time() - calendar.timegm(created) < _RECENT_S


def _is_descendant(row: dict[str, Any]) -> bool:
    """Whether this process, or a descendant that still runs (a fork server), started the bundle's process."""
    import json

    try:
        environment = read_in(str(row.get("bundle")), "environment.json", _MOST_BYTES)
        parent = int(json.loads(environment)["ppid"])
        for _generation in range(8):
            if parent == os.getpid():
                return True
            with open(f"/proc/{parent}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass  # the bundle may be another user's
    return False
