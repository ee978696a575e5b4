"""The package's public names, and sizes as text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import clean_environment
from oomrec import gpumemprof
from python_programs import PACKAGES

GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1, "1.00 B"), (1536, "1.50 KB"), (5 * GIB, "5.00 GB"), (-2048, "-2.00 KB"), (1 << 60, "1024.00 PB")],
)  # fmt: skip
def test_sizes_as_text(size, text):
    assert gpumemprof.format_bytes(size) == gpumemprof.format_memory(size) == text


def test_size_edge_cases():
    assert gpumemprof.format_memory(None) == "N/A"
    assert gpumemprof.format_bytes(1536, precision=0) == "2 KB"
    assert gpumemprof.convert_bytes(1, "GB", "MB") == 1024
    assert gpumemprof.convert_bytes(512, "MB", "GB") == 0.5
    with pytest.raises(ValueError, match="Invalid unit: XB"):
        gpumemprof.convert_bytes(1, "XB", "MB")


def test_importing_oomrec_does_not_load_this_package():
    program = "import sys, oomrec; print([name for name in sys.modules if 'memprof' in name])"
    run = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                         env={**clean_environment(), "PYTHONPATH": str(PACKAGES)})  # fmt: skip
    assert run.stdout == "[]\n"


def test_every_public_name_exists():
    names = """GPUMemoryProfiler MemorySnapshot ProfileResult profile_function profile_context
        MemoryTracker MemoryWatchdog CPUMemoryProfiler CPUMemoryTracker OOMFlightRecorder
        OOMFlightRecorderConfig OOMExceptionClassification classify_oom_exception
        DeviceMemoryCollector DeviceMemorySample build_device_memory_collector
        detect_torch_runtime_backend TelemetryEventV2 telemetry_event_from_record
        telemetry_event_to_dict validate_telemetry_record load_telemetry_events get_system_info
        get_gpu_info format_memory format_bytes convert_bytes ProfilerError ConfigurationError
        VisualizationError""".split()
    assert set(names) <= set(gpumemprof.__all__)
    assert all(hasattr(gpumemprof, name) for name in names)
