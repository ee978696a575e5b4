"""Capture: a block that may run out of memory, and its dump."""

import json
import sys
from pathlib import Path

from gpumemprof.tracker import MemoryTracker

device = sys.argv[1]
if device != "cpu":
    from numba import cuda


def forward_pass(batch):
    if device == "cpu":
        return bytearray(batch * (1 << 40))
    return cuda.device_array(batch * (1 << 40), "uint8")


tracker = MemoryTracker(device=device, enable_oom_flight_recorder=True, oom_dump_dir="oom_dumps")
tracker.start_tracking()
try:
    with tracker.capture_oom(
        context="training.forward_pass",
        metadata={"batch_size": 128, "model": "resnet50", "reason": "mine", "tracker": "mine"},
    ):
        forward_pass(128)
except Exception as error:
    print("raised:", type(error).__name__)
finally:
    tracker.stop_tracking()

path = tracker.last_oom_dump_path
metadata = json.loads((Path(path) / "metadata.json").read_text())
print("context:", metadata["context"])
print("exception:", metadata["exception_type"])
print("batch size:", metadata["custom_metadata"]["batch_size"])
print("dump:", path)
