"""What a test allocates: a label for its stacks, a mark of the highest water.

The label makes the test's blocks known among all others', whichever thread asked for them; whose stacks
they are the command reads from the recording of this very process. The high-water mark is the
library's: most that was held since the test began, above what was held then.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

from .._command import ask
from .._labels import context
from .._library import library
from ._marks import Allocations, Stack, StackFrame

_UNKNOWN = "???"
_LABEL = "pytest "
_NO_LABEL_LEFT = "[other]"  # what a recording names all labels beyond the first 4,096
_numbers = itertools.count(1)


class Measurement:
    """`with` around a test."""

    def __init__(self, test: str):
        self.number = next(_numbers)  # a test may run twice, and a recording cuts a long label
        self._context = context(f"{_LABEL}{self.number} {test}")
        self.peak_bytes = 0
        self.own_thread_peak_bytes = 0

    def __enter__(self) -> Measurement:
        self._context.__enter__()
        library().watermark_begin()
        return self

    def __exit__(self, *error: Any) -> None:
        self.peak_bytes = library().watermark(0)
        self.own_thread_peak_bytes = library().watermark(1)
        self._context.__exit__(*error)


def _frame(frame: dict[str, Any]) -> StackFrame:
    return StackFrame(
        frame["function"] or _UNKNOWN,
        frame["file"] or frame["module"] or _UNKNOWN,
        frame["line"] or 0,
    )


def allocations_of(
    measured: Measurement, current_thread_only: bool = False
) -> list[Allocations] | None:
    """What a test's stacks allocated; None where that cannot be told.

    `current_thread_only`: only of the thread that calls, which must be the main one.
    """
    found = allocations_by_test(current_thread_only)
    if found is None:
        return None
    return found.get(measured.number, None if _NOBODYS in found else [])


_NOBODYS = 0  # a label of the program's own that looks like a test's, or of tests that got none


def allocations_by_test(current_thread_only: bool = False) -> dict[int, list[Allocations]] | None:
    """What each test's stacks allocated up to now, by Measurement.number; None where the recording
    cannot be read."""
    words = ["export", "--json", str(os.getpid())]
    if current_thread_only and threading.current_thread() is threading.main_thread():
        words += ["--group", "main"]
    exported = ask(*words, timeout_s=120)
    if exported is None:
        return None
    frames, stacks = exported["frames"], exported["stacks"]
    found: dict[int, list[Allocations]] = {}
    for holder in exported["holders"]:
        if holder["space"] not in ("heap", "map"):
            continue
        chain = [frames[number] for number in stacks[holder["stack"]]]
        labels = [at for at, frame in enumerate(chain) if _is_label(frame)]
        if not labels:
            continue
        inside = [frame for frame in chain[: labels[-1]] if not _is_note(frame)]
        python = [frame for frame in inside if frame["kind"] == "python"]
        found.setdefault(_number(chain[labels[-1]]), []).append(
            Allocations(
                Stack(tuple(map(_frame, python or inside))),
                Stack(tuple(map(_frame, inside))),
                holder["allocated"]["bytes"],
                holder["allocated"]["count"],
                holder["live"]["bytes"],
                holder["live"]["count"],
            )
        )
    return found


def _is_note(frame: dict[str, Any]) -> bool:
    return frame["module"] is None and str(frame["function"]).startswith("[")


def _is_label(frame: dict[str, Any]) -> bool:
    return _is_note(frame) and frame["function"].startswith((f"[{_LABEL}", _NO_LABEL_LEFT))


def _number(label: dict[str, Any]) -> int:
    word = label["function"][1 + len(_LABEL) :].split(" ")[0].rstrip("]")
    return int(word) if word.isdigit() else _NOBODYS
