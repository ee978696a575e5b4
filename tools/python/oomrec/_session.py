"""The recording of this process, as the rest of the package uses it.

A process that was started under the recorder has one from its first instruction on. In any other
`recorder()` begins one at its first call: nothing is recorded there but what the process tells
(labels, marks, exceptions), what /proc says of it, and what torch says of its devices.
"""

from __future__ import annotations

import os
from typing import Callable

from ._library import Library, library
from ._torch_totals import note_devices

_begun: Library | None = None
_at_begin: list[Callable[[], None]] = []
_in_child: list[Callable[[], None]] = []


def recorder() -> Library:
    """The library, its recording begun. Never fails."""
    global _begun
    if _begun is None:
        loaded = library()
        if not loaded.preloaded:
            loaded.start()
        _begun = loaded
        for begin in _at_begin:
            begin()
        return loaded
    return _begun


def look() -> Library:
    """Like `recorder()`; what nobody tells by itself has been looked at just now."""
    found = recorder()
    if not found.preloaded:
        note_devices(found)
        found.tick()
    return found


def at_begin(begin: Callable[[], None]) -> None:
    """`begin` is called when the recording has begun, and when it has in a forked child."""
    _at_begin.append(begin)


def at_fork(forget: Callable[[], None]) -> None:
    """`forget` is called in each forked child, in which there is one thread. It takes no lock."""
    _in_child.append(forget)


def _after_fork_in_child() -> None:
    global _begun
    _begun = None
    for forget in _in_child:
        forget()


os.register_at_fork(after_in_child=_after_fork_in_child)
