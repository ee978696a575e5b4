"""What the marks say, and whether a measured test keeps to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable

_UNITS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4, "KIB": 1, "MIB": 2, "GIB": 3, "TIB": 4}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]+)\s*")


@dataclass(frozen=True)
class StackFrame:
    """One frame of a stack; "???" and 0 where it is not known."""

    function: str
    filename: str
    lineno: int


@dataclass(frozen=True)
class Stack:
    """Where memory was allocated: its frames, the innermost first."""

    frames: tuple[StackFrame, ...]


Filter = Callable[[Stack], bool]


@dataclass(frozen=True)
class Allocations:
    """What one stack allocated in a test, bytes as asked for, and what of it is still there."""

    stack: Stack
    native_stack: Stack
    allocated_bytes: int
    allocated_count: int
    live_bytes: int
    live_count: int


@dataclass(frozen=True)
class MemoryLimit:
    bytes: int
    current_thread_only: bool


@dataclass(frozen=True)
class LeakLimit:
    bytes: int
    filter_fn: Filter | None
    current_thread_only: bool


def parse_size(text: str) -> int:
    """Bytes of "24 MB": units B, KB, MB, GB, TB (and KiB …), each 1024 times the one before.

    Raises:
        ValueError: it is no such text
    """
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2].upper() not in _UNITS:
        raise ValueError(f'{text!r} is no size: write a number and a unit, such as "24 MB"')
    return int(float(found[1]) * 1024 ** _UNITS[found[2].upper()])


def memory_limit(limit: str, *, current_thread_only: bool = False) -> MemoryLimit:
    return MemoryLimit(parse_size(limit), current_thread_only)


def leak_limit(
    location_limit: str, *, filter_fn: Filter | None = None, current_thread_only: bool = False
) -> LeakLimit:
    if filter_fn is not None and not callable(filter_fn):
        raise ValueError(f"filter_fn is a function of a stack, not {filter_fn!r}")
    return LeakLimit(parse_size(location_limit), filter_fn, current_thread_only)


def leaks(limit: LeakLimit, stacks: list[Allocations]) -> list[Allocations]:
    """Of the stacks of a test those that leak more than is allowed, the largest first.

    Raises whatever the filter raises.
    """
    found = [
        one
        for one in stacks
        if one.live_bytes >= limit.bytes
        and (limit.filter_fn is None or limit.filter_fn(one.native_stack))
    ]
    return sorted(found, key=lambda one: -one.live_bytes)


def size_text(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if abs(size) < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
