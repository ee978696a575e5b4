"""Classify: which exceptions are out-of-memory errors, and how handle_exception handles them."""

import sys

from gpumemprof import MemoryTracker
from gpumemprof.oom_flight_recorder import classify_oom_exception


class ResourceExhaustedError(RuntimeError):
    """As TensorFlow's."""


ResourceExhaustedError.__module__ = "tensorflow.python.framework.errors_impl"

CASES = [
    RuntimeError(
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity)"
    ),
    RuntimeError("HIP out of memory. Tried to allocate 20.00 MiB"),
    MemoryError(),
    ResourceExhaustedError("OOM when allocating tensor with shape[1024,1024]"),
    ValueError("bad input"),
    RuntimeError("shape mismatch"),
    KeyError("allocation failed for seat 7"),
]

tracker = MemoryTracker(device=sys.argv[1], enable_oom_flight_recorder=True)
for case in CASES:
    found = classify_oom_exception(case)
    dump = tracker.handle_exception(case, context="classify") if not found.is_oom else "not tried"
    print(type(case).__name__, found.is_oom, found.reason is not None, dump)
