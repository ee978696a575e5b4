"""GPU Memory Profiler's Python interface on the recorder: only the import changes.

    from oomrec.gpumemprof import MemoryTracker      # was: from gpumemprof import MemoryTracker

Names, parameters, defaults and result fields are GPU Memory Profiler's. docs/migration.md
lists the differences. The package uses PyTorch if the program has imported it, and never imports it.
"""

from __future__ import annotations

from ..errors import ConfigurationError, ProfilerError, VisualizationError
from .context_profiler import profile_context, profile_function
from .cpu_profiler import CPUMemoryProfiler, CPUMemoryTracker
from .device_collectors import (
    DeviceMemoryCollector,
    DeviceMemorySample,
    build_device_memory_collector,
    detect_torch_runtime_backend,
)
from .oom_flight_recorder import (
    OOMExceptionClassification,
    OOMFlightRecorder,
    OOMFlightRecorderConfig,
    classify_oom_exception,
)
from .profiler import GPUMemoryProfiler, MemorySnapshot, ProfileResult
from .telemetry import (
    TelemetryEventV2,
    load_telemetry_events,
    resolve_distributed_identity,
    telemetry_event_from_record,
    telemetry_event_to_dict,
    validate_telemetry_record,
)
from .tracker import MemoryTracker, MemoryWatchdog, TrackingEvent
from .utils import convert_bytes, format_bytes, format_memory, get_gpu_info, get_system_info

# In the order of the pages in docs/python.
__all__ = [
    "MemoryTracker",
    "MemoryWatchdog",
    "TrackingEvent",
    "CPUMemoryTracker",
    "OOMFlightRecorder",
    "OOMFlightRecorderConfig",
    "OOMExceptionClassification",
    "classify_oom_exception",
    "GPUMemoryProfiler",
    "MemorySnapshot",
    "ProfileResult",
    "profile_function",
    "profile_context",
    "CPUMemoryProfiler",
    "DeviceMemoryCollector",
    "DeviceMemorySample",
    "build_device_memory_collector",
    "detect_torch_runtime_backend",
    "TelemetryEventV2",
    "telemetry_event_from_record",
    "telemetry_event_to_dict",
    "validate_telemetry_record",
    "load_telemetry_events",
    "resolve_distributed_identity",
    "get_system_info",
    "get_gpu_info",
    "format_memory",
    "format_bytes",
    "convert_bytes",
    "ProfilerError",
    "ConfigurationError",
    "VisualizationError",
]
