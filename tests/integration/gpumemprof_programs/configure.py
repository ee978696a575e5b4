"""Configure the recorder, and track some work."""

import sys
import time

from gpumemprof import MemoryTracker, MemoryWatchdog
from gpumemprof.utils import format_bytes, get_system_info

device = sys.argv[1]
if device != "cpu":
    from numba import cuda

print("backend:", get_system_info()["detected_backend"])

tracker = MemoryTracker(
    device=device,
    sampling_interval=0.02,
    enable_oom_flight_recorder=True,
    oom_dump_dir="diagnostics",
    oom_buffer_size=100,
    oom_max_dumps=3,
    oom_max_total_mb=128,
)
watchdog = MemoryWatchdog(tracker, auto_cleanup=True, cleanup_threshold=0.9)
tracker.set_threshold("memory_warning_percent", 0.01)
alerts = []
tracker.add_alert_callback(alerts.append)

tracker.start_tracking()
held = []
for _ in range(4):
    size = 24 << 20
    held.append(bytearray(b"x" * size) if device == "cpu" else cuda.device_array(size, "uint8"))
    time.sleep(0.06)
    while tracker.stats["peak_memory"] < len(held) * size:  # it is sampled, and time passes
        time.sleep(0.01)
tracker.stop_tracking()
watchdog.force_cleanup(aggressive=True)

stats = tracker.get_statistics()
print("tracked on:", tracker.backend)
print("peak above 90 MiB:", stats["peak_memory"] > 90 << 20, format_bytes(stats["peak_memory"]))
print("allocations seen:", stats["total_allocations"] >= 3)
print("recorder:", stats["oom_flight_recorder_enabled"], stats["last_oom_dump_path"])
print("alerts:", stats["alert_count"] == len(alerts) > 0, {alert.event_type for alert in alerts})
print("events:", [event.event_type for event in tracker.get_events()][:1])
print("cleanups:", watchdog.get_cleanup_stats()["cleanup_count"] >= 1)
timeline = tracker.get_memory_timeline(interval=0.05)
print("timeline:", len(timeline["timestamps"]) == len(timeline["allocated"]) > 2)
tracker.export_events("events.csv", format="csv")
tracker.export_events("events.json", format="json")
