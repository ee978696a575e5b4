"""Stress: take memory until an allocation fails or a cap is reached."""

import sys
from pathlib import Path

from gpumemprof.oom_flight_recorder import classify_oom_exception
from gpumemprof.tracker import MemoryTracker

device, cap_mb = sys.argv[1], int(sys.argv[2])
if device != "cpu":
    from numba import cuda

STEP_MB = 16

tracker = MemoryTracker(
    device=device, sampling_interval=0.02, enable_oom_flight_recorder=True, oom_dump_dir="oom_dumps"
)
tracker.start_tracking()
blocks = []
caught = False
try:
    with tracker.capture_oom(
        context="demo.stress", metadata={"cap_mb": cap_mb, "step_mb": STEP_MB}
    ):
        while len(blocks) * STEP_MB < cap_mb:
            size = STEP_MB << 20
            block = bytearray(size) if device == "cpu" else cuda.device_array(size, "uint8")
            blocks.append(block)
except Exception as error:
    caught = classify_oom_exception(error).is_oom
finally:
    blocks.clear()
    tracker.stop_tracking()

dump = tracker.last_oom_dump_path
print("status:", "PASS" if caught and dump and Path(dump).exists() else "SKIP")
print("dump:", dump)
