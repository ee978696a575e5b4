"""watch_exceptions: adds uncaught exceptions to bundles.

Our hooks replace the previous ones, and call them. `cancel()` restores those. If another hook has replaced
ours since, it keeps calling ours, which then only calls the previous one.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Mapping

from .exceptions import Capture, capture
from .recorder import RECORDER


class ExceptionWatch:
    """The handle that `watch_exceptions` returns; `cancel()` restores the hooks."""

    def __init__(self, metadata: Mapping[Any, Any] | None, objects: bool) -> None:
        since = RECORDER.failures()
        self._capture = Capture(since, 0, True, context=None, metadata=metadata, objects=objects)
        self._active = True
        self._undo = [
            self._install(sys, "excepthook", lambda kind, error, entry: error),
            self._install(threading, "excepthook", lambda args: args.exc_value),
            self._install(sys, "unraisablehook", lambda args: args.exc_value),
            self._install(
                _event_loop_class(),
                "call_exception_handler",
                lambda loop, context: context.get("exception"),
            ),
        ]

    def cancel(self) -> None:
        """Restores the previous hooks. May be called twice."""
        self._active = False
        while self._undo:
            self._undo.pop()()

    def _install(
        self, owner: Any, name: str, error_of: Callable[..., BaseException | None]
    ) -> Callable[[], None]:
        previous = getattr(owner, name)

        def hook(*arguments: Any) -> Any:
            if self._active:
                self._capture_error(error_of, arguments)
            return previous(*arguments)

        setattr(owner, name, hook)

        def undo() -> None:
            if getattr(owner, name) is hook:
                setattr(owner, name, previous)

        return undo

    def _capture_error(
        self, error_of: Callable[..., BaseException | None], arguments: tuple[Any, ...]
    ) -> None:
        try:
            error = error_of(*arguments)
            if isinstance(error, BaseException):
                capture(error, self._capture)
        except Exception:
            return  # not Python's arguments; the previous hook gets them unchanged


def _event_loop_class() -> Any:
    from asyncio import BaseEventLoop

    return BaseEventLoop


def watch_exceptions(
    metadata: Mapping[Any, Any] | None = None, objects: bool = False
) -> ExceptionWatch:
    """Adds every uncaught exception for lack of memory to a bundle, as `capture_oom` does.

    It covers exceptions that

    * end the program or a thread (`sys.excepthook`, `threading.excepthook`),
    * cannot be raised, as in `__del__` (`sys.unraisablehook`),
    * come from asyncio's tasks and callbacks that nobody awaits (not from other event loops, such as uvloop).

    The previous hooks still run afterwards, so the program prints the same. A hook that the program sets later
    replaces this one unless it calls its predecessor: call this function last.

    Args:
        metadata: for the bundles' `custom_metadata`, as in `capture_oom`
        objects: also write objects.json, as in `capture_oom`

    Returns:
        a handle: `cancel()` restores the hooks
    """
    return ExceptionWatch(metadata, objects)
