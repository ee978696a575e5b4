"""The rules of TelemetryEvent v2, as GPU Memory Profiler's readers apply them: exactly these keys,
each of its type."""

from __future__ import annotations


def is_integer(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def at_least(least: int):
    return lambda value: is_integer(value) and value >= least


def or_null(rule):
    return lambda value: value is None or rule(value)


def is_text(value) -> bool:
    return isinstance(value, str)


REQUIRED = {
    "schema_version": lambda value: is_integer(value) and value == 2,
    "timestamp_ns": at_least(0),
    "event_type": is_text,
    "collector": is_text,
    "sampling_interval_ms": at_least(0),
    "pid": at_least(-1),
    "host": is_text,
    "device_id": at_least(-1),
    "allocator_allocated_bytes": at_least(0),
    "allocator_reserved_bytes": at_least(0),
    "allocator_active_bytes": or_null(at_least(0)),
    "allocator_inactive_bytes": or_null(at_least(0)),
    "allocator_change_bytes": is_integer,
    "device_used_bytes": at_least(0),
    "device_free_bytes": or_null(at_least(0)),
    "device_total_bytes": or_null(at_least(0)),
    "context": or_null(is_text),
    "metadata": lambda value: isinstance(value, dict),
}
OPTIONAL = {
    "job_id": or_null(is_text),
    "rank": at_least(0),
    "local_rank": at_least(0),
    "world_size": at_least(1),
}


def problems(event: dict) -> list[str]:
    found = [f"no {key}" for key in REQUIRED if key not in event]
    for key, value in event.items():
        rule = REQUIRED.get(key) or OPTIONAL.get(key)
        if rule is None:
            found.append(f"{key} is no key of it")
        elif not rule(value):
            found.append(f"{key} is {value!r}")
    total = event.get("device_total_bytes")
    for part in ("device_used_bytes", "device_free_bytes"):
        if total is not None and event.get(part) is not None and event[part] > total:
            found.append(f"{part} is more than there is")
    return found
