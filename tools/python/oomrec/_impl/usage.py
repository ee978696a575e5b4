"""Memory in use, memory left, and the soft limit."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .library import Library
from .recorder import RECORDER

# Sizes as people write them: "8G", "512M", "1.5 GiB", "24 MB".
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(B|([KMGT])(?:i?B)?)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


class SpaceUsage(NamedTuple):
    """Memory in one space.

    The space `torch` is what torch uses inside its own segments. `cuda` or `hip` includes these segments.

    Attributes:
        name: "heap", "map", "cuda", "cuda_host", "hip", "torch", …
        live: bytes in use now, including what the allocator rounds up
        peak: the most bytes ever in use, exact to 64 KiB a thread
        allocated: bytes requested since the start, freed or not
        live_count: live blocks
    """

    name: str
    live: int
    peak: int
    allocated: int
    live_count: int


class DeviceUsage(NamedTuple):
    """A GPU, as its driver reports it.

    Attributes:
        kind: "cuda" or "hip"
        ordinal: the driver's number
        uuid: the device's own; "" if unknown
        name: the model
        total: bytes of memory
        free: bytes available to all processes
        used: bytes used by all processes and by the driver
        counted: bytes that this process allocated from the driver
        limit: bytes that this process may allocate (--limit-gpu); None: no limit
    """

    kind: str
    ordinal: int
    uuid: str
    name: str
    total: int
    free: int
    used: int
    counted: int
    limit: int | None


class Usage(NamedTuple):
    """The result of `usage`.

    Attributes:
        live: bytes in use in the spaces that add up (heap and mappings)
        peak: the highest `live`
        rss: bytes resident in RAM
        limit: the nearest limit of host memory, in bytes; None if there is none
        limit_kind: which one: "soft", "rlimit_as", "cgroup"; "" if there is none
        used_of_limit: bytes that count against it
        headroom: bytes left until it; None if there is no limit
        spaces: the spaces ever used
        devices: the devices that the program has used
    """

    live: int
    peak: int
    rss: int
    limit: int | None
    limit_kind: str
    used_of_limit: int
    headroom: int | None
    spaces: tuple[SpaceUsage, ...]
    devices: tuple[DeviceUsage, ...]

    def space(self, name: str) -> SpaceUsage:
        """The space of this name; all zero if it was never used."""
        for space in self.spaces:
            if space.name == name:
                return space
        return SpaceUsage(name, 0, 0, 0, 0)


class Activity(NamedTuple):
    """The result of `is_active`; true where allocations are recorded.

    Attributes:
        active: whether allocations are recorded
        missing: what is not recorded, and how to record it; "" if nothing is missing
    """

    active: bool
    missing: str

    def __bool__(self) -> bool:
        return self.active


def usage() -> Usage:
    """Memory in use by the process, and what is left.

    Without the recorder `spaces` is empty or has only what torch reports, and `live` is 0. Costs some 10 µs.
    Never raises.
    """
    RECORDER.refresh()
    return read(RECORDER.library) or Usage(0, 0, _resident_bytes(), None, "", 0, None, (), ())


def read(library: Library) -> Usage | None:
    """The recording's figures; None if there is no recording."""
    if not library.has("usage"):
        return None
    from . import c_api

    info = c_api.UsageStruct()
    info.size = c_api.size_of(info)
    if not library.usage(c_api.reference(info)):
        return None
    limit = info.limit_bytes or None
    return Usage(
        info.live_bytes,
        info.peak_bytes,
        info.rss_bytes,
        limit,
        _text(info.limit_kind),
        info.used_of_limit_bytes,
        info.headroom_bytes if limit is not None else None,
        tuple(
            SpaceUsage(
                _text(space.name),
                space.live_bytes,
                space.peak_bytes,
                space.allocated_bytes,
                space.live_count,
            )
            for space in info.spaces[: info.space_count]
        ),
        tuple(
            DeviceUsage(
                _text(device.kind),
                device.ordinal,
                _text(device.uuid),
                _text(device.name),
                device.total_bytes,
                device.free_bytes,
                device.used_bytes,
                device.counted_bytes,
                device.limit_bytes or None,
            )
            for device in info.devices[: info.device_count]
        ),
    )


def bytes_of(size: int | str, needs_unit: bool = False) -> int:
    """The number of bytes. K, M, G and T are powers of 1024, as in the command's options.

    `needs_unit`: rejects a number without a unit, because a limit of 24 surely means 24 of something.
    Raises ValueError if it is not a size, TypeError if it is neither a number nor a text.
    """
    example = '"24 MB"' if needs_unit else "512M, 8G or a number of bytes"
    accepted = (str,) if needs_unit else (int, str)
    if isinstance(size, bool) or not isinstance(size, accepted):
        raise TypeError(f"{size!r} is not a size: write {example}")
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        if found is None or (needs_unit and found[2] is None):
            raise ValueError(f"{size!r} is not a size: write {example}")
        size = int(float(found[1]) * (1 << _POWERS[(found[3] or "").upper()]))
    if not 0 <= size < 1 << 64:
        raise ValueError(f"{size} bytes is out of range: a limit is from 0 to 2**64 - 1")
    return size


def set_limit(limit: int | str | None) -> None:
    """Replaces this process' soft limit.

    An allocation beyond it fails, and Python raises MemoryError. Without the recorder (see `is_active`) it has
    no effect.

    Args:
        limit: bytes, or a text such as "8G" or "512M" (powers of 1024); None or 0 removes the limit

    Raises:
        ValueError: the text is not a size
        TypeError: neither a number nor a text
    """
    size = 0 if limit is None else bytes_of(limit)
    if RECORDER.library.preloaded:
        RECORDER.set_limit(size)


def is_active() -> Activity:
    """Reports whether allocations are recorded, and what is missing.

        activity = oomrec.is_active()
        if activity.missing:
            log.warning("oomrec: %s", activity.missing)

    True if the program was started under the recorder (`oomrec run`, LD_PRELOAD) and the recorder has not
    switched itself off. Never raises.
    """
    missing = RECORDER.library.problem or RECORDER.missing().decode(errors="replace")
    return Activity(bool(RECORDER.is_active()) and RECORDER.library.preloaded, missing)


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _text(field: bytes) -> str:
    return field.decode(errors="replace")
