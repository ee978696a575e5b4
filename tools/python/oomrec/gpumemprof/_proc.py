"""Figures of this process and of the machine, from /proc and the cgroup, in bytes. Replaces psutil.

Every function is thread-safe. `resident_bytes`, which a tracker calls on each tick, reads one small file.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CGROUPS = "/sys/fs/cgroup"
_MEMBERSHIP = "/proc/self/cgroup"


def virtual_and_resident_bytes() -> tuple[int, int]:
    """Address space and resident memory of this process."""
    with open("/proc/self/statm", "rb") as file:
        pages = file.read().split(None, 2)
    return int(pages[0]) * _PAGE_BYTES, int(pages[1]) * _PAGE_BYTES


def resident_bytes() -> int:
    """Resident memory of this process (RSS)."""
    return virtual_and_resident_bytes()[1]


def trim_heap() -> None:
    """Returns free memory of the C library's heap to the system; takes milliseconds per GiB."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


def peak_resident_bytes() -> int:
    """The peak RSS of this process (VmHWM); the current RSS if the kernel does not report it."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return resident_bytes()


class HighWaterMark:
    """The peak RSS since this object was made.

    The kernel's mark covers the whole life of the process. It is this block's peak only if it has risen since.
    """

    def __init__(self) -> None:
        self._before = peak_resident_bytes()

    def risen_to(self) -> int:
        """The peak RSS since, in bytes; 0 if it was as high before."""
        now = peak_resident_bytes()
        return now if now > self._before else 0


class CpuClock:
    """The share of one core that this process used between two readings."""

    def __init__(self) -> None:
        self._previous = (time.monotonic(), self._seconds())

    @staticmethod
    def _seconds() -> float:
        times = os.times()
        return times.user + times.system

    def percent(self) -> float:
        """Percent of a core since the last call (or since this object was made)."""
        now = (time.monotonic(), self._seconds())
        elapsed, used = now[0] - self._previous[0], now[1] - self._previous[1]
        if elapsed <= 0:
            return 0.0
        self._previous = now
        return 100.0 * used / elapsed


class Memory(NamedTuple):
    """The machine's memory."""

    total_bytes: int
    available_bytes: int

    @property
    def percent(self) -> float:
        """Share in use, 0 to 100."""
        used = self.total_bytes - self.available_bytes
        return round(100.0 * used / self.total_bytes, 1) if self.total_bytes else 0.0


def machine_memory() -> Memory:
    """MemTotal and MemAvailable."""
    values: dict[bytes, int] = {}
    with open("/proc/meminfo", "rb") as file:
        for line in file:
            key, _, rest = line.partition(b":")
            if key in (b"MemTotal", b"MemAvailable"):
                values[key] = int(rest.split()[0]) * 1024
    return Memory(values.get(b"MemTotal", 0), values.get(b"MemAvailable", 0))


def _limit_in(directory: str, name: str) -> int | None:
    """The smallest limit of a cgroup and its parents; None if there is none, or it is unreadable.

    The mount point is read, too: in a container with its own cgroup namespace it is the container's cgroup.
    """
    smallest: int | None = None
    while len(directory) >= len(_CGROUPS):
        try:
            with open(f"{directory}/{name}", encoding="ascii") as file:
                text = file.read().strip()
        except OSError:
            text = ""
        if text.isdigit():
            smallest = int(text) if smallest is None else min(smallest, int(text))
        directory = os.path.dirname(directory)
    return smallest


def cgroup_limit_bytes() -> int | None:
    """The nearest memory limit of this process' cgroups, version 1 or 2; None if there is none."""
    try:
        with open(_MEMBERSHIP, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limit = _limit_in(os.path.normpath(f"{_CGROUPS}/{path}"), "memory.max")
        elif "memory" in controllers.split(","):
            directory = os.path.normpath(f"{_CGROUPS}/memory/{path}")
            limit = _limit_in(directory, "memory.limit_in_bytes")
        else:
            continue
        if limit is not None:
            return limit
    return None


def host_limit_bytes() -> int:
    """The most memory that this process can use: its cgroup's limit or the machine's memory."""
    total = machine_memory().total_bytes
    limit = cgroup_limit_bytes()
    return total if limit is None else min(limit, total)


def physical_cores() -> int:
    """The machine's cores, without hyper-threads; the logical ones if /proc/cpuinfo does not list cores."""
    cores = set()
    package = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "physical id":
                    package = value.strip()
                elif key.strip() == "core id":
                    cores.add((package, value.strip()))
    except OSError:
        pass
    return len(cores) or os.cpu_count() or 1
