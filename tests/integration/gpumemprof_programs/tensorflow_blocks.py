"""TensorFlow: blocks and functions of a third-party training, on the host."""

import time

import tfmemprof
from tfmemprof import TensorFlowMemoryTracker, TFMemoryProfiler
from tfmemprof.context_profiler import profile_context, profile_function, set_global_profiler

MIB = 1 << 20
kept = []
profiler = TFMemoryProfiler(device="/CPU:0", enable_tensor_tracking=False)
set_global_profiler(profiler)


@profile_function
def load(mib):
    kept.append(bytearray(b"x" * (mib * MIB)))
    return mib


@profiler.profile_function
def evaluate():
    return "evaluated"


with profiler:
    profiler.start_continuous_profiling(interval=0.02)
    with profile_context("epoch"):
        print("returned:", load(32), load(16), evaluate())
    with profiler.profile_context("validation"):
        while "continuous" not in {each.name for each in profiler.snapshots}:
            time.sleep(0.01)

results = profiler.get_results()
seen = len(profiler.snapshots)
time.sleep(0.1)
print("still:", len(profiler.snapshots) == seen, profiler.profiling_active)
print("calls:", {name: each["calls"] for name, each in sorted(results.function_profiles.items())})
print("profile:", sorted(results.function_profiles["epoch"]))
print("names:", {"context_start", "continuous", "epoch_start", "epoch_end"}
      <= {each.name for each in results.snapshots})  # fmt: skip
print("in order:", results.min_memory_mb <= results.average_memory_mb <= results.peak_memory_mb)
print("fields:", results.duration > 0, results.total_allocations >= 0, results.memory_fragmentation)

tracker = TensorFlowMemoryTracker(
    sampling_interval=0.02, alert_threshold_mb=1, device="/CPU:0", enable_logging=False
)
alerts = []
tracker.add_alert_callback(alerts.append)
tracker.start_tracking()
while len(tracker.memory_usage) <= 3 or not alerts:
    time.sleep(0.01)
tracked = tracker.stop_tracking()
print("alert:", sorted(alerts[0]), alerts[0] == tracked.alerts_triggered[0])
print("samples:", len(tracked.memory_usage) == len(tracked.timestamps) == len(tracked.events) > 3)
print("recent:", tracker.check_alerts(), tracker.get_current_memory() > 48)
profiler.reset()
print("reset:", profiler.get_results().function_profiles)
print("system:", tfmemprof.get_system_info()["backend"]["runtime_backend"])
