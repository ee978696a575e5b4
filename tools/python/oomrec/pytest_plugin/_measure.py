"""Measures what a test allocates: its stacks by a label, its peak by a high-water mark.

The label identifies the test's blocks, whichever thread allocated them. The command reads their stacks from
this process' recording. The library keeps the high-water mark: the peak of live bytes during the test, above
those at its start.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

from .._impl.command import run_json
from .._impl.labels import context
from .._impl.library import library
from ._marks import Allocations, Stack, StackFrame

_UNKNOWN = "???"
_LABEL = "pytest "
_NO_LABEL_LEFT = "[other]"  # the recording's name for all labels beyond the first 4,096
_numbers = itertools.count(1)


class Measurement:
    """A context manager that measures one test."""

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
    """What a test's stacks allocated; None if that is unknown.

    `current_thread_only`: counts only the calling thread, which must be the main thread.
    """
    found = allocations_by_test(current_thread_only)
    if found is None:
        return None
    return found.get(measured.number, None if _NO_TEST in found else [])


_NO_TEST = 0  # the number for the program's own labels, and for tests that got no label


def allocations_by_test(current_thread_only: bool = False) -> dict[int, list[Allocations]] | None:
    """What each test's stacks have allocated, by Measurement.number; None if the recording is unreadable."""
    words = ["export", "--json", str(os.getpid())]
    if current_thread_only and threading.current_thread() is threading.main_thread():
        words += ["--group", "main"]
    exported = run_json(*words, timeout_s=120)
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
    return int(word) if word.isdigit() else _NO_TEST
