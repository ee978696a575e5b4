"""Facts about this machine, its Python and its TensorFlow."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from ..gpumemprof import _proc
from ..gpumemprof.utils import format_memory
from ._tensorflow import MIB, TensorFlowDeviceCollector, gpu_count, tensorflow

_GIB = 1024.0**3
_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "tf-nightly")


def _version(module: Any) -> str:
    if module is not None:
        return str(getattr(module, "__version__", "unknown"))
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "Not installed"


def _build_info(module: Any) -> dict[str, Any]:
    try:
        return dict(module.sysconfig.get_build_info())
    except Exception:  # not imported, or not in this build
        return {}


def get_gpu_info() -> dict[str, Any]:
    """TensorFlow's GPUs: `available`, `count`, and of each in `devices` its id, name and memory."""
    module = tensorflow()
    info: dict[str, Any] = {"available": False, "count": 0, "devices": []}
    if module is None:
        info["error"] = "the program has not imported TensorFlow"
        return info
    info["count"] = gpu_count(module)
    info["available"] = info["count"] > 0
    for number in range(info["count"]):
        memory = TensorFlowDeviceCollector(f"/GPU:{number}").memory_info()
        info["devices"].append(
            {
                "id": number,
                "name": f"GPU {number}",
                "current_memory_mb": memory.get("current", 0) / MIB,
                "peak_memory_mb": memory.get("peak", 0) / MIB,
            }
        )
    return info


def get_backend_info() -> dict[str, Any]:
    """TensorFlow's backend: `runtime_backend` is "cuda", "rocm", "gpu" or "cpu"."""
    module = tensorflow()
    build = _build_info(module)
    count = gpu_count(module) if module is not None else 0
    is_cuda, is_rocm = bool(build.get("is_cuda_build")), bool(build.get("is_rocm_build"))
    on_gpu = "cuda" if is_cuda else "rocm" if is_rocm else "gpu"
    return {
        "runtime_backend": on_gpu if count else "cpu",
        "runtime_gpu_count": count,
        "hardware_gpu_detected": count > 0,
        "is_cuda_build": is_cuda,
        "is_rocm_build": is_rocm,
        "is_tensorrt_build": bool(build.get("is_tensorrt_build")),
        "is_apple_silicon": False,
        "tensorflow_metal_installed": False,
    }


def get_system_info() -> dict[str, Any]:
    """The machine, Python and TensorFlow. Memory in GiB.

    TensorFlow is not imported for it: before the program has imported it, `gpu` says so, and
    `tf_build_cuda`, `tf_cuda_version` and `tf_cudnn_version` are None.
    """
    module = tensorflow()
    build = _build_info(module)
    memory = _proc.machine_memory()
    return {
        "platform": platform.platform(),
        "python_version": platform.python_version(),
        "tensorflow_version": _version(module),
        "cpu_count": os.cpu_count(),
        "total_memory_gb": memory.total_bytes / _GIB,
        "available_memory_gb": memory.available_bytes / _GIB,
        "memory_percent_used": memory.percent,
        "tf_build_cuda": bool(build.get("is_cuda_build")) if build else None,
        "tf_cuda_version": build.get("cuda_version"),
        "tf_cudnn_version": build.get("cudnn_version"),
        "gpu": get_gpu_info(),
        "backend": get_backend_info(),
    }


__all__ = ["format_memory", "get_backend_info", "get_gpu_info", "get_system_info"]
