"""A tracker's events, one for each change, with the field names of a bundle's events.json."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ._telemetry_fields import nanoseconds
from .telemetry import TelemetryEventV2

ALERT_TYPES = ("warning", "critical", "error")


@dataclass
class TrackingEvent:
    """One event of a tracker. Sizes in bytes; `timestamp` in seconds since 1970; `device_id` -1: host.

    `event_type`: start, stop, peak, allocation, deallocation, warning, critical, error, cleanup.
    `memory_change` is what the event added, or took away (negative); `device_used`, `device_free` and
    `device_total` are the whole device's, None where they are not known. Outside a job the rank is 0 of 1.
    """

    timestamp: float
    event_type: str
    memory_allocated: int
    memory_reserved: int
    memory_change: int
    device_id: int
    context: str | None = None
    job_id: str | None = None
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    metadata: dict[str, Any] | None = None
    active_memory: int | None = None
    inactive_memory: int | None = None
    device_used: int | None = None
    device_free: int | None = None
    device_total: int | None = None
    backend: str = "cpu"

    def to_dict(self) -> dict[str, Any]:
        """The event as in events.json."""
        return asdict(self)


def selected(
    events: Sequence[TrackingEvent],
    event_type: str | None = None,
    last_n: int | None = None,
    since: float | None = None,
) -> list[TrackingEvent]:
    """Events of a type, at or after `since` (seconds since 1970), of these the last `last_n`."""
    found = [
        event
        for event in events
        if (event_type is None or event.event_type == event_type)
        and (since is None or event.timestamp >= since)
    ]
    return found if last_n is None else found[len(found) - min(max(last_n, 0), len(found)) :]


def timeline(events: Sequence[TrackingEvent], interval: float) -> dict[str, list[Any]]:
    """Memory every `interval` seconds from the first event to the last, each time as of the latest event.

    Returns `timestamps` (seconds since 1970), `allocated` and `reserved` (bytes), of equal length.
    Raises ValueError for an interval that is not above 0.
    """
    if not interval > 0:
        raise ValueError(f"interval must be above 0 seconds, not {interval!r}")
    line: dict[str, list[Any]] = {"timestamps": [], "allocated": [], "reserved": []}
    if not events:
        return line
    start = events[0].timestamp
    index = 0
    for step in range(int((events[-1].timestamp - start) / interval) + 1):
        end = start + (step + 1) * interval
        while index + 1 < len(events) and events[index + 1].timestamp < end:
            index += 1
        line["timestamps"].append(start + step * interval)
        line["allocated"].append(events[index].memory_allocated)
        line["reserved"].append(events[index].memory_reserved)
    return line


def as_telemetry(
    events: Iterable[TrackingEvent],
    capabilities: Mapping[str, Any],
    sampling_interval_ms: int,
) -> Iterator[TelemetryEventV2]:
    """This process' events as records of TelemetryEvent version 2.

    `capabilities`: the collector's.
    """
    host, pid = socket.gethostname() or "unknown", os.getpid()
    facts = dict(capabilities)
    collector = facts.pop("telemetry_collector")
    for event in events:
        used = event.memory_allocated if event.device_used is None else event.device_used
        if event.device_total is not None:
            used = min(used, event.device_total)
        yield TelemetryEventV2(
            schema_version=2,
            timestamp_ns=nanoseconds(event.timestamp),
            event_type=event.event_type,
            collector=collector,
            sampling_interval_ms=sampling_interval_ms,
            pid=pid,
            host=host,
            device_id=event.device_id,
            allocator_allocated_bytes=event.memory_allocated,
            allocator_reserved_bytes=event.memory_reserved,
            allocator_active_bytes=event.active_memory,
            allocator_inactive_bytes=event.inactive_memory,
            allocator_change_bytes=event.memory_change,
            device_used_bytes=used,
            device_free_bytes=event.device_free,
            device_total_bytes=event.device_total,
            context=event.context,
            job_id=event.job_id,
            rank=event.rank,
            local_rank=event.local_rank,
            world_size=event.world_size,
            metadata={**(event.metadata or {}), **facts},
        )
