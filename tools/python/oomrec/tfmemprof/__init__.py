"""The TensorFlow half of GPU Memory Profiler's interface, on the recorder.

    from oomrec.tfmemprof import TensorFlowProfiler  # was: from tfmemprof import TensorFlowProfiler

The package uses TensorFlow if the program has imported it. It imports it only for a GPU named by the caller.
"""

from __future__ import annotations

from .context_profiler import TensorFlowProfiler, profile_context, profile_function
from .profiler import MemorySnapshot, ProfileResult, TFMemoryProfiler
from .tracker import MemoryTracker, MemoryWatchdog, TrackingResult
from .utils import format_memory, get_gpu_info, get_system_info

# tfmemprof's own alias, because gpumemprof has a MemoryTracker, too.
TensorFlowMemoryTracker = MemoryTracker

__all__ = [
    "MemorySnapshot",
    "MemoryTracker",
    "MemoryWatchdog",
    "ProfileResult",
    "TFMemoryProfiler",
    "TensorFlowMemoryTracker",
    "TensorFlowProfiler",
    "TrackingResult",
    "format_memory",
    "get_gpu_info",
    "get_system_info",
    "profile_context",
    "profile_function",
]
