"""Text for a terminal. Names are other people's: nothing that they hold moves the cursor or changes a colour."""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, Sequence

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
COLOURS = {"alarm": "31", "good": "32", "quiet": "2", "bold": "1"}


def printable(text: Any, most: int = 80) -> str:
    """One line without control characters and what turns the direction of writing."""
    shown = "".join(each if each.isprintable() else "?" for each in str(text)[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def size_text(count: float | None) -> str:
    """Such as "2.6 GiB"; "-" for None."""
    if count is None:
        return "-"
    value = float(count)
    for unit in UNITS[:-1]:
        if abs(value) < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {UNITS[-1]}"


def counted(count: int, noun: str) -> str:
    """Such as "1 host" and "1,204 hosts"."""
    return f"{count:,} {noun}" + "s" * (count != 1)


def share_text(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def coloured(text: str, colour: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def table_text(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()
) -> str:
    """Columns with two blanks in between; those in `right` are aligned there. The cells must be printable."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    aligned = set(right)
    texts = []
    for line in lines:
        cells = [
            cell.rjust(width) if n in aligned else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(line, widths))
        ]
        texts.append("  ".join(cells).rstrip())
    texts[0] = coloured(texts[0], "quiet")
    return "\n".join(texts)
