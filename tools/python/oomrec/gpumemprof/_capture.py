"""`tracker.capture_oom`: a block whose OOM becomes a bundle."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Mapping, Optional

from .._resumes import Function, guarded
from .._seen import next_moment
from . import _recorder
from .oom_flight_recorder import OOMFlightRecorder

# The exception, context, metadata, the thread's latest refusal before the block, when it was entered.
Handle = Callable[
    [BaseException, Optional[str], Optional[Mapping[Any, Any]], Optional[int], Optional[int]],
    object,
]


class CaptureOOM:
    """A context manager and a decorator, for functions of every kind; of generators and coroutines
    only what happens while they run. One object is for one block at a time."""

    __slots__ = ("_context", "_entered", "_handle", "_metadata", "_recorder", "_since")

    def __init__(
        self,
        handle: Handle,
        recorder: OOMFlightRecorder,
        context: str,
        metadata: Mapping[Any, Any] | None,
    ) -> None:
        self._handle = handle
        self._recorder = recorder
        self._context = context
        self._metadata = metadata

    def __enter__(self) -> None:
        self._recorder.begin()
        self._since = _recorder.last_failure() if self._recorder.config.enabled else None
        self._entered = next_moment()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                self._handle(error, self._context, self._metadata, self._since, self._entered)
        finally:
            self._recorder.end()

    def __call__(self, function: Function) -> Function:
        return guarded(
            function,
            lambda: CaptureOOM(self._handle, self._recorder, self._context, self._metadata),
        )
