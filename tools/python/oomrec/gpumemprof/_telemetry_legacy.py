"""Records of telemetry version 1, which had no ``schema_version``, as version 2.

A table says for each field of version 2 under which names version 1 kept it, in which order they are
asked, and what stands there where none of them does. Anything of a wrong type is an error, as in
version 2: only a missing key has a default.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, Tuple

MIB = 1024 * 1024


def is_integer(value: object) -> bool:
    """Whether `value` is an integer; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether `value` is a finite integer or float; True and False are none."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def nanoseconds(seconds: float) -> int:
    """Seconds as nanoseconds, no digit of a float lost (1.7e9 s times 1e9 is not exact)."""
    whole = int(seconds)
    return whole * 1_000_000_000 + round((seconds - whole) * 1e9)


def _integer(value: Any, key: str) -> int:
    if not is_integer(value):
        raise ValueError(f"{key} must be an integer, not {value!r}")
    return int(value)


def _integer_or_null(value: Any, key: str) -> int | None:
    return None if value is None else _integer(value, key)


def _mebibytes(value: Any, key: str) -> int:
    if not is_number(value):
        raise ValueError(f"{key} must be a number, not {value!r}")
    return int(value * MIB)


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} must be a non-empty string, not {value!r}")
    return value


def _text_or_null(value: Any, key: str) -> str | None:
    return None if value is None else _text(value, key)


Convert = Callable[[Any, str], Any]
Places = Tuple[Tuple[str, Convert], ...]

# Where version 1 kept a field, the first place that is there wins.
_ALLOCATED: Places = (
    ("allocator_allocated_bytes", _integer),
    ("memory_allocated", _integer),
    ("memory_mb", _mebibytes),
    ("device_used_bytes", _integer),
)
_RESERVED: Places = (("allocator_reserved_bytes", _integer), ("memory_reserved", _integer))
_CHANGE: Places = (("allocator_change_bytes", _integer), ("memory_change", _integer))
_ACTIVE: Places = (
    ("allocator_active_bytes", _integer_or_null),
    ("active_memory", _integer_or_null),
)
_INACTIVE: Places = (
    ("allocator_inactive_bytes", _integer_or_null),
    ("inactive_memory", _integer_or_null),
)
_USED: Places = (("device_used_bytes", _integer), ("device_used", _integer))
_FREE: Places = (("device_free_bytes", _integer_or_null), ("device_free", _integer_or_null))
_TOTAL: Places = (
    ("device_total_bytes", _integer_or_null),
    ("total_memory", _integer_or_null),
    ("device_total", _integer_or_null),
    ("total_bytes", _integer_or_null),
)
_EVENT_TYPE: Places = (("event_type", _text), ("type", _text))
_INTERVAL: Places = (("sampling_interval_ms", _integer),)
_CONTEXT: Places = (("context", _text_or_null), ("message", _text_or_null))
_PID: Places = (("pid", _integer),)
_HOST: Places = (("host", _text),)


def _first(record: Mapping[str, Any], places: Places, default: Any) -> Any:
    for key, convert in places:
        if key in record:
            return convert(record[key], key)
    return default


def _timestamp_ns(record: Mapping[str, Any]) -> int:
    if "timestamp_ns" in record:
        return _integer(record["timestamp_ns"], "timestamp_ns")
    seconds = record.get("timestamp")
    if not is_number(seconds):
        raise ValueError("a record of version 1 needs a timestamp: seconds since 1970")
    assert isinstance(seconds, (int, float))
    return nanoseconds(seconds)


def _device_id(record: Mapping[str, Any]) -> int:
    """Of `device_id`, else of `device` as PyTorch ("cuda:1") and TensorFlow ("/GPU:1") write it."""
    if "device_id" in record:
        return _integer(record["device_id"], "device_id")
    device = record.get("device")
    if isinstance(device, str) and "cpu" not in device.lower():
        name, _, number = device.lower().rpartition(":")
        if number.isdigit():
            return int(number)
        if (name or number).lstrip("/") in ("gpu", "cuda", "hip", "mps"):
            return 0
    if is_integer(device):
        return _integer(device, "device")
    return -1


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    metadata = record.get("metadata")
    if metadata is None:
        metadata = {}
    elif not isinstance(metadata, dict):
        raise ValueError(f"metadata must be an object, not {metadata!r}")
    folded = {
        key[len("metadata_") :]: value
        for key, value in record.items()
        if isinstance(key, str) and key.startswith("metadata_")
    }
    return {**metadata, **folded}


def _collector(record: Mapping[str, Any], device_id: int, backend: Any, default: str) -> str:
    if "collector" in record:
        return _text(record["collector"], "collector")
    if "memory_mb" in record:
        return "tfmemprof.memory_tracker"
    if backend in ("cuda", "rocm", "mps", "cpu"):
        return f"gpumemprof.{backend}_tracker"
    if "memory_allocated" in record:
        return "gpumemprof.cpu_tracker" if device_id < 0 else "gpumemprof.cuda_tracker"
    return default


def as_version_2(
    record: Mapping[str, Any], default_collector: str, default_sampling_interval_ms: int
) -> dict[str, Any]:
    """The fields of version 2 for a record of version 1; ValueError where it cannot be one."""
    metadata = _metadata(record)
    timestamp_ns = _timestamp_ns(record)
    device_id = _device_id(record)
    allocated = _first(record, _ALLOCATED, 0)
    used = _first(record, _USED, allocated)
    total = _first(record, _TOTAL, None)
    free = _first(record, _FREE, None if total is None else max(total - used, 0))
    event: dict[str, Any] = {
        "schema_version": 2,
        "timestamp_ns": timestamp_ns,
        "event_type": _first(record, _EVENT_TYPE, "sample"),
        "collector": _collector(
            record, device_id, record.get("backend", metadata.get("backend")), default_collector
        ),
        "sampling_interval_ms": _first(record, _INTERVAL, default_sampling_interval_ms),
        "pid": _first(record, _PID, _first(metadata, _PID, -1)),
        "host": _first(record, _HOST, _first(metadata, _HOST, "unknown")),
        "device_id": device_id,
        "allocator_allocated_bytes": allocated,
        "allocator_reserved_bytes": _first(record, _RESERVED, allocated),
        "allocator_active_bytes": _first(record, _ACTIVE, None),
        "allocator_inactive_bytes": _first(record, _INACTIVE, None),
        "allocator_change_bytes": _first(record, _CHANGE, 0),
        "device_used_bytes": used,
        "device_free_bytes": free,
        "device_total_bytes": total,
        "context": _first(record, _CONTEXT, None),
        "metadata": metadata,
    }
    for key in ("job_id", "rank", "local_rank", "world_size"):
        if record.get(key) is not None:
            event[key] = record[key]
    return event
