"""The flight recorder of gpumemprof's programs: a ring of a tracker's events, and bundles when memory
runs out.

Bundles are the recorder's own: `oomrec show` reads them, and an allocation that fails under
`oomrec run` has its bundle before the exception is raised. This adds where they go, how many stay,
what the exception said, and the tracker's last events.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

from .. import _exceptions
from .._seen import next_moment
from ..classify import OOMExceptionClassification
from ..errors import ConfigurationError
from . import _recorder
from ._bundle import add_events, add_system, time_of
from ._classify import classify_oom_exception
from .utils import get_system_info


@dataclass(frozen=True)
class OOMFlightRecorderConfig:
    """The settings of a flight recorder. `max_dumps` and `max_total_mb` (MiB) <= 0: no bound.

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
        """Raises ConfigurationError where it is enabled and there is no library to write bundles."""
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
        """In the block, all bundles of this process, the recorder's own too, follow this configuration."""
        if not self.config.enabled:
            yield
            return
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """From now on bundles follow this configuration, until the matching `end`."""
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
        """Writes a bundle of an exception, or completes the one of the refusal that caused it.

        Returns its path; None where the recorder is not enabled, or nothing could be written (the
        disk is full). Never raises, so that the exception reaches the program as it is.

        Args:
            reason: how the exception was known, `oom_reason` in `custom_metadata`
            context: a few words: what was being done
            backend: of the tracker, `backend` in `custom_metadata`
            metadata: the program's own, in `custom_metadata`; it does not overwrite the two above
            since: the latest refusal before the work began; a later one is the exception's, of this
                thread, else of another. If not given: the thread's latest that has no bundle of an
                exception yet
            entered: the moment (`oomrec._seen`) at which the work began; a bundle that was written
                for the exception since then is returned
        """
        if not self.config.enabled:
            return None
        own = {"oom_reason": reason, "backend": backend}
        now = time.time()
        with self.at_work():
            bundle = _exceptions.write(
                exception,
                _exceptions.Capture(
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
            # Those until now: what is freed while the exception passes is no way to it.
            add_events(bundle, [event for event in list(self._events) if time_of(event) <= now])
            with suppress(
                Exception
            ):  # a framework that fails when it is asked, or no memory for it
                add_system(bundle, get_system_info())
        return bundle


__all__ = [
    "OOMExceptionClassification",
    "OOMFlightRecorder",
    "OOMFlightRecorderConfig",
    "classify_oom_exception",
]
