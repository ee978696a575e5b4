"""A tracker's counters, which programs read as `tracker.stats`, and the statistics derived from them."""

from __future__ import annotations

import time
from typing import Any, Mapping, Sequence

from ._alerts import percent_used
from .device_collectors import DeviceMemorySample

_COUNTERS = (
    "peak_memory",
    "total_allocations",
    "total_deallocations",
    "total_allocation_bytes",
    "total_deallocation_bytes",
    "alert_count",
    "total_events",
)
_AN_HOUR_S = 3600.0


def zeros() -> dict[str, Any]:
    """The counters of a tracker without samples."""
    return dict.fromkeys(_COUNTERS, 0)


def initial() -> dict[str, Any]:
    """The statistics of a new tracker: clearing its events leaves the two times."""
    return {**zeros(), "tracking_start_time": None, "last_memory_check": 0}


def count(stats: dict[str, Any], allocated: int, change: int) -> bool:
    """Counts a sample, in bytes. Returns whether it is a new peak."""
    stats["last_memory_check"] = time.time()
    is_peak: bool = allocated > stats["peak_memory"]
    if is_peak:
        stats["peak_memory"] = allocated
    if change:
        kind = "allocation" if change > 0 else "deallocation"
        stats[f"total_{kind}s"] += 1
        stats[f"total_{kind}_bytes"] += abs(change)
    return is_peak


def statistics(
    stats: Mapping[str, Any],
    event_times: Sequence[float],
    sample: DeviceMemorySample,
    stopped_at: float | None,
) -> dict[str, Any]:
    """The counters, rates, means and current memory; `stopped_at` None: tracking is still running."""
    now = time.time()
    begun = stats["tracking_start_time"]
    ended = now if stopped_at is None else stopped_at
    duration = max(ended - begun, 0.0) if begun is not None else 0.0
    allocations, deallocations = stats["total_allocations"], stats["total_deallocations"]
    return {
        **stats,
        "total_events": len(event_times),
        "events_last_hour": sum(each > now - _AN_HOUR_S for each in event_times),
        "current_memory_allocated": sample.allocated_bytes,
        "current_memory_reserved": sample.reserved_bytes,
        "memory_utilization_percent": percent_used(sample),
        "average_allocation_size": stats["total_allocation_bytes"] / max(allocations, 1),
        "average_deallocation_size": stats["total_deallocation_bytes"] / max(deallocations, 1),
        "tracking_duration_seconds": duration,
        "allocations_per_second": allocations / max(duration, 1.0),
        "bytes_allocated_per_second": stats["total_allocation_bytes"] / max(duration, 1.0),
    }
