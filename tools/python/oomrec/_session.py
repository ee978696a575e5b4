"""The recording of this process, as the rest of the package uses it.

A process started under the recorder has a recording from its first instruction on. In any other process the
first call of `recorder()` begins one. That recording contains only labels, marks and exceptions, figures
from /proc, and torch's figures of its devices.
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
    """The library, with a recording. Never fails."""
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


def refreshed_recorder() -> Library:
    """Like `recorder()`. Without the preloaded library, first samples what no hook reports."""
    found = recorder()
    if not found.preloaded:
        note_devices(found)
        found.tick()
    return found


def at_begin(begin: Callable[[], None]) -> None:
    """Registers `begin`, called when a recording has begun, in this process and in each forked child."""
    _at_begin.append(begin)


def at_fork(reset: Callable[[], None]) -> None:
    """Registers `reset`, called in each forked child, which has one thread. It must not take a lock."""
    _in_child.append(reset)


def _after_fork_in_child() -> None:
    global _begun
    _begun = None
    for reset in _in_child:
        reset()


os.register_at_fork(after_in_child=_after_fork_in_child)
