"""The exceptions that have a bundle already, so that nested captures write only one.

An exception that leaves a capture may reach an outer one: unchanged, as the cause or context of another, or
in a group. A reference to it would keep its traceback, the frames and the memory that ran out. So this
module stores only two addresses: the exception's, and that of the traceback entry where it was captured.
The entry stays in the traceback for as long as the exception lives.

A later exception may get the same addresses, but only a capture that was entered before the first exception
was captured can be an outer one.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Iterator, NamedTuple

MOST_LINKS = 64  # linked exceptions examined: chains of causes may be long or circular

# A logical clock for entering and capturing; a call costs 30 ns.
next_moment = itertools.count(1).__next__


class _Captured(NamedTuple):
    error: int  # id()
    entry: int  # id() of the traceback's entry; 0: it had no traceback
    instruction: int  # of that entry
    moment: int
    bundle: str


_captured: deque[_Captured] = deque(maxlen=16)


def add(error: BaseException, bundle: str) -> None:
    entry = error.__traceback__
    instruction = entry.tb_lasti if entry is not None else 0
    entry_id = id(entry) if entry is not None else 0
    _captured.append(_Captured(id(error), entry_id, instruction, next_moment(), bundle))


def bundle_of(error: BaseException, entered: int) -> str | None:
    """The bundle written after moment `entered` for this exception, or for one linked to it."""
    recent = [captured for captured in tuple(_captured) if captured.moment > entered]
    if not recent:
        return None
    for linked in _linked(error):
        for captured in recent:
            if captured.error == id(linked) and _has_entry(linked, captured):
                return captured.bundle
    return None


def _has_entry(error: BaseException, captured: _Captured) -> bool:
    """Whether the exception's traceback still has the entry at which it was captured."""
    entry = error.__traceback__
    if captured.entry == 0:
        return entry is None
    while entry is not None:
        if id(entry) == captured.entry:
            return entry.tb_lasti == captured.instruction
        entry = entry.tb_next
    return False


def _linked(error: BaseException) -> Iterator[BaseException]:
    """The exception, its causes and contexts, and the members of groups, each once."""
    waiting: list[object] = [error]
    visited: set[int] = set()
    while waiting and len(visited) < MOST_LINKS:
        linked = waiting.pop()
        if not isinstance(linked, BaseException) or id(linked) in visited:
            continue
        visited.add(id(linked))
        yield linked
        waiting += (linked.__context__, linked.__cause__)
        members = getattr(linked, "exceptions", None)
        if isinstance(members, tuple):
            waiting += members
