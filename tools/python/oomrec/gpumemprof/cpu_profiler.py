"""Profiles and tracks the host's memory: RSS before and after functions, and over time."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Callable, Iterator

from . import _proc
from ._capture import oom_config
from ._periodic import PeriodicCall
from ._tracking import Tracker
from .device_collectors import CPUDeviceCollector


@dataclass
class CPUMemorySnapshot:
    """This process at one moment: `timestamp` in seconds since 1970, `rss` and `vms` (address space)
    in bytes, `cpu_percent` of one core since the snapshot before."""

    timestamp: float
    rss: int
    vms: int
    cpu_percent: float

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass
class CPUProfileResult:
    """One run of a function or block: `duration` in seconds, `peak_rss` in bytes."""

    name: str
    duration: float
    snapshot_before: CPUMemorySnapshot
    snapshot_after: CPUMemorySnapshot
    peak_rss: int

    def memory_diff(self) -> int:
        """RSS after minus RSS before, in bytes."""
        return self.snapshot_after.rss - self.snapshot_before.rss

    def to_dict(self) -> dict[str, Any]:
        """Name, duration, memory_diff, peak_rss, before and after."""
        return {
            "name": self.name,
            "duration": self.duration,
            "memory_diff": self.memory_diff(),
            "peak_rss": self.peak_rss,
            "before": self.snapshot_before.to_dict(),
            "after": self.snapshot_after.to_dict(),
        }


class CPUMemoryProfiler:
    """Measures RSS before and after functions and blocks, and periodically while monitoring."""

    def __init__(self) -> None:
        self.snapshots: list[CPUMemorySnapshot] = []
        self.results: list[CPUProfileResult] = []
        self._clock = _proc.CpuClock()
        self._monitoring = PeriodicCall()
        self._baseline = self._take_snapshot()

    def _take_snapshot(self) -> CPUMemorySnapshot:
        vms, rss = _proc.virtual_and_resident_bytes()
        return CPUMemorySnapshot(time.time(), rss, vms, self._clock.percent())

    def _sample(self) -> None:
        self.snapshots.append(self._take_snapshot())

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Starts taking a snapshot every `interval` seconds. No effect if already running."""
        if not self._monitoring.is_running:
            self._monitoring.start(self._sample, interval)
            self._sample()

    def stop_monitoring(self) -> None:
        """Stops taking snapshots, and keeps those taken."""
        self._monitoring.stop()

    def profile_function(
        self, func: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> CPUProfileResult:
        """Calls `func(*args, **kwargs)` and returns the measurement, not its result.

        Its exceptions pass through; `results` still gets an entry.
        """
        with self._block(getattr(func, "__name__", "cpu_function")) as ended:
            func(*args, **kwargs)
        return ended[0]

    @contextmanager
    def profile_context(self, name: str = "context") -> Iterator[CPUMemoryProfiler]:
        """Measures the block; the result is in `results` when it ends."""
        with self._block(name):
            yield self

    @contextmanager
    def _block(self, name: str) -> Iterator[list[CPUProfileResult]]:
        """Measures the block; the yielded list gets the result when the block ends."""
        ended: list[CPUProfileResult] = []
        before = self._take_snapshot()
        mark = _proc.HighWaterMark()
        begun = time.monotonic()
        try:
            yield ended
        finally:
            duration = time.monotonic() - begun
            after = self._take_snapshot()
            peak = max(before.rss, after.rss, mark.risen_to())
            ended.append(CPUProfileResult(name, duration, before, after, peak))
            self.results += ended

    def clear_results(self) -> None:
        """Deletes snapshots and results; current memory becomes the baseline."""
        self.snapshots.clear()
        self.results.clear()
        self._baseline = self._take_snapshot()

    def get_summary(self) -> dict[str, Any]:
        """`mode` "cpu", `snapshots_collected`, and in bytes `peak_memory_usage`, `baseline_rss` and
        `memory_change_from_baseline`."""
        seen = [self._baseline.rss]
        seen += [snapshot.rss for snapshot in self.snapshots]
        seen += [result.peak_rss for result in self.results]
        latest = self.snapshots[-1].rss if self.snapshots else self._take_snapshot().rss
        return {
            "mode": "cpu",
            "snapshots_collected": len(self.snapshots),
            "peak_memory_usage": max(seen),
            "memory_change_from_baseline": latest - self._baseline.rss,
            "baseline_rss": self._baseline.rss,
        }


class CPUMemoryTracker(Tracker):
    """Tracks this process' resident memory: MemoryTracker(device="cpu") with a longer interval.

    Alerts are for the nearest limit: the soft limit or RLIMIT_AS if the recorder runs, the cgroup's, or the
    machine's memory. Arguments and exceptions are MemoryTracker's.
    """

    def __init__(
        self,
        sampling_interval: float = 0.5,
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
        super().__init__(
            CPUDeviceCollector(),
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

    def get_statistics(self) -> dict[str, Any]:
        """As for MemoryTracker, and `mode` "cpu"."""
        return {"mode": "cpu", **super().get_statistics()}

    def export_events_with_timestamp(self, directory: str, format: str) -> str:
        """Writes the events into `directory`, named by the local time; returns the path."""
        now = datetime.now().strftime("%Y%m%d_%H%M%S")
        path = os.path.join(directory, f"cpu_tracker_{now}.{format}")
        self.export_events(path, format)
        return path


__all__ = [
    "CPUMemoryProfiler",
    "CPUMemorySnapshot",
    "CPUMemoryTracker",
    "CPUProfileResult",
]
