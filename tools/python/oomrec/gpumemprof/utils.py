"""Formats sizes, and describes this machine, its Python and its GPUs."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from typing import Any

from . import _proc, _recorder
from ._devices import imported, torch_with_gpu
from .device_collectors import CPUDeviceCollector, build_device_memory_collector

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def format_bytes(bytes_value: int | float, precision: int = 2) -> str:
    """Bytes as "1.25 GB"; 1 KB is 1,024 bytes. `precision`: digits after the point."""
    if bytes_value == 0:
        return "0 B"
    size = float(bytes_value)
    unit = 0
    while abs(size) >= 1024.0 and unit < len(_UNITS) - 1:
        size /= 1024.0
        unit += 1
    return f"{size:.{precision}f} {_UNITS[unit]}"


def format_memory(bytes_value: int | float | None) -> str:
    """Like `format_bytes`; "N/A" for None."""
    return "N/A" if bytes_value is None else format_bytes(bytes_value)


def convert_bytes(value: int | float, from_unit: str, to_unit: str) -> float:
    """Converts `value` between B, KB, MB, GB, TB and PB, of 1,024 each. Raises ValueError for another unit."""
    for unit in (from_unit, to_unit):
        if unit not in _UNITS:
            raise ValueError(f"Invalid unit: {unit}. Must be one of: {', '.join(_UNITS)}")
    return value * 1024.0 ** (_UNITS.index(from_unit) - _UNITS.index(to_unit))


def _nvidia_gpus() -> int:
    """The number of GPUs that NVIDIA's kernel module lists, which needs no framework."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0


def _detected_backend() -> str:
    if torch_with_gpu() is not None:
        return "rocm" if getattr(imported("torch").version, "hip", None) else "cuda"
    try:
        found = build_device_memory_collector().name()
    except RuntimeError:
        found = "cpu"
    if found == "cpu" and _nvidia_gpus():
        return "cuda"
    if found == "cpu" and os.path.exists("/dev/kfd"):
        return "rocm"
    return found


def _torch_facts(torch: Any) -> dict[str, Any]:
    """What only an imported PyTorch knows; None if it is not imported, or has no GPU."""
    facts: dict[str, Any] = dict.fromkeys(
        ("cuda_version", "cudnn_version", "rocm_version", "current_device")
    )
    if torch is None:
        return facts
    version = getattr(torch, "version", None)
    facts["cuda_version"] = getattr(version, "cuda", None)
    facts["rocm_version"] = getattr(version, "hip", None)
    if torch_with_gpu() is not None:
        facts["current_device"] = torch.cuda.current_device()
        facts["cudnn_version"] = torch.backends.cudnn.version()
    return facts


def get_system_info() -> dict[str, Any]:
    """The machine, Python and GPUs: `detected_backend` is "cuda", "rocm" or "cpu".

    It does not import PyTorch: what only PyTorch knows (`cuda_version`, `cudnn_version`, `rocm_version`,
    `current_device`) is None until the program has imported it. Memory in bytes.
    """
    torch = imported("torch")
    backend = _detected_backend()
    if torch_with_gpu() is not None:
        count = torch.cuda.device_count()
    else:
        count = max(len(_recorder.devices()), _nvidia_gpus(), int(backend != "cpu"))
    memory = _proc.machine_memory()
    return {
        "platform": platform.system(),
        "architecture": platform.machine(),
        "python_version": sys.version,
        "torch_available": torch is not None or importlib.util.find_spec("torch") is not None,
        "detected_backend": backend,
        "cuda_available": backend in ("cuda", "rocm"),
        "cuda_device_count": count,
        "rocm_available": backend == "rocm",
        "mps_built": False,
        "mps_available": False,
        "cpu_count": _proc.physical_cores(),
        "cpu_count_logical": os.cpu_count() or 1,
        "memory_total": memory.total_bytes,
        "memory_available": memory.available_bytes,
        "memory_percent": memory.percent,
        **_torch_facts(torch),
    }


def _torch_device_facts(torch: Any, index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    stats = torch.cuda.memory_stats(index)
    return {
        "device_name": properties.name,
        "device_capability": (properties.major, properties.minor),
        "multiprocessor_count": properties.multi_processor_count,
        "cuda_version": torch.version.cuda,
        "pytorch_version": str(torch.__version__),
        "max_memory_allocated": int(stats.get("allocated_bytes.all.peak", 0)),
        "max_memory_reserved": int(stats.get("reserved_bytes.all.peak", 0)),
        "memory_stats": {
            "active_bytes": int(stats.get("active_bytes.all.current", 0)),
            "inactive_bytes": int(stats.get("inactive_split_bytes.all.current", 0)),
            "reserved_bytes": int(stats.get("reserved_bytes.all.current", 0)),
            "num_alloc_retries": int(stats.get("num_alloc_retries", 0)),
            "num_ooms": int(stats.get("num_ooms", 0)),
        },
    }


def get_gpu_info(device: Any = None) -> dict[str, Any]:
    """A GPU's name and memory in bytes; {"error": why} where there is no such GPU."""
    try:
        collector = build_device_memory_collector(device)
    except RuntimeError as error:
        return {"error": str(error)}
    if isinstance(collector, CPUDeviceCollector):
        return {"error": "no GPU is known to torch, numba, cuda-python or the recorder"}
    sample = collector.sample()
    info: dict[str, Any] = {
        "device_id": sample.device_id,
        "backend": collector.name(),
        "total_memory": sample.total_bytes,
        "used_memory": sample.used_bytes,
        "free_memory": sample.free_bytes,
        "allocated_memory": sample.allocated_bytes,
        "reserved_memory": sample.reserved_bytes,
    }
    for each in _recorder.devices():
        if each.ordinal == sample.device_id:
            info["device_name"] = each.name
    torch = torch_with_gpu()
    if torch is not None:
        info.update(_torch_device_facts(torch, sample.device_id))
    return info


__all__ = ["convert_bytes", "format_bytes", "format_memory", "get_gpu_info", "get_system_info"]
