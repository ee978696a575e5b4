"""TensorFlow's MemoryTracker and MemoryWatchdog: like gpumemprof's, but in MiB, with one threshold."""

from __future__ import annotations

import gc
import logging
import os
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from ..gpumemprof._alerts import Alert
from ..gpumemprof._events import TrackingEvent
from ..gpumemprof._periodic import PeriodicCall
from ..gpumemprof._telemetry_fields import nanoseconds
from ..gpumemprof.device_collectors import DeviceMemorySample
from ..gpumemprof.telemetry import TelemetryEventV2, telemetry_event_to_dict
from ..gpumemprof.tracker import MemoryTracker as GPUMemoryTracker
from ..gpumemprof.tracker import TrackerOptions
from ._tensorflow import MIB, build_collector, free_caches, resolve_device, tensorflow

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

RECENT_S = 10.0  # an alert counts as recent for that long


@dataclass
class TrackingResult:
    """A tracker's result; memory in MiB, times in seconds since 1970. `events`: a telemetry record of each
    sample."""

    start_time: float
    end_time: float
    memory_usage: list[float] = field(default_factory=list)
    timestamps: list[float] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    alerts_triggered: list[dict[str, Any]] = field(default_factory=list)
    peak_memory: float = 0.0
    average_memory: float = 0.0
    min_memory: float = 0.0

    @property
    def duration(self) -> float:
        """Seconds between the first sample and the last."""
        return self.end_time - self.start_time

    @property
    def memory_growth_rate(self) -> float:
        """MiB per second between the first sample and the last."""
        if len(self.memory_usage) < 2 or self.duration <= 0:
            return 0.0
        return (self.memory_usage[-1] - self.memory_usage[0]) / self.duration


class MemoryTracker(GPUMemoryTracker):
    """Tracks TensorFlow's memory on a GPU, or this process' resident memory.

    Args:
        sampling_interval: seconds between two samples
        alert_threshold_mb: alert above so many MiB. Callbacks receive a dictionary with
            timestamp, memory_mb, threshold_mb and message; at most once a second
        device: "/GPU:0", "/CPU:0", None for a GPU if TensorFlow has one
        enable_logging: log events
        max_events: how many events, samples and alerts to keep of each
        enable_alerts: as for gpumemprof.MemoryTracker, whose methods it has
        options: enable_oom_flight_recorder, oom_…, job_id, rank, local_rank, world_size, as for it

    Raises:
        ConfigurationError: (a RuntimeError) there is no such device, or no library for bundles
    """

    _build_collector = staticmethod(build_collector)

    def __init__(
        self,
        sampling_interval: float = 1.0,
        alert_threshold_mb: float | None = None,
        device: str | None = None,
        enable_logging: bool = True,
        max_events: int = 10000,
        enable_alerts: bool = True,
        **options: Unpack[TrackerOptions],
    ) -> None:
        self.alert_threshold_mb = alert_threshold_mb
        self.enable_logging = enable_logging
        self.memory_usage: list[float] = []
        self.timestamps: list[float] = []
        self.alerts: list[dict[str, Any]] = []
        super().__init__(device, sampling_interval, max_events, enable_alerts, **options)
        self.device = resolve_device(device)

    @property
    def tracking(self) -> bool:
        """Whether tracking is running."""
        return self.is_tracking

    def start_tracking(self) -> None:
        """Deletes earlier results, and starts tracking. No effect if already running."""
        if self.is_tracking:
            return
        with self._lock:
            for series in (self.memory_usage, self.timestamps, self.alerts):
                series.clear()
        self.clear_events()
        self._rate_limit.reset()
        self._add_sample(self.sample())
        super().start_tracking()
        self._log("tracking %s every %s s", self.device, self.sampling_interval)

    def stop_tracking(self) -> TrackingResult:
        """Stops tracking and returns the result."""
        super().stop_tracking()
        result = self.get_tracking_results()
        self._log("tracked %s; peak %.1f MiB", self.device, result.peak_memory)
        return result

    def get_tracking_results(self) -> TrackingResult:
        """The result so far."""
        with self._lock:
            usage, times = list(self.memory_usage), list(self.timestamps)
            alerts = [dict(alert) for alert in self.alerts]
        now = time.time()
        return TrackingResult(
            start_time=times[0] if times else now,
            end_time=times[-1] if times else now,
            memory_usage=usage,
            timestamps=times,
            events=[self._record(when, used) for when, used in zip(times, usage)],
            alerts_triggered=alerts,
            peak_memory=max(usage, default=0.0),
            average_memory=sum(usage) / len(usage) if usage else 0.0,
            min_memory=min(usage, default=0.0),
        )

    def _record(self, when: float, used: float) -> dict[str, Any]:
        """A sample as a telemetry record: `used` in MiB, `when` in seconds since 1970."""
        size = int(used * MIB)
        event = TelemetryEventV2(
            schema_version=2,
            timestamp_ns=nanoseconds(when),
            event_type="sample",
            collector=self.collector_capabilities["telemetry_collector"],
            sampling_interval_ms=self._interval_ms(),
            pid=os.getpid(),
            host=socket.gethostname() or "unknown",
            device_id=self.collector.device_id,
            allocator_allocated_bytes=size,
            allocator_reserved_bytes=size,
            allocator_active_bytes=None,
            allocator_inactive_bytes=None,
            allocator_change_bytes=0,
            device_used_bytes=size,
            device_free_bytes=None,
            device_total_bytes=None,
            context=None,
            **self.distributed_identity,
        )
        return telemetry_event_to_dict(event)

    def get_current_memory(self) -> float:
        """The current memory in MiB."""
        return self.sample().allocated_bytes / MIB

    def set_alert_threshold(self, threshold_mb: float | None) -> None:
        """Replaces the threshold, in MiB; None: no alerts."""
        self.alert_threshold_mb = threshold_mb

    def check_alerts(self) -> bool:
        """Whether there was an alert in the last ten seconds."""
        with self._lock:
            return any(time.time() - alert["timestamp"] < RECENT_S for alert in self.alerts)

    def _process(self, sample: DeviceMemorySample) -> None:
        self._add_sample(sample)
        super()._process(sample)

    def _add_sample(self, sample: DeviceMemorySample) -> None:
        with self._lock:
            self.memory_usage.append(sample.allocated_bytes / MIB)
            self.timestamps.append(time.time())
            for series in (self.memory_usage, self.timestamps):
                del series[: len(series) - self.max_events]

    def _check_alerts(self, sample: DeviceMemorySample, change: int) -> None:
        used, threshold = sample.allocated_bytes / MIB, self.alert_threshold_mb
        if threshold is None or used <= threshold:
            return
        message = f"Memory usage {used:.1f} MB exceeds threshold {threshold:.1f} MB"
        alert = Alert("warning", message, {"memory_mb": used, "threshold_mb": threshold})
        if self._rate_limit.admits(alert):
            self._add_event(alert.kind, change, alert.text, alert.metadata, sample)

    def _call_back(self, event: TrackingEvent) -> None:
        """Passes an alert to the callbacks, as a dictionary. Error events have none."""
        if not event.metadata or "threshold_mb" not in event.metadata:
            return
        alert = {"timestamp": event.timestamp, **event.metadata, "message": event.context}
        with self._lock:
            self.alerts.append(alert)
            del self.alerts[: len(self.alerts) - self.max_events]
        self._log("%s", event.context)
        for callback in list(self.alert_callbacks):
            try:
                callback(alert)  # type: ignore[arg-type] # as TensorFlow's programs expect it
            except Exception:
                logger.exception("an alert callback failed")

    def _log(self, words: str, *values: Any) -> None:
        if self.enable_logging:
            logger.info(words, *values)


class MemoryWatchdog:
    """Clears Keras' session and collects Python's cycles when TensorFlow uses too much memory.

    Args:
        max_memory_mb, cleanup_threshold_mb: MiB; cleaning begins at the lower one
        check_interval: seconds between two checks
        device: as for MemoryTracker
    """

    def __init__(
        self,
        max_memory_mb: float = 8000,
        cleanup_threshold_mb: float = 6000,
        check_interval: float = 5.0,
        device: str | None = None,
    ) -> None:
        self.max_memory_mb = max_memory_mb
        self.cleanup_threshold_mb = cleanup_threshold_mb
        self.check_interval = check_interval
        self.cleanup_count = 0
        self.cleanup_callbacks: list[Callable[[], Any]] = []
        self._collector = build_collector(device)
        self._checks = PeriodicCall()

    @property
    def active(self) -> bool:
        """Whether it is running."""
        return self._checks.is_running

    def add_cleanup_callback(self, callback: Callable[[], Any]) -> None:
        """Calls `callback()` after each cleaning."""
        self.cleanup_callbacks.append(callback)

    def start(self) -> None:
        """Starts checking every `check_interval` seconds. No effect if already running."""
        if not self._checks.is_running:
            self._checks.start(self._check, self.check_interval)

    def stop(self) -> None:
        """Stops checking."""
        self._checks.stop()

    def _check(self) -> None:
        used = self._collector.sample().allocated_bytes / MIB
        if used > min(self.max_memory_mb, self.cleanup_threshold_mb):
            logger.info("%.1f MiB are in use: cleaning up", used)
            self.force_cleanup()

    def force_cleanup(self) -> None:
        """Cleans up now."""
        self.cleanup_count += 1
        module = tensorflow()
        if module is not None:
            free_caches(module)
        gc.collect()
        for callback in list(self.cleanup_callbacks):
            try:
                callback()
            except Exception:
                logger.exception("a cleanup callback failed")


__all__ = ["MemoryTracker", "MemoryWatchdog", "TrackingResult"]
