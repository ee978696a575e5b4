"""Prints tests that exceed their limits, and the tests that allocated most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict

from ._marks import Allocations, LeakLimit, MemoryLimit, Stack, size_text

_MOST_STACKS = 10  # of one test
_FEWEST_LEAK_FRAMES = 5
_WHY_UNKNOWN = (
    "The command oomrec could not read the recording (try `oomrec export --json PID` on a recorded process to see "
    "why), or no label was left for this test: a recording has 4,096, so measure fewer tests in one process."
)

# {"bytes", "count", "stacks": [{"bytes", "count", "frames": [text]}]}: what was allocated
Plain = Dict[str, Any]


@dataclass(frozen=True)
class Style:
    frames: int
    native: bool


@dataclass(frozen=True)
class Problem:
    text: str
    section: tuple[str, str]


@dataclass
class Result:
    test: str
    peak_bytes: int
    allocations: Plain = field(default_factory=dict)


def _frames(stack: Stack, most: int) -> list[str]:
    lines = [f"{frame.function}:{frame.filename}:{frame.lineno}" for frame in stack.frames[:most]]
    return [*lines, "..."] if len(stack.frames) > most else lines


def _stack_of(one: Allocations, native: bool) -> Stack:
    return one.native_stack if native else one.stack


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _listing(title: str, rows: list[tuple[int, int, Stack]], frames: int, word: str) -> str:
    lines = [title]
    for size, count, stack in rows[:_MOST_STACKS]:
        lines.append(f"    - {size_text(size)} in {_blocks(count)} {word} here:")
        lines += [f"        {line}" for line in _frames(stack, frames)]
    if len(rows) > _MOST_STACKS:
        lines.append(f"    ...and {len(rows) - _MOST_STACKS} more")
    return "\n".join(lines)


def over_limit(
    limit: MemoryLimit, peak: int, found: list[Allocations] | None, style: Style
) -> Problem:
    """`found`: None if the allocations are unknown."""
    rows = sorted(
        (
            (one.allocated_bytes, one.allocated_count, _stack_of(one, style.native))
            for one in found or ()
        ),
        key=lambda row: -row[0],
    )
    listing = _listing("List of allocations:", rows, style.frames, "allocated")
    return Problem(
        f"Test was limited to {size_text(limit.bytes)} but allocated {size_text(peak)}",
        ("oomrec-max-memory", _WHY_UNKNOWN if found is None else listing),
    )


def more_than_before(before: int, peak: int) -> Problem:
    return Problem(
        f"Test previously used {size_text(before)} but now uses {size_text(peak)}",
        ("oomrec-max-memory", "Test uses more memory than at its last success"),
    )


def leaking(limit: LeakLimit, found: list[Allocations], style: Style) -> Problem:
    rows = [(one.live_bytes, one.live_count, _stack_of(one, style.native)) for one in found]
    frames = max(style.frames, _FEWEST_LEAK_FRAMES)
    return Problem(
        f"Test was allowed to leak {size_text(limit.bytes)} per location "
        "but at least one location leaked more",
        (
            "oomrec-leaked-memory",
            _listing("List of leaked allocations:", rows, frames, "allocated"),
        ),
    )


def filter_failed(error: Exception) -> Problem:
    return Problem(
        f"filter_fn of limit_leaks raised {type(error).__name__}: {error}",
        (
            "oomrec-leaked-memory",
            "It is called for each stack that leaks, and must return True or False.",
        ),
    )


def unreadable() -> Problem:
    return Problem("The test's leaks are unknown", ("oomrec-leaked-memory", _WHY_UNKNOWN))


def as_plain(found: list[Allocations], style: Style) -> Plain:
    """A test's part of the report, in types that xdist can send."""
    largest = sorted(found, key=lambda one: -one.allocated_bytes)[:5]
    return {
        "bytes": sum(one.allocated_bytes for one in found),
        "count": sum(one.allocated_count for one in found),
        "stacks": [
            {
                "bytes": one.allocated_bytes,
                "count": one.allocated_count,
                "frames": _frames(_stack_of(one, style.native), style.frames),
            }
            for one in largest
        ],
    }


def write(terminal: Any, results: list[Result]) -> None:
    terminal.write_line("")
    terminal.write_sep("=", "OOMREC REPORT")
    if not results:
        terminal.write_line("No test was measured.")
    for result in results:
        terminal.write_line("")
        terminal.write_line(result.test, bold=True)
        terminal.write_line(f"    high-water mark  {size_text(result.peak_bytes)}")
        found = result.allocations
        if not found:
            continue
        terminal.write_line(
            f"    allocated        {size_text(found['bytes'])} in {_blocks(found['count'])}"
        )
        for stack in found["stacks"]:
            first, *rest = stack["frames"] or ["???"]
            terminal.write_line(f"      {size_text(stack['bytes']):>10}  {first}")
            for line in rest:
                terminal.write_line(f"                  {line}")
