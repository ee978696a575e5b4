"""Sizes as people write them: "8G", "512M", "1.5 GiB", "24 MB"."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(B|([KMGT])(?:i?B)?)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


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
