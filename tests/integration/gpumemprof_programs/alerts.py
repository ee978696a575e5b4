"""Alerts: custom thresholds, callbacks, a watchdog, and exported events."""

import csv
import json
import sys
import time

from gpumemprof import MemoryTracker, load_telemetry_events
from gpumemprof.tracker import MemoryWatchdog

MIB = 1 << 20
device = sys.argv[1]
if device != "cpu":
    from numba import cuda


def load(mib):
    size = mib * MIB
    return bytearray(b"x" * size) if device == "cpu" else cuda.device_array(size, "uint8")


def wait_for_samples():
    """Two: the first may have begun before."""
    for _ in range(2):
        before = tracker.stats["last_memory_check"]
        while tracker.stats["last_memory_check"] == before:
            time.sleep(0.01)


alerts, kept = [], []
load(1)
with MemoryTracker(device=device, sampling_interval=0.02, max_events=200) as tracker:
    tracker.set_threshold("memory_warning_percent", 0.0001)
    tracker.set_threshold("memory_critical_percent", 100)
    tracker.set_threshold("memory_leak_threshold", 24 * MIB)
    watchdog = MemoryWatchdog(tracker, cleanup_threshold=0.0)
    tracker.add_alert_callback(alerts.append)
    tracker.add_alert_callback(lambda event: 1 / 0)
    for _ in range(2):
        kept.append(load(40))
        wait_for_samples()
    half = time.time()
    del kept[:]
    wait_for_samples()
    print("tracking:", tracker.is_tracking)

try:
    tracker.set_threshold("memory", 1)
except ValueError as error:
    print("unknown:", str(error)[:17])
print("kinds:", sorted({event.event_type for event in alerts} - {"critical"}))
print("large:", sum("large_allocation" in (event.metadata or {}) for event in alerts))
print("percent:", all(e.metadata["usage_percent"] > 0 for e in alerts if "Memory" in e.context))
print("heard of:", len(alerts) == len(tracker.get_alerts()) == tracker.stats["alert_count"])
print("last:", [event.event_type for event in tracker.get_events(last_n=1)])
print(
    "freed:",
    sum(e.memory_change for e in tracker.get_events("deallocation", since=half)) < -60 * MIB,
)
print("cleanups:", watchdog.get_cleanup_stats()["cleanup_count"])
statistics = tracker.get_statistics()
print("peak:", statistics["peak_memory"] - statistics["current_memory_allocated"] > 60 * MIB)
print("mean:", statistics["average_allocation_size"] * statistics["total_allocations"]
      == statistics["total_allocation_bytes"])  # fmt: skip

tracker.export_events("alerts.json", format="json")
tracker.export_events("alerts.csv")
events = load_telemetry_events("alerts.json")
print("exported:", [e.event_type for e in events] == [e.event_type for e in tracker.get_events()])
with open("alerts.json") as file:
    print("fields:", sorted({key for record in json.load(file) for key in record}))
with open("alerts.csv", newline="") as file:
    rows = list(csv.DictReader(file))
print("rows:", len(rows) == len(events), rows[0]["schema_version"], rows[-1]["event_type"])
