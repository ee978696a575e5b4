"""The marks' limits, and the check of a measured test against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from .._impl.usage import bytes_of


@dataclass(frozen=True)
class StackFrame:
    """One frame of a stack; "???" and 0 if unknown."""

    function: str
    filename: str
    lineno: int


@dataclass(frozen=True)
class Stack:
    """The stack that allocated memory: its frames, innermost first."""

    frames: tuple[StackFrame, ...]


Filter = Callable[[Stack], bool]


@dataclass(frozen=True)
class Allocations:
    """What one stack allocated in a test, and how much of it is still live, as the allocator counts it."""

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


def limit_memory(limit: str, *, current_thread_only: bool = False) -> MemoryLimit:
    return MemoryLimit(bytes_of(limit, needs_unit=True), current_thread_only)


def limit_leaks(
    location_limit: str, *, filter_fn: Filter | None = None, current_thread_only: bool = False
) -> LeakLimit:
    if filter_fn is not None and not callable(filter_fn):
        raise ValueError(f"filter_fn is a function of a stack, not {filter_fn!r}")
    return LeakLimit(bytes_of(location_limit, needs_unit=True), filter_fn, current_thread_only)


# By the mark's name. Each takes the mark's arguments.
MAKERS: dict[str, Callable[..., MemoryLimit | LeakLimit]] = {
    "limit_memory": limit_memory,
    "limit_leaks": limit_leaks,
}


def leaks(limit: LeakLimit, stacks: list[Allocations]) -> list[Allocations]:
    """The test's stacks that leak more than allowed, largest first. Raises what the filter raises."""
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
