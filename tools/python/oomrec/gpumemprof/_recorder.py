"""This process' recorder, as trackers use it: its figures, and its dump settings.

The dump directory and retention belong to the whole process. Each active flight recorder pushes its settings
on a stack, and the topmost apply. Below them are those that the process was started with. Nothing here fails
without the library: `problem` says why there is none.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from .._impl.bundles import last_bundle
from .._impl.library import library
from .._impl.recorder import RECORDER, at_fork
from .._impl.usage import DeviceUsage, Usage, read


class Dumps(NamedTuple):
    """The dump directory, and how many bundles and MiB it keeps (0: no limit)."""

    directory: str  # absolute
    max_dumps: int
    max_total_mb: int


def problem() -> str:
    """Why bundles cannot be written; "" if they can."""
    return library().problem


def _usage() -> Usage | None:
    return read(library())


def devices() -> tuple[DeviceUsage, ...]:
    """The GPUs on which the recorder saw this process allocate."""
    usage = _usage()
    return () if usage is None else usage.devices


def counted_device_bytes(ordinal: int) -> int | None:
    """This process' bytes on a GPU, as the hooks counted them; None if they do not see the GPU."""
    if not library().preloaded:
        return None
    return next((each.counted for each in devices() if each.ordinal == ordinal), None)


def nearest_limit() -> tuple[int, int] | None:
    """Used bytes and limit of the host's nearest limit; None if there is none, or no recording."""
    usage = _usage()
    return None if usage is None or usage.limit is None else (usage.used_of_limit, usage.limit)


def newest_bundle() -> str | None:
    """The path of this process' newest bundle, whoever requested it; None if there is none."""
    return None if problem() else last_bundle()


def failures() -> int:
    """The number of this process' failed allocations so far, which is the latest one's number."""
    return RECORDER.failures()


class _DumpSettings:
    """The stack of settings, of which the topmost apply."""

    def __init__(self) -> None:
        self._stack: list[tuple[int, Dumps]] = []  # id() of the owner, and its settings
        self.renew_lock()

    def renew_lock(self) -> None:
        """In a forked child: another thread of the parent may have held the lock. The stack is inherited."""
        self._lock = threading.Lock()

    def use(self, owner: object, dumps: Dumps) -> None:
        """Applies `owner`'s settings from now on."""
        with self._lock:
            self._stack.append((id(owner), dumps))
            self._apply()

    def release(self, owner: object) -> None:
        """Undoes `owner`'s latest `use`: the settings below it apply again."""
        with self._lock:
            for index in range(len(self._stack) - 1, -1, -1):
                if self._stack[index][0] == id(owner):
                    del self._stack[index]
                    break
            self._apply()

    def _apply(self) -> None:
        if not self._stack:
            RECORDER.set_dumps(None, 0, 0)
            return
        dumps = self._stack[-1][1]
        RECORDER.set_dumps(os.fsencode(dumps.directory), dumps.max_dumps, dumps.max_total_mb)


_settings = _DumpSettings()
at_fork(_settings.renew_lock)
use_dumps, release_dumps = _settings.use, _settings.release
