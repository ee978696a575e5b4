"""Converts telemetry records of version 1, which had no ``schema_version``, to version 2.

telemetry_fields.json lists each field's names in version 1, in the order to try, and its default if all are
missing. A value of a wrong type is an error, as in version 2: only a missing name gets the default.
"""

from __future__ import annotations

from typing import Any, Mapping

from ._telemetry_fields import (
    ASCII_BLANKS,
    COLLECTORS,
    DEVICES,
    FIELDS,
    MIB,
    VERSION,
    Field,
    TelemetryProblem,
    is_blank,
    is_integer,
    is_number,
    nanoseconds,
    shown,
)

_NOTHING = object()
# Fields without a name in the record get a default: a constant, or derived from fields before them in the
# table or from constants.
_DERIVED = [
    field
    for field in FIELDS.values()
    if field.default_as or field.default_difference or field.default_beside
]
_DEFAULTS = {
    key: field.default
    for key, field in FIELDS.items()
    if not field.optional and field not in _DERIVED
}
_PREFIX = "metadata_"


def _device(value: Any) -> Any:
    """The device's number, from PyTorch's ("cuda:1") or TensorFlow's ("/GPU:1") notation."""
    if is_integer(value):
        return value
    if not isinstance(value, str):
        return _NOTHING
    text = value.lower()
    if DEVICES["host"] in text:
        return -1
    number = text.rpartition(":")[2]
    if number.isascii() and number.isdigit():
        return int(number)
    return 0 if text.lstrip("/").startswith(tuple(DEVICES["first"])) else _NOTHING


def _converted(name: str, kind: str, value: Any) -> Any:
    """A value of version 1 as version 2 has it; _NOTHING if it counts as missing."""
    base, _, other = kind.partition(" or ")
    if base == "device":
        return _device(value)
    if value is None and other:
        return None if other == "null" else _NOTHING
    if base in ("seconds", "mebibytes", "bytes"):
        if not is_number(value):
            raise TelemetryProblem("type", f"{name} must be a number, not {shown(value)}")
        if value == 0 and other == "zero":
            return _NOTHING
        if base == "seconds":
            return nanoseconds(value)
        size = value if base == "bytes" else value * MIB
        if not -(2**63) < size < 2**63:
            return size  # out of range; the check of version 2 rejects it
        return round(size) if base == "bytes" else int(size)
    if base == "integer" and not is_integer(value):
        raise TelemetryProblem("type", f"{name} must be an integer, not {shown(value)}")
    if base == "text" and other == "nothing" and (not isinstance(value, str) or is_blank(value)):
        return _NOTHING
    return value


def _first(record: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    if record.keys().isdisjoint(names):  # quicker than one lookup per name
        return _NOTHING
    for name, kind in names.items():
        if name in record:
            value = _converted(name, kind, record[name])
            if value is not _NOTHING:
                return value
    return _NOTHING


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    metadata = record.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise TelemetryProblem("type", f"metadata must be an object, not {shown(metadata)}")
    folded = {
        key[len(_PREFIX) :]: value
        for key, value in record.items()
        if isinstance(key, str) and key.startswith(_PREFIX)
    }
    return {**(metadata or {}), **folded}


def _collector(
    record: Mapping[str, Any], metadata: Mapping[str, Any], device_id: Any, default: str
) -> str:
    backend = record.get("backend", metadata.get("backend"))
    of_backend: dict[str, str] = COLLECTORS["of_backend"]
    name = backend.strip(ASCII_BLANKS).lower() if isinstance(backend, str) else ""
    if name in of_backend:
        return of_backend[name]
    for name, collector in COLLECTORS["beside"].items():
        if name in record:
            return str(collector["host" if device_id == -1 else "device"])
    return default


def _derived(field: Field, event: Mapping[str, Any], record: Mapping[str, Any]) -> Any:
    if field.default_as:
        return event[field.default_as]
    if field.default_difference:
        whole, part = (event[key] for key in field.default_difference)
        return None if whole is None else max(whole - part, 0)
    for name, value in field.default_beside.items():
        if name in record:
            return value
    return field.default


def has_size(record: Mapping[str, Any]) -> bool:
    """Whether a record of version 1 has the allocated bytes."""
    return any(name in record for name in FIELDS["allocator_allocated_bytes"].version_1)


def as_version_2(
    record: Mapping[str, Any],
    default_collector: str = COLLECTORS["default"],
    default_sampling_interval_ms: int = 0,
) -> dict[str, Any]:
    """The fields of version 2 for a record of version 1. Raises TelemetryProblem if they cannot be derived."""
    metadata = _metadata(record)
    event: dict[str, Any] = {"schema_version": VERSION, **_DEFAULTS}
    found = set()
    for key, field in FIELDS.items():
        value = _first(record, field.version_1)
        if value is _NOTHING and metadata:
            value = _first(metadata, field.in_metadata)
        if value is not _NOTHING:
            event[key] = value
            found.add(key)
    if "timestamp_ns" not in found:
        raise TelemetryProblem(
            "missing", "a record of version 1 needs a timestamp: seconds since 1970"
        )
    for field in _DERIVED:
        if field.key not in found:
            event[field.key] = _derived(field, event, record)
    if "collector" not in found:
        event["collector"] = _collector(record, metadata, event["device_id"], default_collector)
    if "sampling_interval_ms" not in found:
        event["sampling_interval_ms"] = default_sampling_interval_ms
    # In version 2 the rank has its own fields, so drop it from the metadata.
    event["metadata"] = {
        key: value
        for key, value in metadata.items()
        if key not in FIELDS or not FIELDS[key].optional
    }
    return event
