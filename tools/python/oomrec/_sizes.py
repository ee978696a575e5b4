"""Sizes as people write them: "8G", "512M", "1.5 GiB"."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B)?\s*", re.IGNORECASE)
_POWERS = {"K": 10, "M": 20, "G": 30, "T": 40}


def bytes_of(size: int | str) -> int:
    """The number of bytes; K, M, G and T are powers of 1024, as in the command's options.

    ValueError where it is no size, TypeError where it is neither a number nor a text.
    """
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise TypeError(f"a size is a number of bytes or a text such as '8G', not {size!r}")
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        if found is None:
            raise ValueError(f"{size!r} is no size: write 512M, 8G or a number of bytes")
        number, unit = found.groups()
        size = int(float(number) * (1 << _POWERS[unit.upper()])) if unit else int(float(number))
    if not 0 <= size < 1 << 64:
        raise ValueError(f"{size} is no number of bytes that a limit can have")
    return size
