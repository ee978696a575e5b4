"""The recording of this process, as the rest of the package uses it.

A process started under the recorder has a recording from its first instruction on. In any other process the
first use of `RECORDER` begins one. That recording contains only labels, marks and exceptions, figures
from /proc, and torch's figures of its devices.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import Any, Callable

from .library import Functions, Library, library

_at_begin: list[Callable[[], None]] = []
_in_child: list[Callable[[], None]] = []


class Recorder(Functions):
    """The functions of the library, with a recording, which the first use begins. Nothing of it fails.

    A forked child has a recording of its own, which its first use begins.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        """For a new process: each function begins a recording, and is the library's own from then on."""
        self._library: Library | None = None
        # `.failure`: each thread's `failures()` when its latest exception was written. Failures up to that
        # number belong to that exception, not to a later one.
        self.written = threading.local()
        for name in Functions.__annotations__:
            setattr(self, name, functools.partial(self._first_call, name))

    def _first_call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.library, name)(*arguments)

    @property
    def library(self) -> Library:
        """The library, once the recording has begun."""
        if self._library is None:
            loaded = library()
            if not loaded.preloaded:
                loaded.start()
            for name in Functions.__annotations__:
                setattr(self, name, getattr(loaded, name))
            self._library = loaded
            for begin in _at_begin:
                begin()
            return loaded
        return self._library

    def refresh(self) -> None:
        """Without the preloaded library, samples what no hook reports."""
        if not self.library.preloaded:
            self._note_torch_devices()
            self.tick()

    def _note_torch_devices(self) -> None:
        """Records what torch holds on each device, by its own figures. Never fails; takes 20 µs a device.

        This never imports torch, and queries only devices on which torch has memory: on another one the
        query would create a context of hundreds of megabytes.
        """
        torch: Any = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)  # None: torch is not imported, or not completely
        try:
            if cuda is None or not cuda.is_initialized():
                return
            kind = b"hip" if getattr(torch.version, "hip", None) else b"cuda"
            for ordinal in range(cuda.device_count()):
                reserved = cuda.memory_reserved(ordinal)
                if not reserved:
                    continue
                free, total = cuda.mem_get_info(ordinal)
                name = cuda.get_device_name(ordinal).encode()
                allocated = cuda.memory_allocated(ordinal)
                self.note_device(kind, ordinal, name, total, free, allocated, reserved)
        except Exception:
            return  # a lost device, or a torch without these functions


RECORDER = Recorder()


def at_begin(begin: Callable[[], None]) -> None:
    """Registers `begin`, called when a recording has begun, in this process and in each forked child."""
    _at_begin.append(begin)


def at_fork(reset: Callable[[], None]) -> None:
    """Registers `reset`, called in each forked child, which has one thread. It must not take a lock."""
    _in_child.append(reset)


def _after_fork_in_child() -> None:
    RECORDER._reset()
    for reset in _in_child:
        reset()


os.register_at_fork(after_in_child=_after_fork_in_child)
