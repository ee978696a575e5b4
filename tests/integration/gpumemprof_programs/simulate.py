"""Simulate: an out-of-memory exception without a lack of memory."""

import sys
from pathlib import Path

from gpumemprof.oom_flight_recorder import classify_oom_exception
from gpumemprof.tracker import MemoryTracker

tracker = MemoryTracker(
    device=sys.argv[1],
    sampling_interval=0.05,
    enable_oom_flight_recorder=True,
    oom_dump_dir="oom_dumps",
    oom_max_dumps=3,
    oom_max_total_mb=128,
)
tracker.start_tracking()
try:
    with tracker.capture_oom(context="demo.simulated", metadata={"scenario_mode": "simulated"}):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB (simulated)")
except RuntimeError as error:
    print("is OOM:", classify_oom_exception(error).is_oom)
finally:
    tracker.stop_tracking()

dump = tracker.last_oom_dump_path
print("dump exists:", bool(dump and Path(dump).exists()))
print("dump:", dump)
