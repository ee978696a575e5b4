"""This package's access to TensorFlow: uses the imported module, and imports it only if necessary."""

from __future__ import annotations

import importlib
import re
from typing import Any

from ..errors import ConfigurationError
from ..gpumemprof import _recorder
from ..gpumemprof._devices import imported, parse_device
from ..gpumemprof.device_collectors import (
    CPUDeviceCollector,
    DeviceMemoryCollector,
    DeviceMemorySample,
)

MIB = 1024 * 1024
COLLECTOR = "tfmemprof.memory_tracker"
_DEVICE = re.compile(r"^/?(?:device:)?(cpu|gpu):?(\d*)$", re.IGNORECASE)


def tensorflow(needed_for: str | None = None) -> Any:
    """The module, if the program has imported it. Otherwise imports it for `needed_for`, or returns None.

    Raises ConfigurationError if it is needed and cannot be imported.
    """
    module = imported("tensorflow")
    if module is not None or needed_for is None:
        return module
    try:
        return importlib.import_module("tensorflow")
    except ImportError as error:
        raise ConfigurationError(
            f"{needed_for} needs TensorFlow, which cannot be imported ({error}); "
            'install tensorflow, or use device="/CPU:0" for the memory of this process'
        ) from error


def gpu_count(module: Any) -> int:
    """The number of TensorFlow's GPUs; 0 if it is unknown."""
    try:
        return len(module.config.list_physical_devices("GPU"))
    except Exception:  # a broken driver, which TensorFlow reports itself
        return 0


def resolve_device(device: str | None) -> str:
    """The requested device as "/GPU:1" or "/CPU:0"; None means the first GPU, else the CPU.

    Raises ConfigurationError if there is no such device.
    """
    if device is None:
        module = tensorflow()
        return "/GPU:0" if module is not None and gpu_count(module) else "/CPU:0"
    found = _DEVICE.match(device) if isinstance(device, str) else None
    if found is None:
        wanted = parse_device(device)  # "cuda:0", a number; raises for "mps"
        kind, number = wanted.kind, wanted.number or 0
    else:
        kind, number = found.group(1).lower(), int(found.group(2) or 0)
    if kind == "cpu":
        return "/CPU:0"
    count = gpu_count(tensorflow(f"device {device!r}"))
    if number < count:
        return f"/GPU:{number}"
    available = f"TensorFlow has GPUs 0 to {count - 1}" if count else "TensorFlow has no GPU"
    raise ConfigurationError(
        f'device {device!r}: {available}; use device="/CPU:0" for the memory of this process'
    )


class TensorFlowDeviceCollector(DeviceMemoryCollector):
    """A GPU by the figures of TensorFlow's allocator; the whole device's figures are the recorder's."""

    sampling_source = "tf.config.experimental.get_memory_info"

    def __init__(self, device: str) -> None:
        self._module = tensorflow(f"device {device!r}")
        self._device = device.lstrip("/")
        self.device_id = int(device.rpartition(":")[2])

    def name(self) -> str:
        try:
            is_rocm = bool(self._module.sysconfig.get_build_info().get("is_rocm_build", False))
        except Exception:  # not in every build
            is_rocm = False
        return "rocm" if is_rocm else "cuda"

    def is_available(self) -> bool:
        return gpu_count(self._module) > self.device_id

    def memory_info(self) -> dict[str, int]:
        """`current` and `peak`, in bytes."""
        info: dict[str, int] = self._module.config.experimental.get_memory_info(self._device)
        return info

    def reset_peak(self) -> None:
        # TensorFlow 2.5 and later can.
        reset = getattr(self._module.config.experimental, "reset_memory_stats", None)
        if reset is not None:
            reset(self._device)

    def peak(self) -> tuple[int, int]:
        peak = int(self.memory_info().get("peak", 0))
        return peak, peak

    def sample(self) -> DeviceMemorySample:
        current = int(self.memory_info().get("current", 0))
        used, free, total = current, None, None
        for each in _recorder.devices():
            if each.ordinal == self.device_id:
                used, free, total = max(each.used, current), each.free, each.total
        return DeviceMemorySample(current, current, used, free, total, None, None, self.device_id)

    def capabilities(self) -> dict[str, Any]:
        known = any(each.ordinal == self.device_id for each in _recorder.devices())
        return {
            **super().capabilities(),
            "supports_device_total": known,
            "supports_device_free": known,
            "telemetry_collector": COLLECTOR,
        }


class TensorFlowHostCollector(CPUDeviceCollector):
    """The host, with TensorFlow's tracker as the collector in telemetry."""

    def capabilities(self) -> dict[str, Any]:
        return {**super().capabilities(), "telemetry_collector": COLLECTOR}


def build_collector(device: str | None) -> DeviceMemoryCollector:
    """The collector of "/GPU:0", "/CPU:0" or None (a GPU if TensorFlow has one)."""
    resolved = resolve_device(device)
    if resolved == "/CPU:0":
        return TensorFlowHostCollector()
    return TensorFlowDeviceCollector(resolved)


def free_caches(module: Any) -> None:
    """Clears Keras' graphs. The caller collects Python's cycles."""
    keras = getattr(module, "keras", None)
    backend = getattr(keras, "backend", None)
    if backend is not None:
        backend.clear_session()
