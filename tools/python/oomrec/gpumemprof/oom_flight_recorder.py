"""The flight recorder of gpumemprof's programs: a ring of a tracker's events, and bundles when memory
runs out.

The bundles are oomrec's own: `oomrec show` reads them, and under `oomrec run` a failed allocation has its
bundle before the exception is raised. This module adds the dump directory, the retention, the exception, and
the tracker's last events.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

from .._impl import exceptions
from .._impl.captured import next_moment
from ..classify import OOMExceptionClassification
from ..errors import ConfigurationError
from . import _recorder
from ._bundle import add_events, add_system, time_of
from ._classify import classify_oom_exception
from .utils import get_system_info


@dataclass(frozen=True)
class OOMFlightRecorderConfig:
    """The settings of a flight recorder. `max_dumps` and `max_total_mb` (MiB) <= 0: no limit.

    The newest bundle is never removed, however large it is.
    """

    enabled: bool = False
    dump_dir: str = "oom_dumps"
    buffer_size: int = 10_000
    max_dumps: int = 5
    max_total_mb: int = 256


class OOMFlightRecorder:
    """Keeps the last `buffer_size` events, and writes them into bundles."""

    def __init__(self, config: OOMFlightRecorderConfig) -> None:
        """Raises ConfigurationError if it is enabled, but there is no library to write bundles."""
        self.config = config
        if config.enabled and _recorder.problem():
            raise ConfigurationError(
                f"the OOM flight recorder needs liboomrec.so: {_recorder.problem()}"
            )
        self._events: deque[dict[str, Any]] = deque(maxlen=max(1, int(config.buffer_size)))
        self._dumps = _recorder.Dumps(
            os.path.abspath(os.path.expanduser(config.dump_dir)),
            max(0, int(config.max_dumps)),
            max(0, int(config.max_total_mb)),
        )
        self._since = _recorder.failures() if config.enabled else 0
        self._extended: deque[str] = deque(maxlen=16)

    def record_event(self, event: Mapping[str, Any]) -> None:
        """Keeps a copy of an event; beyond `buffer_size` it drops the oldest."""
        self._events.append(dict(event))

    def snapshot_events(self) -> list[dict[str, Any]]:
        """The events to keep, the oldest first."""
        return [dict(event) for event in list(self._events)]

    def clear_events(self) -> None:
        """Deletes the events."""
        self._events.clear()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """In the block this configuration applies to all bundles of this process, also the recorder's own."""
        if not self.config.enabled:
            yield
            return
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """Applies this configuration to all bundles, until the matching `end`."""
        if self.config.enabled:
            _recorder.use_dumps(self, self._dumps)

    def end(self) -> None:
        """Ends one `begin`."""
        if self.config.enabled:
            _recorder.release_dumps(self)

    def dump(
        self,
        *,
        reason: str,
        exception: BaseException,
        context: str | None,
        backend: str,
        metadata: Mapping[Any, Any] | None = None,
        since: int | None = None,
        entered: int | None = None,
    ) -> str | None:
        """Writes a bundle of an exception, or completes the one of the failed allocation that caused it.

        Returns its path; None if the recorder is not enabled, or nothing could be written (the disk is
        full). Never raises, so that the exception reaches the program unchanged.

        Args:
            reason: the rule that matched the exception, `oom_reason` in `custom_metadata`
            context: a few words: what the program was doing
            backend: the tracker's, `backend` in `custom_metadata`
            metadata: the program's own, in `custom_metadata`; it does not overwrite the two above
            since: the number of the latest failure before the work began. A later failure, of this thread
                or else of another, is the exception's. By default the thread's latest without an
                exception in its bundle
            entered: the moment (`next_moment()` of this module) at which the work began; a bundle that was written
                for the exception since then is returned
        """
        if not self.config.enabled:
            return None
        own = {"oom_reason": reason, "backend": backend}
        now = time.time()
        with self.at_work():
            bundle = exceptions.write(
                exception,
                exceptions.Capture(
                    since=self._since if since is None else since,
                    entered=next_moment() if entered is None else entered,
                    any_thread=since is not None,
                    context=context,
                    metadata={**dict(metadata or {}), **own},
                    objects=False,
                ),
            )
        if bundle is not None and bundle not in self._extended:
            self._extended.append(bundle)
            # Only events until now: what is freed while the exception propagates did not lead to it.
            add_events(bundle, [event for event in list(self._events) if time_of(event) <= now])
            with suppress(Exception):  # a framework's query fails, or there is no memory for it
                add_system(bundle, get_system_info())
        return bundle


__all__ = [
    "OOMExceptionClassification",
    "OOMFlightRecorder",
    "OOMFlightRecorderConfig",
    "classify_oom_exception",
]
