"""Analyze: read a dump with only json."""

import json
import sys
from pathlib import Path

bundle = Path(sys.argv[2])


def load(name):
    return json.loads((bundle / name).read_text())


manifest, metadata = load("manifest.json"), load("metadata.json")
events, environment = load("events.json"), load("environment.json")

print("created:", manifest["created_at_utc"])
print("reason:", manifest["reason"], "backend:", manifest["backend"])
print("exception:", metadata["exception_module"], metadata["exception_type"])
print("message:", bool(metadata["exception_message"]))
print("context:", metadata["context"])
print("counts agree:", manifest["event_count"] == metadata["captured_event_count"] == len(events))
print("all files there:", all((bundle / name).exists() for name in manifest["files"]))
print("pid:", environment["pid"])
for event in events[-5:]:
    allocated, reserved = event["memory_allocated"] / 1024**2, event["memory_reserved"] / 1024**2
    print(f"  {event['timestamp']:.3f} {event['event_type']:<12} {allocated:.1f} {reserved:.1f} MB")
print("in order:", [e["timestamp"] for e in events] == sorted(e["timestamp"] for e in events))
peak = max(events, key=lambda event: event["memory_allocated"])
print("peak:", peak["memory_allocated"] > 0, peak["context"] is None or peak["context"] != "")
keys = set.intersection(*(set(event) for event in events))
print(
    "keys:",
    sorted(
        {
            "timestamp", "event_type", "memory_allocated", "memory_reserved", "memory_change",
            "device_id", "context", "metadata", "active_memory", "inactive_memory", "device_used",
            "device_free", "device_total", "backend",
        }
        - keys
    ),
)  # fmt: skip
