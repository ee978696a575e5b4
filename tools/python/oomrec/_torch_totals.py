"""What torch says of its devices, for a process that was not started under the recorder.

torch is never imported here, and no device is touched that torch has no memory on: asking a driver
of another one would make a context there, hundreds of megabytes.
"""

from __future__ import annotations

import sys
from typing import Any

from ._library import Library


def note_devices(library: Library) -> None:
    """Tells the recording what torch holds on each device. Never fails; 20 µs a device."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)  # None: there is no torch, or it is being imported
    try:
        if cuda is None or not cuda.is_initialized():
            return
        kind = b"hip" if getattr(torch.version, "hip", None) else b"cuda"
        for ordinal in range(cuda.device_count()):
            reserved = cuda.memory_reserved(ordinal)
            if not reserved:
                continue
            free, total = cuda.mem_get_info(ordinal)
            name = cuda.get_device_name(ordinal).encode()
            allocated = cuda.memory_allocated(ordinal)
            library.note_device(kind, ordinal, name, total, free, allocated, reserved)
    except Exception:
        return  # a device that is lost, or a torch whose functions are named otherwise
