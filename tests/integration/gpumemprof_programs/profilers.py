"""Profile functions and blocks, on the GPU, or on the host without one."""

import sys
import time

import gpumemprof
from gpumemprof import CPUMemoryProfiler, GPUMemoryProfiler

MIB = 1 << 20

if sys.argv[1] != "cpu":
    from numba import cuda

try:
    profiler = GPUMemoryProfiler(device=0, track_tensors=False)
except (RuntimeError, ValueError):
    profiler = CPUMemoryProfiler()
print("profiler:", type(profiler).__name__)


def load(mib):
    size = mib * MIB
    kept.append(bytearray(b"x" * size) if on_host else cuda.device_array(size, "uint8"))
    return "not what profile_function returns"


def fails():
    raise KeyError("mine")


kept = []
on_host = isinstance(profiler, CPUMemoryProfiler)
begun = time.monotonic()
profiler.start_monitoring(interval=0.01)
result = profiler.profile_function(load, 32)
with profiler.profile_context("block"):
    load(16)
try:
    with profiler.profile_context("failing"):
        fails()
except KeyError as error:
    print("raised:", error)
while len(profiler.snapshots) < 3:
    time.sleep(0.01)
profiler.stop_monitoring()
most = (time.monotonic() - begun) / 0.01 + 2

summary = profiler.get_summary()
print("grown:", 30 * MIB <= result.memory_diff() <= 40 * MIB)
print("named:", [each.name if on_host else each.function_name for each in profiler.results])
print("result:", sorted(result.to_dict()))
print("summary:", sorted(summary))
print("snapshot:", sorted(profiler.snapshots[0].to_dict()))
print("monitored:", 3 <= summary["snapshots_collected"] == len(profiler.snapshots) <= most)
print("peak:", gpumemprof.format_bytes(summary["peak_memory_usage"]).endswith("MB"))
print("change:", summary["memory_change_from_baseline"] >= 45 * MIB)
profiler.clear_results()
print("cleared:", profiler.results == profiler.snapshots == [])
