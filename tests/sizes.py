"""What blocks of the C library's heap take up."""

from __future__ import annotations

# It rounds a small block up to 16 bytes, and one with a mapping of its own to whole pages.
MOST_ROUNDED = 8192


def take_up(held: int, requested: int, count: int = 1) -> bool:
    """Whether `held` is what so many blocks of the requested size take up."""
    return count * requested <= held < count * (requested + MOST_ROUNDED)


def held_by(shown: dict, function: str, key: str = "bytes") -> int:
    """What the holders with this function in their stacks hold together."""
    return sum(
        holder[key]
        for holder in shown["holders"]
        if any(frame["function"] == function for frame in holder["stack"])
    )


def bytes_in(rows: list[dict], function: str, space: str) -> int:
    """What a function, or one with this in its name, holds in a space."""
    return sum(
        row["bytes"]
        for row in rows
        if row["space"] == space
        and any(function in (frame["function"] or "") for frame in row["stack"])
    )
