"""A tracker's part when memory runs out: `capture_oom` and `handle_exception` write the exception into a
bundle, with the tracker's last events. They never raise, and change no exception."""

from __future__ import annotations

import logging
from contextlib import suppress
from types import TracebackType
from typing import Any, Callable, Mapping, Optional

from .._impl import exceptions
from .._impl.captured import next_moment
from .._impl.decorate import Function, guarded
from . import _recorder
from ._classify import classify_oom_exception
from .oom_flight_recorder import OOMFlightRecorder, OOMFlightRecorderConfig

logger = logging.getLogger(__name__)

# Takes the exception, context, metadata, the latest failure before the block, the moment it was entered.
Handle = Callable[
    [BaseException, Optional[str], Optional[Mapping[Any, Any]], Optional[int], Optional[int]],
    object,
]


class CaptureOOM:
    """A context manager, and a decorator for functions of every kind; generators and coroutines are covered
    only while they run. Use an object for one block at a time."""

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
        self._since = _recorder.failures() if self._recorder.config.enabled else None
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


class CapturesOOM:
    """The half of a tracker that handles an exception for lack of memory."""

    backend: str

    def __init__(self, config: OOMFlightRecorderConfig) -> None:
        """Raises ConfigurationError if bundles are enabled, but there is no library to write them."""
        self._oom_flight_recorder = OOMFlightRecorder(config)
        self._bundle_before = _recorder.newest_bundle() if config.enabled else None
        self._own_bundle: str | None = None

    def _add_oom_event(self, context: str, reason: str) -> None:
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """This tracker's description, for a bundle."""
        raise NotImplementedError

    @property
    def oom_buffer_size(self) -> int:
        """Maximum number of its events in a bundle."""
        return self._oom_flight_recorder.config.buffer_size

    @property
    def last_oom_dump_path(self) -> str | None:
        """This process' newest bundle since the tracker was made; or None.

        It may be one that the recorder wrote by itself at a failed allocation.
        """
        if not self._oom_flight_recorder.config.enabled:
            return None
        newest = _recorder.newest_bundle()
        return self._own_bundle if newest in (None, self._bundle_before) else newest

    def handle_exception(
        self,
        exc: BaseException,
        context: str | None = None,
        metadata: Mapping[Any, Any] | None = None,
    ) -> str | None:
        """Writes a bundle if the exception is for lack of memory, and returns its path; else None.

        Also None if the flight recorder is off, or writing failed. `metadata`
        goes into `custom_metadata` of metadata.json. Never raises.
        """
        return self._handle(exc, context, metadata, None, None)

    def capture_oom(
        self, context: str = "runtime", metadata: Mapping[Any, Any] | None = None
    ) -> CaptureOOM:
        """Passes an exception that leaves the block to `handle_exception`; it goes on unchanged.

        In the block the recorder's own bundles go to `oom_dump_dir`, too. Also a decorator for
        functions, coroutines and generators.
        """
        return CaptureOOM(self._handle, self._oom_flight_recorder, context, metadata)

    def _handle(
        self,
        error: BaseException,
        context: str | None,
        metadata: Mapping[Any, Any] | None,
        since: int | None,
        entered: int | None,
    ) -> str | None:
        try:
            # A cancelled task or closed generator is no failure, even with an OOM as its context.
            found = classify_oom_exception(error)
            if not found.is_oom or exceptions.is_end(error):
                return None
            reason = found.reason or "oom_exception"
            with suppress(MemoryError):  # the bundle matters more than the event
                self._add_oom_event(
                    f"Out of memory: {context}" if context else "Out of memory", reason
                )
            bundle = self._oom_flight_recorder.dump(
                reason=reason,
                exception=error,
                context=context,
                backend=self.backend,
                metadata={**dict(metadata or {}), "tracker": self._facts()},
                since=since,
                entered=entered,
            )
        except Exception as failed:  # for lack of memory: the recorder's own bundle remains
            logger.debug("an exception could not be recorded: %s", failed)
            return None
        if bundle is not None:
            self._own_bundle = bundle
        return bundle
