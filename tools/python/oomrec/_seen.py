"""Which exceptions have their bundle already, so that nested captures write one.

An exception that leaves a capture may arrive at the next one outside: as it was, or as the cause or
context of another, or in a group. Holding it until then would hold its traceback, the frames and the
memory that ran out. So only what it looked like is kept: its address, and the address of the
traceback's entry where it was captured, which is part of its traceback for as long as it lives.
A later exception may have the same addresses. But only a capture that was entered before the first
one was captured can be outside of it.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Iterator, NamedTuple

MOST_LINKS = 64  # exceptions looked at behind one: chains of causes may be long, or a ring

# When something was entered or captured, counted; one of them costs 30 ns.
next_moment = itertools.count(1).__next__


class _Captured(NamedTuple):
    error: int  # id()
    entry: int  # id() of the traceback's entry, 0: it had none
    instruction: int  # of that entry
    moment: int
    bundle: str


_captured: deque[_Captured] = deque(maxlen=16)


def remember(error: BaseException, bundle: str) -> None:
    entry = error.__traceback__
    instruction = entry.tb_lasti if entry is not None else 0
    place = id(entry) if entry is not None else 0
    _captured.append(_Captured(id(error), place, instruction, next_moment(), bundle))


def bundle_of(error: BaseException, entered: int) -> str | None:
    """The bundle that was written for this exception, or one behind it, after moment `entered`."""
    known = [captured for captured in tuple(_captured) if captured.moment > entered]
    if not known:
        return None
    for linked in _linked(error):
        for captured in known:
            if captured.error == id(linked) and _passed(linked, captured):
                return captured.bundle
    return None


def _passed(error: BaseException, captured: _Captured) -> bool:
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
    met: set[int] = set()
    while waiting and len(met) < MOST_LINKS:
        linked = waiting.pop()
        if not isinstance(linked, BaseException) or id(linked) in met:
            continue
        met.add(id(linked))
        yield linked
        waiting += (linked.__context__, linked.__cause__)
        members = getattr(linked, "exceptions", None)
        if isinstance(members, tuple):
            waiting += members
