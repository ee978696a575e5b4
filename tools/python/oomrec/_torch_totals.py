"""torch's own figures of its devices, for a process that was not started under the recorder.

This module never imports torch, and queries only devices on which torch has memory: on another one the
query would create a context of hundreds of megabytes.
"""

from __future__ import annotations

import sys
from typing import Any

from ._library import Library


def note_devices(library: Library) -> None:
    """Records what torch holds on each device. Never fails; takes 20 µs a device."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)  # None: torch is not imported, or not completely
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
        return  # a lost device, or a torch without these functions
