"""MemoryTracker tracks the memory of a GPU or of this process; MemoryWatchdog frees cached memory.

A tracker samples periodically, and makes each change since the previous sample an event, in the log and in the
flight recorder's ring. Those of the host and of TensorFlow are MemoryTrackers with another collector.

The package's one thread (`_impl/thread.py`) takes the samples, and sleeps in between. It does not run for a
stopped tracker. Methods are thread-safe. In a forked child all trackers are stopped: they are its parent's.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
import weakref
from typing import Any, Callable, TypedDict, TypeVar

from .._impl.recorder import at_fork
from ..errors import ConfigurationError
from ._alerts import RateLimit, alerts_of, default_thresholds
from ._capture import CapturesOOM
from ._devices import public_device
from ._event_log import EventLog
from ._events import ALERT_TYPES, TrackingEvent
from ._periodic import PeriodicCall
from ._proc import trim_heap
from ._ranks import resolve_distributed_identity
from ._statistics import count, initial, statistics, zeros
from .device_collectors import (
    DeviceMemoryCollector,
    DeviceMemorySample,
    build_device_memory_collector,
)
from .oom_flight_recorder import OOMFlightRecorderConfig
from .utils import format_bytes

logger = logging.getLogger(__name__)

Self = TypeVar("Self", bound="MemoryTracker")

BACK_OFF_S = 1.0  # after a sample that failed

_trackers: weakref.WeakSet[MemoryTracker] = weakref.WeakSet()


class TrackerOptions(TypedDict, total=False):
    """The options that every kind of tracker has by name: MemoryTracker's."""

    enable_oom_flight_recorder: bool
    oom_dump_dir: str
    oom_buffer_size: int | None
    oom_max_dumps: int
    oom_max_total_mb: int
    job_id: str | None
    rank: int | None
    local_rank: int | None
    world_size: int | None


class MemoryTracker(EventLog, CapturesOOM):
    """Tracks the memory of one device, with alerts and an optional flight recorder.

        with MemoryTracker(device="cuda:0", enable_oom_flight_recorder=True) as tracker:
            with tracker.capture_oom("train", {"batch": 64}):
                train()

    Args:
        device: a number, "cuda", "cuda:0" or a torch.device for a GPU; "cpu" for the resident memory
            of this process; None for the current GPU, else the process
        sampling_interval: seconds between two samples
        max_events: events to keep
        enable_alerts: whether exceeded thresholds make events and call the callbacks
        enable_oom_flight_recorder: write a bundle when memory runs out. While tracking, or within
            `capture_oom`, the bundles of the whole process follow the options below
        oom_dump_dir: where bundles go
        oom_buffer_size: events in a bundle; None or <= 0: `max_events`
        oom_max_dumps: keep at most so many bundles in `oom_dump_dir`; <= 0: all
        oom_max_total_mb: keep at most so many MiB of bundles there; <= 0: all. The newest always stays
        job_id, rank, local_rank, world_size: for exported events; by default the launcher's

    Raises:
        ConfigurationError: (a RuntimeError) there is no such device; the message says which to use; or the
            flight recorder is enabled, but there is no library to write bundles
    """

    # Of the requested device.
    _build_collector: Callable[[Any], DeviceMemoryCollector] = staticmethod(
        build_device_memory_collector
    )

    def __init__(
        self,
        device: Any = None,
        sampling_interval: float = 0.1,
        max_events: int = 10000,
        enable_alerts: bool = True,
        enable_oom_flight_recorder: bool = False,
        oom_dump_dir: str = "oom_dumps",
        oom_buffer_size: int | None = None,
        oom_max_dumps: int = 5,
        oom_max_total_mb: int = 256,
        *,
        job_id: str | None = None,
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        collector = self._build_collector(device)
        if not sampling_interval > 0:
            raise ConfigurationError(
                f"sampling_interval must be > 0 seconds, not {sampling_interval!r}"
            )
        if max_events < 1:
            raise ConfigurationError(f"max_events must be >= 1, not {max_events!r}")
        self.device = public_device(collector.device_id)
        self.collector = collector
        self.collector_capabilities = collector.capabilities()
        self.backend = collector.name()
        self.sampling_interval = sampling_interval
        self.enable_alerts = enable_alerts
        self.is_tracking = False
        self.thresholds = default_thresholds()
        self.stats: dict[str, Any] = initial()
        self.total_memory = self.sample().total_bytes or 0

        self.distributed_identity = resolve_distributed_identity(
            job_id=job_id, rank=rank, local_rank=local_rank, world_size=world_size, env=os.environ
        )
        EventLog.__init__(self, max_events)
        CapturesOOM.__init__(
            self,
            OOMFlightRecorderConfig(
                enable_oom_flight_recorder,
                oom_dump_dir,
                oom_buffer_size if oom_buffer_size and oom_buffer_size > 0 else max_events,
                oom_max_dumps,
                oom_max_total_mb,
            ),
        )
        self._ticks = PeriodicCall()
        self._last_allocated = 0
        self._not_before = 0.0  # the earliest time for a sample after one that failed
        self._rate_limit = RateLimit()
        self._stopped_at: float | None = None
        _trackers.add(self)

    def sample(self) -> DeviceMemorySample:
        """The device's current memory. Raises the framework's own errors."""
        return self.collector.sample()

    def _sample_or_zeros(self) -> DeviceMemorySample:
        try:
            return self.sample()
        except Exception as error:
            logger.debug("a sample failed: %s", error)
            return DeviceMemorySample(0, 0, 0, None, None, None, None, self.collector.device_id)

    # The clock

    def start_tracking(self) -> None:
        """Starts sampling every `sampling_interval` seconds. No effect if already running."""
        with self._lock:
            if self.is_tracking:
                return
            self.is_tracking = True
            self.stats["tracking_start_time"] = time.time()
            self._stopped_at = None
        self._oom_flight_recorder.begin()
        self._last_allocated = self._add_event("start", 0, "Memory tracking started")
        try:
            self._ticks.start(self._tick, self.sampling_interval)
        except BaseException:  # no thread could be started
            self.stop_tracking()
            raise

    def stop_tracking(self) -> Any:
        """Stops sampling, and keeps events and statistics. No effect if not running."""
        with self._lock:
            if not self.is_tracking:
                return
            self.is_tracking = False
            self._stopped_at = time.time()
        self._ticks.stop()
        self._add_event("stop", 0, "Memory tracking stopped")
        self._oom_flight_recorder.end()

    def __enter__(self: Self) -> Self:
        self.start_tracking()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_tracking()

    def _tick(self) -> None:
        """Takes one sample, in the package's thread."""
        if time.monotonic() < self._not_before:
            return
        try:
            sample = self.sample()
        except Exception as error:
            self._not_before = time.monotonic() + BACK_OFF_S
            self._add_event("error", 0, f"Tracking error: {error}")
            return
        self._process(sample)

    # Processing a sample

    def _process(self, sample: DeviceMemorySample) -> None:
        """Updates events, statistics and alerts by a sample."""
        change = sample.allocated_bytes - self._last_allocated
        self._last_allocated = sample.allocated_bytes
        with self._lock:
            is_peak = count(self.stats, sample.allocated_bytes, change)
        if is_peak:
            text = f"New peak memory: {format_bytes(sample.allocated_bytes)}"
            self._add_event("peak", change, text, sample=sample)
        if change > 0:
            text = f"Memory allocated: {format_bytes(change)}"
            self._add_event("allocation", change, text, sample=sample)
        elif change < 0:
            text = f"Memory freed: {format_bytes(-change)}"
            self._add_event("deallocation", change, text, sample=sample)
        if self.enable_alerts:
            self._check_alerts(sample, change)

    def _check_alerts(self, sample: DeviceMemorySample, change: int) -> None:
        for alert in alerts_of(sample, change, self.thresholds):
            if self._rate_limit.admits(alert):
                self._add_event(alert.kind, change, alert.text, alert.metadata, sample)

    def _add_event(
        self,
        event_type: str,
        memory_change: int,
        context: str | None,
        metadata: dict[str, Any] | None = None,
        sample: DeviceMemorySample | None = None,
    ) -> int:
        """Stores an event, and calls the callbacks of an alert. Returns the allocated bytes.

        `sample`: the tick's; without one, a sample is taken now.
        """
        is_from_tick = sample is not None
        if sample is None:
            sample = self._sample_or_zeros()
        is_alert = event_type in ALERT_TYPES
        with (
            self._lock
        ):  # also for the time, so that the events of several threads are in its order
            if is_from_tick and not self.is_tracking:  # tracking stopped during the tick
                return sample.allocated_bytes
            event = TrackingEvent(
                timestamp=time.time(),
                event_type=event_type,
                memory_allocated=sample.allocated_bytes,
                memory_reserved=sample.reserved_bytes,
                memory_change=memory_change,
                device_id=sample.device_id,
                context=context,
                **self.distributed_identity,
                metadata=metadata,
                active_memory=sample.active_bytes,
                inactive_memory=sample.inactive_bytes,
                device_used=sample.used_bytes,
                device_free=sample.free_bytes,
                device_total=sample.total_bytes,
                backend=self.backend,
            )
            self._events.append(event)
            self.stats["alert_count"] += is_alert
            self.stats["total_events"] += 1
            self._oom_flight_recorder.record_event(event.to_dict())
        if is_alert:
            self._call_back(event)
        return sample.allocated_bytes

    def _add_oom_event(self, context: str, reason: str) -> None:
        self._add_event("error", 0, context, {"oom_reason": reason})

    def _facts(self) -> dict[str, Any]:
        return {
            "device_id": self.collector.device_id,
            "collector": self.collector_capabilities["telemetry_collector"],
            "sampling_interval_ms": self._interval_ms(),
            "total_memory": self.total_memory,
            **self.stats,
            **self.distributed_identity,
        }

    def get_statistics(self) -> dict[str, Any]:
        """Counts and sums since the start, and current memory.

        Numbers of events: `total_events` (those kept; `stats` counts all since the last clear),
        `events_last_hour`, `alert_count`, `total_allocations`, `total_deallocations`. Bytes:
        `peak_memory`, `total_allocation_bytes`, `total_deallocation_bytes`, `average_allocation_size`,
        `average_deallocation_size`, `current_memory_allocated`, `current_memory_reserved`. Per second:
        `allocations_per_second`, `bytes_allocated_per_second`. `memory_utilization_percent` is of 100;
        `tracking_start_time` and `last_memory_check` (the latest sample) in seconds since 1970, None
        and 0 before the first; `tracking_duration_seconds`; `backend`, `oom_flight_recorder_enabled`, `last_oom_dump_path`.
        """
        sample = self._sample_or_zeros()
        with self._lock:
            stats = dict(self.stats)
            times = [event.timestamp for event in self._events]
        return {
            **statistics(stats, times, sample, self._stopped_at),
            "backend": self.backend,
            "oom_flight_recorder_enabled": self._oom_flight_recorder.config.enabled,
            "last_oom_dump_path": self.last_oom_dump_path,
        }

    def clear_events(self) -> None:
        """Deletes events and counts; tracking continues."""
        with self._lock:
            self._events.clear()
            self.stats.update(zeros())
        self._oom_flight_recorder.clear_events()

    def set_threshold(self, threshold_name: str, value: int | float) -> None:
        """Sets one of `thresholds`; ValueError for an unknown name.

        `memory_warning_percent` (80) and `memory_critical_percent` (95): of the device in use;
        `memory_leak_threshold` (100 MiB): growth in one tick, in bytes; `fragmentation_threshold`
        (0.3): share of the reserved memory that is not allocated.
        """
        if threshold_name not in self.thresholds:
            known = ", ".join(self.thresholds)
            raise ValueError(f"Unknown threshold: {threshold_name}; there are {known}")
        self.thresholds[threshold_name] = value


def _stop_in_child() -> None:
    for tracker in list(_trackers):
        tracker._lock = threading.Lock()
        tracker.is_tracking = False


at_fork(_stop_in_child)


class MemoryWatchdog:
    """Frees cached memory when a tracker's alerts report that the device is filling up.

    It runs at most every 30 seconds, and empties the framework's cache. An aggressive cleanup (a critical
    alert, or `aggressive_cleanup_threshold` exceeded) collects Python's cycles first, and afterwards returns
    free memory of the host's heap to the system.

    Args:
        tracker: the tracker whose alerts count
        auto_cleanup: whether alerts count at all; `force_cleanup` always works
        cleanup_threshold: share of the device in use, 0 to 1, from which a warning counts
        aggressive_cleanup_threshold: the share from which it is aggressive
    """

    min_cleanup_interval = 30.0  # seconds

    def __init__(
        self,
        tracker: MemoryTracker,
        auto_cleanup: bool = True,
        cleanup_threshold: float = 0.9,
        aggressive_cleanup_threshold: float = 0.95,
    ) -> None:
        self.tracker = tracker
        self.auto_cleanup = auto_cleanup
        self.cleanup_threshold = cleanup_threshold
        self.aggressive_cleanup_threshold = aggressive_cleanup_threshold
        self.cleanup_count = 0
        self.last_cleanup_time = 0.0
        tracker.add_alert_callback(self._on_alert)

    def _on_alert(self, event: TrackingEvent) -> None:
        share = (event.metadata or {}).get("usage_percent", 0.0) / 100.0
        is_due = time.time() - self.last_cleanup_time >= self.min_cleanup_interval
        is_critical = event.event_type == "critical"
        if self.auto_cleanup and is_due and (is_critical or share >= self.cleanup_threshold):
            self.force_cleanup(is_critical or share >= self.aggressive_cleanup_threshold)

    def force_cleanup(self, aggressive: bool = False) -> None:
        """Frees now. A failure is an error event of the tracker, not an exception."""
        self.cleanup_count += 1
        self.last_cleanup_time = time.time()
        kind = "aggressive" if aggressive else "standard"
        try:
            if aggressive:
                gc.collect()
                self.tracker.collector.synchronize()
            self.tracker.collector.empty_cache()
            if aggressive:
                trim_heap()
        except Exception as error:
            self.tracker._add_event("error", 0, f"Cleanup failed: {error}")
            return
        self.tracker._add_event("cleanup", 0, f"Performed {kind} memory cleanup")

    def get_cleanup_stats(self) -> dict[str, Any]:
        """Number and times of cleanups (seconds since 1970, 0: never), and the settings."""
        return {
            "cleanup_count": self.cleanup_count,
            "last_cleanup_time": self.last_cleanup_time,
            "auto_cleanup_enabled": self.auto_cleanup,
            "cleanup_threshold": self.cleanup_threshold,
            "aggressive_cleanup_threshold": self.aggressive_cleanup_threshold,
        }


__all__ = ["MemoryTracker", "MemoryWatchdog", "TrackingEvent"]
