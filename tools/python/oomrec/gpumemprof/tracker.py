"""MemoryTracker tracks the memory of a GPU or of this process; MemoryWatchdog frees cached memory."""

from __future__ import annotations

import gc
import time
from typing import Any

from ._capture import oom_config
from ._devices import public_device
from ._events import TrackingEvent
from ._proc import trim_heap
from ._tracking import Tracker
from .device_collectors import build_device_memory_collector


class MemoryTracker(Tracker):
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
        collector = build_device_memory_collector(device)
        super().__init__(
            collector,
            sampling_interval,
            max_events,
            enable_alerts,
            oom_config(
                enable_oom_flight_recorder,
                oom_dump_dir,
                oom_buffer_size,
                max_events,
                oom_max_dumps,
                oom_max_total_mb,
            ),
            job_id=job_id,
            rank=rank,
            local_rank=local_rank,
            world_size=world_size,
        )
        self.device = public_device(collector.device_id)


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
        tracker: Tracker,
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
