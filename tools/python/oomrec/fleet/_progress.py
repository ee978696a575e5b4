"""A progress bar on stderr, if that is a terminal."""

from __future__ import annotations

import sys
import time
from typing import Iterable, Iterator, Sized, TypeVar

T = TypeVar("T")
WIDTH = 30
EVERY_S = 0.1


class Progress:
    """Draws "reading rows ████░░ 40 %". It appears after half a second, so short work shows none."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = max(total, 1)
        self._done = 0
        self._due = time.monotonic() + 0.5 if sys.stderr.isatty() else float("inf")
        self._drawn = False

    def add(self, count: int = 1) -> None:
        self._done += count
        if (now := time.monotonic()) < self._due:
            return
        share = min(self._done / self._total, 1.0)
        filled = int(share * WIDTH)
        bar = "█" * filled + "░" * (WIDTH - filled)
        sys.stderr.write(f"\r\033[K{self._what} {bar} {100 * share:.0f} %")
        sys.stderr.flush()
        self._due = now + EVERY_S
        self._drawn = True

    def end(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def with_progress(what: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
    bar = Progress(
        what, total if total is not None else len(items) if isinstance(items, Sized) else 0
    )
    try:
        for item in items:
            yield item
            bar.add()
    finally:
        bar.end()
