"""Parses the requested device, and finds the frameworks in this process that know GPUs.

A framework is queried only if the program has imported it: PyTorch first, then numba, cuda-python, and the
recorder, which knows the devices on which the process allocated memory. Only for a GPU that the caller named,
and that none of these knows, is PyTorch imported, and if that has no GPU, numba.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, NamedTuple

from ..errors import ConfigurationError

_HOST_INSTEAD = 'use device="cpu" for the memory of this process (MemoryTracker(device="cpu"), CPUMemoryTracker)'


class Device(NamedTuple):
    """The request: "cpu", "gpu", or "" (a GPU if there is one, else the host); `number` None: the current one."""

    kind: str
    number: int | None = None


def _from_text(text: str) -> Device | None:
    name, colon, number = text.strip().lower().lstrip("/").rpartition(":")
    if not colon:
        name, number = number, ""
        if name.isdigit():
            return Device("gpu", int(name))
    name = name.rpartition("device:")[2]
    if name == "cpu":
        return Device("cpu")
    if name in ("cuda", "gpu", "hip", "rocm") and (not colon or number.isdigit()):
        return Device("gpu", int(number) if colon else None)
    return None


def parse_device(device: Any) -> Device:
    """The device of None, a number, "cpu", "cuda:1", "/GPU:0", or a torch.device.

    Raises ConfigurationError for "mps", which Linux lacks, and for anything that is not a device.
    """
    if device is None:
        return Device("")
    kind = getattr(device, "type", None)
    found: Device | None = None
    if isinstance(kind, str):
        index = getattr(device, "index", None)
        found = _from_text(kind if index is None else f"{kind}:{index}")
    elif isinstance(device, str):
        kind = device.partition(":")[0].lower()
        found = _from_text(device)
    elif isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        found = Device("gpu", device)
    if found is not None:
        return found
    if kind == "mps":
        raise ConfigurationError(f"device {device!r}: Linux has no Metal; {_HOST_INSTEAD}")
    raise ConfigurationError(
        f"{device!r} is not a device; use a number, 'cuda', 'cuda:0' or a torch.device for a GPU, 'cpu' "
        "for the memory of this process"
    )


def imported(name: str) -> Any:
    """A module that the program has completely imported; else None."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def _module(name: str, may_import: bool) -> Any:
    found = imported(name)
    if found is None and may_import:
        try:
            found = importlib.import_module(name)
        except Exception:  # not installed, or its import fails
            return None
    return found


def public_device(device_id: int) -> Any:
    """The `device` attribute that programs read: a torch.device if PyTorch is imported, else a name."""
    name = "cpu" if device_id < 0 else f"cuda:{device_id}"
    torch = imported("torch")
    return name if torch is None else torch.device(name)


def torch_with_gpu(may_import: bool = False) -> Any:
    """PyTorch, if it is imported (or may be) and has a GPU; else None."""
    torch = _module("torch", may_import)
    try:
        return torch if torch is not None and torch.cuda.is_available() else None
    except (AttributeError, RuntimeError):  # another module of that name; a broken driver
        return None


def numba_cuda_with_gpu(may_import: bool = False) -> Any:
    """``numba.cuda``, if it is imported (or may be) and has a GPU; else None.

    Its ``is_available()`` also wants the compiler of the CUDA toolkit, which memory figures do not need.
    """
    cuda = _module("numba.cuda", may_import)
    try:
        return cuda if cuda is not None and len(cuda.gpus) > 0 else None
    except (AttributeError, ImportError, RuntimeError):  # ImportError: numba's, for no driver
        return None


def cuda_driver_module() -> Any:
    """cuda-python's driver module (under either of its names), if it is imported; else None."""
    return imported("cuda.bindings.driver") or imported("cuda.cuda")


def no_gpu(device: Any) -> ConfigurationError:
    """The error for a GPU that none of them knows."""
    return ConfigurationError(
        f"device {device!r}: no GPU is known to torch, numba, cuda-python or the recorder; "
        f"{_HOST_INSTEAD}"
    )


def out_of_range(device: Any, count: int) -> ConfigurationError:
    """The error for a GPU number that is too high: there are only `count`."""
    available = "GPU 0 is the only one" if count == 1 else f"there are GPUs 0 to {count - 1}"
    return ConfigurationError(f"device {device!r}: {available}; or {_HOST_INSTEAD}")
