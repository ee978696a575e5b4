"""Sources of memory figures: one collector for each source, one sample type for all.

All sizes are bytes. "Used" is the device's own figure, for all processes. "Allocated" and "reserved" are this
process', by its allocator's count. Unknown figures are None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from . import _proc, _recorder
from ._devices import (
    cuda_driver_module,
    no_gpu,
    numba_cuda_with_gpu,
    out_of_range,
    parse_device,
    torch_with_gpu,
)


@dataclass(frozen=True)
class DeviceMemorySample:
    """Memory of one device at one moment, in bytes; `device_id` -1 is the host."""

    allocated_bytes: int
    reserved_bytes: int
    used_bytes: int
    free_bytes: int | None
    total_bytes: int | None
    active_bytes: int | None
    inactive_bytes: int | None
    device_id: int


class DeviceMemoryCollector(ABC):
    """Takes samples of one device. May be used from any thread."""

    device_id: int = -1
    # The functions or files that samples come from, for people.
    sampling_source: str = ""

    @abstractmethod
    def name(self) -> str:
        """The backend: "cuda", "rocm" or "cpu"."""

    @abstractmethod
    def is_available(self) -> bool:
        """Whether `sample` works in this process now."""

    @abstractmethod
    def sample(self) -> DeviceMemorySample:
        """The current figures. Raises the framework's own errors."""

    def capabilities(self) -> dict[str, Any]:
        """Describes the content and the source of samples."""
        return {
            "backend": self.name(),
            "supports_device_total": True,
            "supports_device_free": True,
            "sampling_source": self.sampling_source,
            "telemetry_collector": f"gpumemprof.{self.name()}_tracker",
        }

    def reset_peak(self) -> None:  # noqa: B027 # most have none
        """Starts a new peak, if the framework has one."""

    def peak(self) -> tuple[int, int]:
        """The highest allocated and reserved bytes since `reset_peak`; 0 where only samples tell."""
        return 0, 0

    def empty_cache(self) -> None:  # noqa: B027
        """Releases unused memory of the framework's allocator, if it has one."""

    def synchronize(self) -> None:  # noqa: B027
        """Waits for the device, if it works asynchronously."""


class CudaDeviceCollector(DeviceMemoryCollector):
    """A GPU as PyTorch sees it."""

    sampling_source = "torch.cuda.memory_stats, mem_get_info"

    def __init__(self, device: Any = None) -> None:
        wanted = parse_device(device)
        self._torch = torch_with_gpu(may_import=wanted.kind == "gpu")
        if self._torch is None:
            raise no_gpu(device)
        self._cuda = self._torch.cuda
        count = self._cuda.device_count()
        self.device_id = self._cuda.current_device() if wanted.number is None else wanted.number
        if self.device_id >= count:
            raise out_of_range(device, count)

    def name(self) -> str:
        return "rocm" if getattr(self._torch.version, "hip", None) else "cuda"

    def is_available(self) -> bool:
        return bool(self._cuda.is_available())

    def sample(self) -> DeviceMemorySample:
        stats = self._cuda.memory_stats(self.device_id)
        allocated = int(stats.get("allocated_bytes.all.current", 0))
        reserved = int(stats.get("reserved_bytes.all.current", 0))
        free, total = map(int, self._cuda.mem_get_info(self.device_id))
        return DeviceMemorySample(
            allocated_bytes=allocated,
            reserved_bytes=reserved,
            used_bytes=max(total - free, 0),
            free_bytes=free,
            total_bytes=total,
            active_bytes=int(stats.get("active_bytes.all.current", 0)),
            inactive_bytes=int(stats.get("inactive_split_bytes.all.current", 0)),
            device_id=self.device_id,
        )

    def reset_peak(self) -> None:
        self._cuda.reset_peak_memory_stats(self.device_id)

    def peak(self) -> tuple[int, int]:
        allocated = int(self._cuda.max_memory_allocated(self.device_id))
        return allocated, int(self._cuda.max_memory_reserved(self.device_id))

    def empty_cache(self) -> None:
        self._cuda.empty_cache()

    def synchronize(self) -> None:
        self._cuda.synchronize(self.device_id)


class _DriverCollector(DeviceMemoryCollector):
    """A GPU by the driver's figures; the recorder counts this process' own allocations.

    If the recorder does not see them, all used memory counts as this process'.
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id

    def name(self) -> str:
        return "cuda"

    def is_available(self) -> bool:
        return True

    @abstractmethod
    def _free_and_total(self) -> tuple[int, int]:
        """The driver's figures, in bytes."""

    def sample(self) -> DeviceMemorySample:
        free, total = self._free_and_total()
        used = max(total - free, 0)
        counted = _recorder.counted_device_bytes(self.device_id)
        own = used if counted is None else min(counted, used)
        return DeviceMemorySample(own, own, used, free, total, None, None, self.device_id)


class NumbaDeviceCollector(_DriverCollector):
    """A GPU as numba sees it."""

    sampling_source = "numba.cuda get_memory_info"

    def __init__(self, device: Any = None) -> None:
        self._cuda = numba_cuda_with_gpu()
        if self._cuda is None:
            raise no_gpu(device)
        count = len(self._cuda.gpus)
        index = parse_device(device).number
        super().__init__(self._cuda.get_current_device().id if index is None else index)
        if self.device_id >= count:
            raise out_of_range(device, count)

    def _free_and_total(self) -> tuple[int, int]:
        with self._cuda.gpus[self.device_id]:
            free, total = self._cuda.current_context().get_memory_info()
        return int(free), int(total)


class CudaPythonDeviceCollector(_DriverCollector):
    """A GPU as cuda-python sees it. Creates no context: before the program has one, all memory counts as free."""

    sampling_source = "cuda.bindings.driver cuMemGetInfo"

    def __init__(self, device: Any = None) -> None:
        self._driver = cuda_driver_module()
        if self._driver is None:
            raise no_gpu(device)
        try:
            self._call("cuInit", 0)
            count = int(self._call("cuDeviceGetCount"))
        except RuntimeError:
            raise no_gpu(device) from None
        super().__init__(parse_device(device).number or 0)
        if self.device_id >= count:
            raise no_gpu(device) if count == 0 else out_of_range(device, count)
        self._handle = self._call("cuDeviceGet", self.device_id)

    def _call(self, function: str, *arguments: Any) -> Any:
        """The result of a driver function: None, one value, or a tuple. Raises RuntimeError if it fails."""
        error, *results = getattr(self._driver, function)(*arguments)
        if int(error) != 0:
            raise RuntimeError(f"{function}: {error}")
        return tuple(results) if len(results) > 1 else (results[0] if results else None)

    def _free_and_total(self) -> tuple[int, int]:
        _, is_active = self._call("cuDevicePrimaryCtxGetState", self._handle)
        if not is_active:
            total = int(self._call("cuDeviceTotalMem", self._handle))
            return total, total
        context = self._call("cuDevicePrimaryCtxRetain", self._handle)
        try:
            self._call("cuCtxPushCurrent", context)
            try:
                free, total = self._call("cuMemGetInfo")
            finally:
                self._call("cuCtxPopCurrent")
        finally:
            self._call("cuDevicePrimaryCtxRelease", self._handle)
        return int(free), int(total)


class RecordedDeviceCollector(DeviceMemoryCollector):
    """A GPU on which the recorder saw this process allocate, through any library."""

    sampling_source = "oomrec.usage().devices"

    def __init__(self, device: Any = None) -> None:
        devices = _recorder.devices()
        if not devices:
            raise no_gpu(device)
        index = parse_device(device).number
        self.device_id = devices[0].ordinal if index is None else index
        self._kind = self._find().kind

    def _find(self) -> Any:
        for each in _recorder.devices():
            if each.ordinal == self.device_id:
                return each
        raise no_gpu(self.device_id)

    def name(self) -> str:
        return "rocm" if self._kind == "hip" else "cuda"

    def is_available(self) -> bool:
        return any(each.ordinal == self.device_id for each in _recorder.devices())

    def sample(self) -> DeviceMemorySample:
        device = self._find()
        own = min(device.counted, device.used)
        return DeviceMemorySample(
            own,
            own,
            device.used,
            device.free,
            device.total,
            None,
            None,
            self.device_id,
        )


class CPUDeviceCollector(DeviceMemoryCollector):
    """The host: this process' resident memory, against the nearest limit.

    With the recorder that is the nearest of soft limit, RLIMIT_AS and cgroup; otherwise the cgroup's limit or
    the machine's memory.
    """

    sampling_source = "/proc/self/statm"

    def __init__(self, device: Any = None) -> None:
        del device  # there is one host
        self._total = _proc.host_limit_bytes()
        self.reset_peak()

    def name(self) -> str:
        return "cpu"

    def is_available(self) -> bool:
        return True

    def sample(self) -> DeviceMemorySample:
        resident = _proc.resident_bytes()
        used, total = resident, self._total
        limit = _recorder.nearest_limit()
        if limit is not None:
            used, total = limit
        used = min(used, total)
        return DeviceMemorySample(resident, resident, used, total - used, total, None, None, -1)

    def reset_peak(self) -> None:
        self._mark = _proc.HighWaterMark()

    def peak(self) -> tuple[int, int]:
        risen = self._mark.risen_to()
        return risen, risen


def detect_torch_runtime_backend() -> str:
    """The backend of the PyTorch that the program has imported: "cuda", "rocm", "mps" or "cpu"."""
    torch = torch_with_gpu()
    if torch is None:
        return "cpu"
    return "rocm" if getattr(torch.version, "hip", None) else "cuda"


def build_device_memory_collector(device: Any = None) -> DeviceMemoryCollector:
    """The collector for a device: None (a GPU if one is known, else the host), a number, "cpu",
    "cuda:1", or a torch.device.

    Raises ConfigurationError (a RuntimeError) if there is no such device.
    """
    wanted = parse_device(device)
    if wanted.kind == "cpu":
        return CPUDeviceCollector()
    if torch_with_gpu() is not None:
        return CudaDeviceCollector(device)
    if numba_cuda_with_gpu() is not None:
        return NumbaDeviceCollector(device)
    if cuda_driver_module() is not None:
        try:
            return CudaPythonDeviceCollector(device)
        except RuntimeError:
            pass  # no driver, or no such device: try the others, and raise the error below
    if any(wanted.number in (None, each.ordinal) for each in _recorder.devices()):
        return RecordedDeviceCollector(device)
    if wanted.kind == "":
        return CPUDeviceCollector()
    if torch_with_gpu(may_import=True) is not None:
        return CudaDeviceCollector(device)
    if numba_cuda_with_gpu(may_import=True) is not None:
        return NumbaDeviceCollector(device)
    raise no_gpu(device)


__all__ = [
    "CPUDeviceCollector",
    "CudaDeviceCollector",
    "CudaPythonDeviceCollector",
    "DeviceMemoryCollector",
    "DeviceMemorySample",
    "NumbaDeviceCollector",
    "RecordedDeviceCollector",
    "build_device_memory_collector",
    "detect_torch_runtime_backend",
]
