"""The recorder of this process, as trackers use it: its figures, and where its bundles go.

Where the bundles go, and how many stay, is the process' own setting. Each flight recorder that is at
work puts its own on a pile; the topmost counts, and under the last lies what the process was started
with. Nothing here fails where there is no library: `problem` tells why there is none.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from .._bundles import last_bundle
from .._library import library
from .._session import at_fork, recorder
from .._usage import DeviceUsage, Usage, read


class Dumps(NamedTuple):
    """Where bundles go, and how many and how much of them stays (0: without bound)."""

    directory: str  # absolute
    max_dumps: int
    max_total_mb: int


def problem() -> str:
    """Why bundles cannot be written; "" when they can."""
    return library().problem


def _usage() -> Usage | None:
    return read(library())


def devices() -> tuple[DeviceUsage, ...]:
    """The GPUs at which this process was seen to allocate."""
    usage = _usage()
    return () if usage is None else usage.devices


def counted_device_bytes(ordinal: int) -> int | None:
    """What the hooks counted of this process on a GPU; None where they see nothing of it."""
    if not library().preloaded:
        return None
    return next((each.counted for each in devices() if each.ordinal == ordinal), None)


def nearest_limit() -> tuple[int, int] | None:
    """Used and limit, in bytes, of the host's limit that is nearest; None: none, or not recorded."""
    usage = _usage()
    return None if usage is None or usage.limit is None else (usage.used_of_limit, usage.limit)


def newest_bundle() -> str | None:
    """Path of this process' newest bundle, whoever asked for it; None: there is none."""
    return None if problem() else last_bundle()


def failures() -> int:
    """Number of the latest refused allocation of this process, 0: none yet."""
    return recorder().failures()


_pile: list[tuple[int, Dumps]] = []  # who, what
_pile_lock = threading.Lock()


def _apply() -> None:
    if not _pile:
        recorder().set_dumps(None, 0, 0)
        return
    dumps = _pile[-1][1]
    recorder().set_dumps(os.fsencode(dumps.directory), dumps.max_dumps, dumps.max_total_mb)


def use_dumps(owner: object, dumps: Dumps) -> None:
    """Bundles go where `owner` wants them from now on."""
    with _pile_lock:
        _pile.append((id(owner), dumps))
        _apply()


def release_dumps(owner: object) -> None:
    """Takes back the latest `use_dumps` of `owner`: those before it count again."""
    with _pile_lock:
        for index in range(len(_pile) - 1, -1, -1):
            if _pile[index][0] == id(owner):
                del _pile[index]
                break
        _apply()


def _forget_lock() -> None:
    """In a forked child: another thread of the parent may have held it. The pile is inherited."""
    global _pile_lock
    _pile_lock = threading.Lock()


at_fork(_forget_lock)
