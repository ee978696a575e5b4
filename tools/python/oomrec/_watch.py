"""watch_exceptions: what nobody catches goes into a bundle, too.

The hooks stand in front of those that were there, and call them. Taken back by `cancel()`: a hook that
somebody has put in front of ours since keeps calling ours, which then only passes on.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Mapping

from ._exceptions import Capture, capture
from ._session import recorder


class ExceptionWatch:
    """The handle that `watch_exceptions` returns; `cancel()` restores the hooks."""

    def __init__(self, metadata: Mapping[Any, Any] | None, objects: bool) -> None:
        since = recorder().failures()
        self._capture = Capture(since, 0, True, context=None, metadata=metadata, objects=objects)
        self._active = True
        self._undo = [
            self._put_before(sys, "excepthook", lambda kind, error, entry: error),
            self._put_before(threading, "excepthook", lambda told: told.exc_value),
            self._put_before(sys, "unraisablehook", lambda told: told.exc_value),
            self._put_before(
                _event_loop_class(),
                "call_exception_handler",
                lambda loop, told: told.get("exception"),
            ),
        ]

    def cancel(self) -> None:
        """Restores the previous hooks. May be called twice."""
        self._active = False
        while self._undo:
            self._undo.pop()()

    def _put_before(
        self, owner: Any, name: str, error_of: Callable[..., BaseException | None]
    ) -> Callable[[], None]:
        before = getattr(owner, name)

        def hook(*arguments: Any) -> Any:
            if self._active:
                self._look(error_of, arguments)
            return before(*arguments)

        setattr(owner, name, hook)

        def undo() -> None:
            if getattr(owner, name) is hook:
                setattr(owner, name, before)

        return undo

    def _look(
        self, error_of: Callable[..., BaseException | None], arguments: tuple[Any, ...]
    ) -> None:
        try:
            error = error_of(*arguments)
            if isinstance(error, BaseException):
                capture(error, self._capture)
        except Exception:
            return  # arguments of another shape than Python's; the hook before ours gets them


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
