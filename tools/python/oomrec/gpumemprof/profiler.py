"""GPUMemoryProfiler: a device's memory before, after and at the peak of functions and blocks."""

from __future__ import annotations

import gc
import time
import traceback
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Iterator

from . import _proc
from ._devices import imported, public_device
from ._profiling import OWN_FILES, Profiler
from .device_collectors import build_device_memory_collector


@dataclass
class MemorySnapshot:
    """A device at one moment; sizes in bytes, `timestamp` in seconds since 1970.

    `cpu_memory` is this process' resident memory, 0 if it is not tracked. The maxima are the allocator's
    since the profiled block began; if the framework has none, the highest samples so far.
    """

    timestamp: float
    allocated_memory: int
    reserved_memory: int
    max_memory_allocated: int
    max_memory_reserved: int
    active_memory: int
    inactive_memory: int
    cpu_memory: int
    device_id: int = 0
    operation: str | None = None
    stack_trace: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass
class ProfileResult:
    """One call of a function, or one run of a block; bytes and seconds."""

    function_name: str
    execution_time: float
    memory_before: MemorySnapshot
    memory_after: MemorySnapshot
    memory_peak: MemorySnapshot
    memory_allocated: int
    memory_freed: int
    tensors_created: int
    tensors_deleted: int
    call_count: int = 1

    def memory_diff(self) -> int:
        """Allocated after minus allocated before, in bytes."""
        return self.memory_after.allocated_memory - self.memory_before.allocated_memory

    def peak_memory_usage(self) -> int:
        """The peak in between, in bytes."""
        return self.memory_peak.allocated_memory

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, `memory_diff` and `peak_memory_usage`."""
        return {
            **asdict(self),
            "memory_diff": self.memory_diff(),
            "peak_memory_usage": self.peak_memory_usage(),
        }


class GPUMemoryProfiler(Profiler[MemorySnapshot, ProfileResult]):
    """Measures functions and blocks on one device. As a context manager it stops its monitoring.

    Args:
        device: as for MemoryTracker: a GPU, "cpu" (resident memory), None for the current GPU, else the host
        track_tensors: count PyTorch's tensors before and after (walks Python's objects, some
            milliseconds each)
        track_cpu_memory: put this process' resident memory into snapshots
        collect_stack_traces: put the last five frames of the caller into snapshots

    Raises:
        ConfigurationError: (a RuntimeError) there is no such device; the message says which to use
    """

    def __init__(
        self,
        device: Any = None,
        track_tensors: bool = True,
        track_cpu_memory: bool = True,
        collect_stack_traces: bool = False,
    ) -> None:
        super().__init__()
        self._collector = build_device_memory_collector(device)
        self.device = public_device(self._collector.device_id)
        self.track_tensors = track_tensors
        self.track_cpu_memory = track_cpu_memory
        self.collect_stack_traces = collect_stack_traces
        self._reset_maxima()
        self._baseline = self._take_snapshot("baseline")

    @property
    def function_stats(self) -> dict[str, list[ProfileResult]]:
        """The results by function."""
        by_name: dict[str, list[ProfileResult]] = {}
        for result in self.results:
            by_name.setdefault(result.function_name, []).append(result)
        return by_name

    def _reset_maxima(self) -> None:
        self._seen_allocated = self._seen_reserved = 0
        self._collector.reset_peak()

    def _take_snapshot(self, operation: str | None = None) -> MemorySnapshot:
        sample = self._collector.sample()
        # The collector's peak, and samples: not every framework has a peak.
        allocated, reserved = self._collector.peak()
        self._seen_allocated = max(self._seen_allocated, sample.allocated_bytes, allocated)
        self._seen_reserved = max(self._seen_reserved, sample.reserved_bytes, reserved)
        return MemorySnapshot(
            timestamp=time.time(),
            allocated_memory=sample.allocated_bytes,
            reserved_memory=sample.reserved_bytes,
            max_memory_allocated=self._seen_allocated,
            max_memory_reserved=self._seen_reserved,
            active_memory=sample.active_bytes or 0,
            inactive_memory=sample.inactive_bytes or 0,
            cpu_memory=_proc.resident_bytes() if self.track_cpu_memory else 0,
            device_id=sample.device_id,
            operation=operation,
            stack_trace=self._stack_trace() if operation else None,
        )

    def _stack_trace(self) -> str | None:
        if not self.collect_stack_traces:
            return None
        frames = [frame for frame in traceback.extract_stack() if frame.filename not in _OWN_FILES]
        return "".join(traceback.format_list(frames[-5:]))

    def _count_tensors(self) -> int:
        torch = imported("torch")
        if not self.track_tensors or torch is None:
            return 0
        # issubclass of the type, not isinstance, which would read the object's own __class__.
        return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())

    @contextmanager
    def _block(self, name: str) -> Iterator[list[ProfileResult]]:
        ended: list[ProfileResult] = []
        self._collector.synchronize()
        self._reset_maxima()
        before = self._take_snapshot(f"before_{name}")
        tensors_before = self._count_tensors()
        begun = time.monotonic()
        try:
            yield ended
            self._collector.synchronize()
        finally:
            seconds = time.monotonic() - begun
            after = self._take_snapshot(f"after_{name}")
            tensors = self._count_tensors() - tensors_before
            peak = replace(
                after,
                allocated_memory=after.max_memory_allocated,
                reserved_memory=after.max_memory_reserved,
                operation=f"peak_{name}",
            )
            change = after.allocated_memory - before.allocated_memory
            ended.append(
                ProfileResult(
                    function_name=name,
                    execution_time=seconds,
                    memory_before=before,
                    memory_after=after,
                    memory_peak=peak,
                    memory_allocated=max(change, 0),
                    memory_freed=max(-change, 0),
                    tensors_created=max(tensors, 0),
                    tensors_deleted=max(-tensors, 0),
                )
            )
            self.results += ended

    def get_summary(self) -> dict[str, Any]:
        """All results, by function, and current memory; bytes and seconds."""
        now = self._take_snapshot("current")
        results = self.results
        seen = [result.peak_memory_usage() for result in results]
        seen += [snapshot.allocated_memory for snapshot in self.snapshots]
        allocated = sum(result.memory_allocated for result in results)
        freed = sum(result.memory_freed for result in results)
        by_name = self.function_stats
        return {
            "device": str(self.device),
            "total_functions_profiled": len(by_name),
            "total_function_calls": len(results),
            "total_execution_time": sum(result.execution_time for result in results),
            "total_memory_allocated": allocated,
            "total_memory_freed": freed,
            "net_memory_change": allocated - freed,
            "peak_memory_usage": max([*seen, now.allocated_memory]),
            "current_memory_usage": now.allocated_memory,
            "baseline_memory_usage": self._baseline.allocated_memory,
            "memory_change_from_baseline": now.allocated_memory - self._baseline.allocated_memory,
            "function_summaries": {name: _summary(each) for name, each in by_name.items()},
            "monitoring_active": self._monitoring.is_running,
            "snapshots_collected": len(self.snapshots),
        }

    def clear_results(self) -> None:
        """Deletes results and snapshots; current memory becomes the baseline."""
        self._reset_maxima()
        super().clear_results()


def _summary(results: list[ProfileResult]) -> dict[str, Any]:
    calls = len(results)
    seconds = sum(result.execution_time for result in results)
    allocated = sum(result.memory_allocated for result in results)
    return {
        "call_count": calls,
        "total_time": seconds,
        "avg_time": seconds / calls,
        "total_memory_allocated": allocated,
        "avg_memory_allocated": allocated / calls,
        "peak_memory": max(result.peak_memory_usage() for result in results),
    }


_OWN_FILES = (__file__, *OWN_FILES)

__all__ = ["GPUMemoryProfiler", "MemorySnapshot", "ProfileResult"]
