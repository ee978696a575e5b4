"""Sizes as people write them: "8G", "512M", "1.5 GiB", "24 MB"."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(B|([KMGT])(?:i?B)?)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def bytes_of(size: int | str, needs_unit: bool = False) -> int:
    """The number of bytes; K, M, G and T are powers of 1024, as in the command's options.

    `needs_unit`: a number alone is no size, as a limit of 24 is meant to be 24 of something.
    ValueError where it is no size, TypeError where it is neither a number nor a text.
    """
    example = '"24 MB"' if needs_unit else "512M, 8G or a number of bytes"
    taken = (str,) if needs_unit else (int, str)
    if isinstance(size, bool) or not isinstance(size, taken):
        raise TypeError(f"{size!r} is no size: write {example}")
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        if found is None or (needs_unit and found[2] is None):
            raise ValueError(f"{size!r} is no size: write {example}")
        size = int(float(found[1]) * (1 << _POWERS[(found[3] or "").upper()]))
    if not 0 <= size < 1 << 64:
        raise ValueError(f"{size} is no number of bytes that a limit can have")
    return size
