"""TFMemoryProfiler: memory before and after functions and blocks of a TensorFlow program, in MiB."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Iterator

from .._impl.decorate import Function, measured
from ..gpumemprof import _proc
from ..gpumemprof._periodic import PeriodicCall
from ._tensorflow import (
    MIB,
    build_collector,
    resolve_device,
    tensorflow,
)

COUNT_INTERVAL_S = 1.0  # between two counts of the tensors, each a walk through all Python objects


@dataclass
class MemorySnapshot:
    """One moment; memory in MiB (of 1,048,576 bytes), `gpu_utilization` in percent of the peak."""

    timestamp: float
    name: str
    gpu_memory_mb: float
    cpu_memory_mb: float
    gpu_memory_reserved_mb: float
    gpu_utilization: float
    num_tensors: int
    tensor_sizes: dict[str, float] = field(default_factory=dict)
    operation_name: str | None = None
    graph_node: str | None = None


@dataclass
class ProfileResult:
    """A profiler's result; memory in MiB of the device, or of this process on a CPU.

    `function_profiles` has for each name `calls`, `total_duration` (seconds), `total_memory_used` and
    `peak_memory` (MiB), and `snapshots`.
    """

    start_time: float
    end_time: float
    peak_memory_mb: float
    average_memory_mb: float
    min_memory_mb: float
    total_allocations: int
    total_deallocations: int
    snapshots: list[MemorySnapshot] = field(default_factory=list)
    function_profiles: dict[str, dict[str, Any]] = field(default_factory=dict)
    tensor_lifecycle: dict[str, Any] = field(default_factory=dict)
    memory_fragmentation: float = 0.0
    efficiency_score: float = 0.0

    @property
    def duration(self) -> float:
        """Seconds from the first snapshot to the last."""
        return self.end_time - self.start_time

    @property
    def memory_growth_rate(self) -> float:
        """MiB per second from the lowest to the peak."""
        grown = self.peak_memory_mb - self.min_memory_mb
        return grown / self.duration if self.duration > 0 else 0.0


class TFMemoryProfiler:
    """Profiles functions and blocks on one device.

    Args:
        device: "/GPU:0", "/CPU:0" (resident memory of this process), None for what TensorFlow has
        enable_tensor_tracking: count the tensors that Python holds, at most once a second

    Raises:
        ConfigurationError: (a RuntimeError) there is no such device, or no TensorFlow
    """

    def __init__(self, device: str | None = None, enable_tensor_tracking: bool = True) -> None:
        self.device = resolve_device(device)
        self.enable_tensor_tracking = enable_tensor_tracking
        self.snapshots: list[MemorySnapshot] = []
        self.function_profiles: dict[str, dict[str, Any]] = {}
        self._collector = build_collector(self.device)
        self._on_gpu = self._collector.device_id >= 0
        self._lock = threading.Lock()
        self._continuous = PeriodicCall()
        self._tensors = (-COUNT_INTERVAL_S, 0, 0)  # when, how many, bytes

    @property
    def profiling_active(self) -> bool:
        """Whether continuous profiling is running."""
        return self._continuous.is_running

    def _device_memory(self, snapshot: MemorySnapshot) -> float:
        return snapshot.gpu_memory_mb if self._on_gpu else snapshot.cpu_memory_mb

    def _count_tensors(self) -> tuple[int, int]:
        module = tensorflow()
        if not self.enable_tensor_tracking or module is None:
            return 0, 0
        when, count, size = self._tensors
        if time.monotonic() - when < COUNT_INTERVAL_S:
            return count, size
        count = size = 0
        for each in gc.get_objects():
            # issubclass of the type, not isinstance, which would read the object's own __class__.
            if issubclass(type(each), module.Tensor):
                count += 1
                size += _tensor_bytes(each)
        self._tensors = (time.monotonic(), count, size)
        return count, size

    def capture_snapshot(self, name: str = "snapshot") -> MemorySnapshot:
        """Takes a snapshot of current memory under this name."""
        gpu = peak = 0.0
        if self._on_gpu:
            gpu = self._collector.sample().allocated_bytes / MIB
            peak = self._collector.peak()[0] / MIB
        count, size = self._count_tensors()
        snapshot = MemorySnapshot(
            timestamp=time.time(),
            name=name,
            gpu_memory_mb=gpu,
            cpu_memory_mb=_proc.resident_bytes() / MIB,
            gpu_memory_reserved_mb=peak,
            gpu_utilization=min(100.0, 100.0 * gpu / peak) if peak else 0.0,
            num_tensors=count,
            tensor_sizes={"total_mb": size / MIB} if self.enable_tensor_tracking else {},
        )
        with self._lock:
            self.snapshots.append(snapshot)
        return snapshot

    def profile_function(self, func: Function) -> Function:
        """Decorator: measures each call under the function's name; a generator or coroutine to its end."""
        label = str(getattr(func, "__name__", "function"))
        return measured(func, lambda: self.profile_context(label))

    @contextmanager
    def profile_context(self, name: str = "context") -> Iterator[TFMemoryProfiler]:
        """Measures the block under `name` in `function_profiles`."""
        before = self.capture_snapshot(f"{name}_start")
        self._collector.reset_peak()
        begun = time.monotonic()
        try:
            yield self
        finally:
            seconds = time.monotonic() - begun
            after = self.capture_snapshot(f"{name}_end")
            self._add(name, seconds, before, after)

    def _add(
        self, name: str, seconds: float, before: MemorySnapshot, after: MemorySnapshot
    ) -> None:
        first, last = self._device_memory(before), self._device_memory(after)
        with self._lock:
            profile = self.function_profiles.setdefault(
                name,
                {
                    "calls": 0,
                    "total_duration": 0.0,
                    "total_memory_used": 0.0,
                    "peak_memory": 0.0,
                    "snapshots": [],
                },
            )
            profile["calls"] += 1
            profile["total_duration"] += seconds
            profile["total_memory_used"] += last - first
            profile["peak_memory"] = max(
                profile["peak_memory"], first, last, after.gpu_memory_reserved_mb
            )
            profile["snapshots"] += [before, after]

    def start_continuous_profiling(self, interval: float = 1.0) -> None:
        """Starts taking a snapshot every `interval` seconds. No effect if already running."""
        if not self._continuous.is_running:
            self._continuous.start(self._continue, interval)
            self._continue()

    def _continue(self) -> None:
        self.capture_snapshot("continuous")

    def stop_continuous_profiling(self) -> None:
        """Stops taking snapshots, and keeps those taken."""
        self._continuous.stop()

    def get_results(self) -> ProfileResult:
        """Sums up all snapshots. Without any, everything is 0."""
        with self._lock:
            snapshots = list(self.snapshots)
            profiles = {name: dict(profile) for name, profile in self.function_profiles.items()}
        memory = [self._device_memory(snapshot) for snapshot in snapshots] or [0.0]
        steps = [after - before for before, after in zip(memory, memory[1:])]
        now = time.time()
        peak = max(memory + [profile["peak_memory"] for profile in profiles.values()])
        average = sum(memory) / len(memory)
        count, size = self._count_tensors()
        return ProfileResult(
            start_time=snapshots[0].timestamp if snapshots else now,
            end_time=snapshots[-1].timestamp if snapshots else now,
            peak_memory_mb=peak,
            average_memory_mb=average,
            min_memory_mb=min(memory),
            total_allocations=sum(step > 0 for step in steps),
            total_deallocations=sum(step < 0 for step in steps),
            snapshots=snapshots,
            function_profiles=profiles,
            tensor_lifecycle={"active": {"count": count, "total_size_mb": size / MIB}},
            efficiency_score=average / peak if peak else 0.0,
        )

    def reset(self) -> None:
        """Deletes snapshots and functions."""
        with self._lock:
            self.snapshots.clear()
            self.function_profiles.clear()

    def __enter__(self) -> TFMemoryProfiler:
        self.capture_snapshot("context_start")
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_continuous_profiling()
        self.capture_snapshot("context_end")


def _tensor_bytes(tensor: Any) -> int:
    """Elements times their size, where both are known; contents are never copied."""
    try:
        return int(tensor.shape.num_elements() or 0) * int(tensor.dtype.size)
    except Exception:  # a symbolic tensor has no size yet
        return 0


__all__ = ["MemorySnapshot", "ProfileResult", "TFMemoryProfiler"]
