"""What every tracker does, whatever it samples: sample on a clock, keep events, alert, export, and
write a bundle when memory runs out.

Samples are taken by the package's one thread (oomrec._thread), which sleeps in between; a tracker that
does not track has none. Methods may be called from any thread; callbacks are called by whoever took
the sample, without a lock held. A forked child's trackers have stopped: they were its parent's.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Mapping, TypeVar

from .. import _exceptions
from .._session import at_fork
from .._thread import Subscription, subscribe
from ..errors import ConfigurationError
from . import _recorder
from ._capture import CaptureOOM
from ._classify import classify_oom_exception
from ._events import ALERT_TYPES, TrackingEvent, as_telemetry, selected, timeline
from ._ranks import rank_identity
from .device_collectors import DeviceMemoryCollector, DeviceMemorySample
from .oom_flight_recorder import OOMFlightRecorder, OOMFlightRecorderConfig
from .telemetry import write_telemetry_events
from .utils import format_bytes

logger = logging.getLogger(__name__)

AlertCallback = Callable[[TrackingEvent], Any]
Self = TypeVar("Self", bound="Tracker")

BACK_OFF_S = 1.0  # after a sample that failed
ALERT_AGAIN_S = 1.0  # while a threshold stays passed

_COUNTERS = (
    "peak_memory",
    "total_allocations",
    "total_deallocations",
    "total_allocation_bytes",
    "total_deallocation_bytes",
    "alert_count",
)
_trackers: weakref.WeakSet[Tracker] = weakref.WeakSet()


def default_thresholds() -> dict[str, float]:
    """Percent of the device in use; growth in one tick, in bytes; share of reserved memory unused."""
    return {
        "memory_warning_percent": 80.0,
        "memory_critical_percent": 95.0,
        "memory_leak_threshold": 100.0 * 1024 * 1024,
        "fragmentation_threshold": 0.3,
    }


class Tracker:
    """Follows one device's memory. A context manager: tracks within the block."""

    def __init__(
        self,
        collector: DeviceMemoryCollector,
        sampling_interval: float,
        max_events: int,
        enable_alerts: bool,
        oom: OOMFlightRecorderConfig,
        identity: Mapping[str, Any],
    ) -> None:
        if not sampling_interval > 0:
            raise ConfigurationError(
                f"sampling_interval={sampling_interval!r}: a number of seconds above 0 is needed"
            )
        if max_events < 1:
            raise ConfigurationError(f"max_events={max_events!r}: at least 1 is needed")
        self.collector = collector
        self.collector_capabilities = collector.capabilities()
        self.backend = collector.name()
        self.sampling_interval = sampling_interval
        self.max_events = max_events
        self.enable_alerts = enable_alerts
        self.is_tracking = False
        self.thresholds = default_thresholds()
        self.alert_callbacks: list[AlertCallback] = []
        self.stats: dict[str, Any] = {**dict.fromkeys(_COUNTERS, 0), "tracking_start_time": None}
        self.total_memory = self.sample().total_bytes or 0

        self._identity = rank_identity(**identity)
        self._events: deque[TrackingEvent] = deque(maxlen=max_events)
        self._lock = threading.Lock()
        self._subscription: Subscription | None = None
        self._last_allocated = 0
        self._not_before = 0.0  # of the next sample, after one that failed
        self._alerted: dict[str, float] = {}  # when a threshold's last alert was
        self._stopped_at: float | None = None

        self._oom_flight_recorder = OOMFlightRecorder(oom)
        self._oom_enabled = oom.enabled
        self._bundle_before = _recorder.newest_bundle() if oom.enabled else None
        self._own_bundle: str | None = None
        _trackers.add(self)

    def sample(self) -> DeviceMemorySample:
        """The device's memory now. Raises what its framework raises when it cannot tell."""
        return self.collector.sample()

    @property
    def events(self) -> list[TrackingEvent]:
        """The last `max_events` events, the oldest first."""
        with self._lock:
            return list(self._events)

    @property
    def last_oom_dump_path(self) -> str | None:
        """The newest bundle of this process since this tracker was made; None: none.

        Also one that the recorder wrote by itself, when an allocation was refused.
        """
        if not self._oom_enabled:
            return None
        newest = _recorder.newest_bundle()
        return self._own_bundle if newest in (None, self._bundle_before) else newest

    # Tracking

    def start_tracking(self) -> None:
        """Begins to sample every `sampling_interval` seconds; nothing if it does already."""
        with self._lock:
            if self.is_tracking:
                return
            self.is_tracking = True
            self.stats["tracking_start_time"] = time.time()
            self._stopped_at = None
        self._oom_flight_recorder.begin()
        self._last_allocated = self._add_event("start", 0, "Memory tracking started")
        self._subscription = subscribe(self._tick, self.sampling_interval)

    def stop_tracking(self) -> Any:
        """Ends it; nothing if it was not tracking. Events and statistics stay."""
        with self._lock:
            if not self.is_tracking:
                return
            self.is_tracking = False
            self._stopped_at = time.time()
            subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()
        self._add_event("stop", 0, "Memory tracking stopped")
        self._oom_flight_recorder.end()

    def __enter__(self: Self) -> Self:
        self.start_tracking()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_tracking()

    def _tick(self) -> None:
        """One sample, by the package's thread."""
        if not self.is_tracking:  # in a forked child, whose parent tracks
            subscription, self._subscription = self._subscription, None
            if subscription is not None:
                subscription.cancel()
            return
        if time.monotonic() < self._not_before:
            return
        try:
            sample = self.sample()
        except Exception as error:
            self._not_before = time.monotonic() + BACK_OFF_S
            self._add_event("error", 0, f"Tracking error: {error}")
            return
        self._take(sample)

    def _take(self, sample: DeviceMemorySample) -> None:
        """Events, statistics and alerts of a sample."""
        change = sample.allocated_bytes - self._last_allocated
        self._last_allocated = sample.allocated_bytes
        with self._lock:
            is_peak = sample.allocated_bytes > self.stats["peak_memory"]
            if is_peak:
                self.stats["peak_memory"] = sample.allocated_bytes
            if change:
                kind = "allocation" if change > 0 else "deallocation"
                self.stats[f"total_{kind}s"] += 1
                self.stats[f"total_{kind}_bytes"] += abs(change)
        if is_peak:
            words = f"New peak memory: {format_bytes(sample.allocated_bytes)}"
            self._add_event("peak", change, words, sample=sample)
        if change > 0:
            words = f"Memory allocated: {format_bytes(change)}"
            self._add_event("allocation", change, words, sample=sample)
        elif change < 0:
            words = f"Memory freed: {format_bytes(-change)}"
            self._add_event("deallocation", change, words, sample=sample)
        if self.enable_alerts:
            self._check_alerts(sample, change)

    def _check_alerts(self, sample: DeviceMemorySample, change: int) -> None:
        percent = _percent_used(sample)
        for kind, word in (("critical", "CRITICAL"), ("warning", "WARNING")):
            if percent >= self.thresholds[f"memory_{kind}_percent"]:
                words = f"{word}: Memory usage at {percent:.1f}%"
                self._alert(kind, change, words, {"usage_percent": percent}, sample)
                break
        if change > self.thresholds["memory_leak_threshold"]:
            words = f"Large allocation detected: {format_bytes(change)}"
            self._add_event("warning", change, words, {"large_allocation": True}, sample)
        if sample.reserved_bytes > 0:
            unused = (sample.reserved_bytes - sample.allocated_bytes) / sample.reserved_bytes
            if unused > self.thresholds["fragmentation_threshold"]:
                words = f"High fragmentation: {unused:.1%}"
                self._alert("warning", change, words, {"fragmentation": unused}, sample)

    def _alert(
        self,
        kind: str,
        change: int,
        words: str,
        metadata: dict[str, Any],
        sample: DeviceMemorySample,
    ) -> None:
        """An event of a threshold that may stay passed for long: then it comes once a second."""
        name = f"{kind} {next(iter(metadata))}"
        now = time.monotonic()
        if now - self._alerted.get(name, -ALERT_AGAIN_S) < ALERT_AGAIN_S:
            return
        self._alerted[name] = now
        self._add_event(kind, change, words, metadata, sample)

    def _add_event(
        self,
        event_type: str,
        memory_change: int,
        context: str | None,
        metadata: dict[str, Any] | None = None,
        sample: DeviceMemorySample | None = None,
    ) -> int:
        """Keeps an event and calls the callbacks of an alert. Returns what is allocated, in bytes."""
        if sample is None:
            try:
                sample = self.sample()
            except Exception as error:
                logger.debug("no sample for an event: %s", error)
                sample = DeviceMemorySample(
                    0, 0, 0, None, None, None, None, self.collector.device_id
                )
        event = TrackingEvent(
            timestamp=time.time(),
            event_type=event_type,
            memory_allocated=sample.allocated_bytes,
            memory_reserved=sample.reserved_bytes,
            memory_change=memory_change,
            device_id=sample.device_id,
            context=context,
            metadata=metadata,
            active_memory=sample.active_bytes,
            inactive_memory=sample.inactive_bytes,
            device_used=sample.used_bytes,
            device_free=sample.free_bytes,
            device_total=sample.total_bytes,
            backend=self.backend,
        )
        is_alert = event_type in ALERT_TYPES
        with self._lock:
            self._events.append(event)
            self.stats["alert_count"] += is_alert
        self._oom_flight_recorder.record_event(event.to_dict())
        if is_alert:
            self._call_back(event)
        return sample.allocated_bytes

    def _call_back(self, event: TrackingEvent) -> None:
        for callback in list(self.alert_callbacks):
            try:
                callback(event)
            except Exception:
                logger.exception("an alert callback failed")

    # When memory runs out

    def handle_exception(
        self,
        exc: BaseException,
        context: str | None = None,
        metadata: Mapping[Any, Any] | None = None,
    ) -> str | None:
        """Writes a bundle if the exception is for lack of memory; its path, else None.

        None, too, where the flight recorder is off, or the bundle could not be written. `metadata`
        goes into `custom_metadata` of metadata.json. Never raises.
        """
        return self._handle(exc, context, metadata, None, None)

    def capture_oom(
        self, context: str = "runtime", metadata: Mapping[Any, Any] | None = None
    ) -> CaptureOOM:
        """A block: an exception that leaves it goes to `handle_exception`, and passes unchanged.

        Within the block the bundles that the recorder writes by itself go to `oom_dump_dir`, too. Also
        a decorator, of functions, coroutines and generators.
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
            # A task that is cancelled, a generator that is closed: an OOM may be their context.
            found = classify_oom_exception(error)
            if not found.is_oom or _exceptions.is_end(error):
                return None
            reason = found.reason or "oom_exception"
            self._add_error(reason, context)
            bundle = self._oom_flight_recorder.dump(
                reason=reason,
                exception=error,
                context=context,
                backend=self.backend,
                metadata={**dict(metadata or {}), "tracker": self._facts()},
                since=since,
                entered=entered,
            )
        except Exception as failed:  # for lack of memory: the recorder's own bundle stands
            logger.debug("an exception could not be recorded: %s", failed)
            return None
        if bundle is not None:
            self._own_bundle = bundle
        return bundle

    def _add_error(self, reason: str, context: str | None) -> None:
        words = f"Out of memory: {context}" if context else "Out of memory"
        with suppress(MemoryError):  # the bundle matters more than the event
            self._add_event("error", 0, words, {"oom_reason": reason})

    def _facts(self) -> dict[str, Any]:
        """Of this tracker, for a bundle."""
        return {
            "device_id": self.collector.device_id,
            "collector": self.collector_capabilities["telemetry_collector"],
            "sampling_interval_ms": self._interval_ms(),
            "total_memory": self.total_memory,
            **self.stats,
            **self._identity,
        }

    # What was seen

    def add_alert_callback(self, callback: AlertCallback) -> None:
        """`callback(event)` is called for each warning, critical and error event. What it raises is
        logged."""
        self.alert_callbacks.append(callback)

    def remove_alert_callback(self, callback: AlertCallback) -> None:
        """Ends it; nothing if it is not called."""
        if callback in self.alert_callbacks:
            self.alert_callbacks.remove(callback)

    def get_events(
        self,
        event_type: str | None = None,
        last_n: int | None = None,
        since: float | None = None,
    ) -> list[TrackingEvent]:
        """Events of a type, at or after `since` (seconds since 1970), of these the last `last_n`."""
        return selected(self.events, event_type, last_n, since)

    def get_alerts(self, last_n: int | None = None) -> list[TrackingEvent]:
        """Warnings, criticals and errors, the last `last_n` of them."""
        alerts = [event for event in self.events if event.event_type in ALERT_TYPES]
        return selected(alerts, last_n=last_n)

    def get_memory_timeline(self, interval: float = 1.0) -> dict[str, list[Any]]:
        """Memory every `interval` seconds: `timestamps`, `allocated` and `reserved`, of equal length."""
        return timeline(self.events, interval)

    def get_statistics(self) -> dict[str, Any]:
        """Counts and sums since the start, and the memory now; bytes, seconds, percent of 100."""
        try:
            now = self.sample()
        except Exception:
            now = DeviceMemorySample(0, 0, 0, None, None, None, None, self.collector.device_id)
        with self._lock:
            stats = dict(self.stats)
            times = [event.timestamp for event in self._events]
        begun = stats["tracking_start_time"]
        ended = time.time() if self._stopped_at is None else self._stopped_at
        duration = max(ended - begun, 0.0) if begun is not None else 0.0
        an_hour_ago = time.time() - 3600
        return {
            **stats,
            "total_events": len(times),
            "events_last_hour": sum(each > an_hour_ago for each in times),
            "current_memory_allocated": now.allocated_bytes,
            "current_memory_reserved": now.reserved_bytes,
            "memory_utilization_percent": _percent_used(now),
            "average_allocation_size": stats["total_allocation_bytes"]
            / max(stats["total_allocations"], 1),
            "average_deallocation_size": stats["total_deallocation_bytes"]
            / max(stats["total_deallocations"], 1),
            "tracking_duration_seconds": duration,
            "allocations_per_second": stats["total_allocations"] / max(duration, 1.0),
            "bytes_allocated_per_second": stats["total_allocation_bytes"] / max(duration, 1.0),
            "backend": self.backend,
            "oom_flight_recorder_enabled": self._oom_enabled,
            "last_oom_dump_path": self.last_oom_dump_path,
        }

    def export_events(self, filename: str | os.PathLike[str], format: str = "csv") -> None:
        """Writes the events as TelemetryEvent version 2: "csv" or "json", else ValueError."""
        host, pid = socket.gethostname() or "unknown", os.getpid()
        capabilities = {
            key: value
            for key, value in self.collector_capabilities.items()
            if key != "telemetry_collector"
        }
        records = (
            as_telemetry(
                event,
                collector=self.collector_capabilities["telemetry_collector"],
                sampling_interval_ms=self._interval_ms(),
                pid=pid,
                host=host,
                capabilities=capabilities,
                identity=self._identity,
            )
            for event in self.events
        )
        write_telemetry_events(filename, records, format)

    def _interval_ms(self) -> int:
        return int(round(self.sampling_interval * 1000))

    def clear_events(self) -> None:
        """Forgets events and counts; tracking goes on."""
        with self._lock:
            self._events.clear()
            self.stats.update(dict.fromkeys(_COUNTERS, 0))
        self._oom_flight_recorder.clear_events()

    def set_threshold(self, threshold_name: str, value: int | float) -> None:
        """Sets a threshold (see `thresholds`); ValueError where there is none of that name."""
        if threshold_name not in self.thresholds:
            known = ", ".join(self.thresholds)
            raise ValueError(f"Unknown threshold: {threshold_name}; there are {known}")
        self.thresholds[threshold_name] = value


def _percent_used(sample: DeviceMemorySample) -> float:
    """Of the device, by all who use it, 0 to 100."""
    return 100.0 * sample.used_bytes / sample.total_bytes if sample.total_bytes else 0.0


def _stop_in_child() -> None:
    for tracker in list(_trackers):
        tracker._lock = threading.Lock()
        tracker.is_tracking = False


at_fork(_stop_in_child)
