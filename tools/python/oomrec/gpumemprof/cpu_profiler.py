"""Profiles and tracks the host's memory: RSS before and after functions, and over time."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Iterator

from . import _proc
from ._profiling import Profiler
from .tracker import MemoryTracker, TrackerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


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


class CPUMemoryProfiler(Profiler[CPUMemorySnapshot, CPUProfileResult]):
    """Measures RSS before and after functions and blocks, and periodically while monitoring."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = _proc.CpuClock()
        self._baseline = self._take_snapshot()

    def _take_snapshot(self, operation: str | None = None) -> CPUMemorySnapshot:
        del operation  # these snapshots have no name
        vms, rss = _proc.virtual_and_resident_bytes()
        return CPUMemorySnapshot(time.time(), rss, vms, self._clock.percent())

    @contextmanager
    def _block(self, name: str) -> Iterator[list[CPUProfileResult]]:
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


class CPUMemoryTracker(MemoryTracker):
    """Tracks this process' resident memory: MemoryTracker(device="cpu") with a longer interval.

    Alerts are for the nearest limit: the soft limit or RLIMIT_AS if the recorder runs, the cgroup's, or the
    machine's memory. Methods, exceptions and `options` are MemoryTracker's; options are given by name.
    """

    def __init__(
        self,
        sampling_interval: float = 0.5,
        max_events: int = 10000,
        enable_alerts: bool = True,
        **options: Unpack[TrackerOptions],
    ) -> None:
        super().__init__("cpu", sampling_interval, max_events, enable_alerts, **options)

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
