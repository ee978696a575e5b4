"""TelemetryEvent version 2: what trackers export, checked strictly on the way out and in.

A record has the 18 fields of ``REQUIRED_V2_FIELDS``, may have those of ``OPTIONAL_V2_FIELDS``, and no
other. Sizes are bytes, times nanoseconds since 1970, ``device_id`` is -1 for the host; a field whose
value is not known is null, never left out. Files hold a JSON array (or an object with the list under
``events``), one JSON object a line, or CSV; records of version 1, without ``schema_version``, are
converted. Every problem is a ValueError that names the field, and in a file the record.
"""

from __future__ import annotations

import ast
import csv
import json
import os
from dataclasses import dataclass, field, fields
from typing import (
    Any,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Tuple,
)

from ._telemetry_legacy import as_version_2, is_integer

# The version of records that are written.
SCHEMA_VERSION_V2 = 2
# `pid` of a record of version 1 that does not name it.
UNKNOWN_PID = -1
# `host` of a record of version 1 that does not name it.
UNKNOWN_HOST = "unknown"

Rule = Tuple[Callable[[Any], bool], str]


def _at_least(least: int) -> Rule:
    return (lambda value: is_integer(value) and value >= least), f"an integer >= {least}"


def _or_null(rule: Rule) -> Rule:
    return (lambda value: value is None or rule[0](value)), f"{rule[1]} or null"


_TEXT: Rule = (lambda value: isinstance(value, str) and bool(value.strip())), "a non-empty string"
_ANY_TEXT: Rule = (lambda value: isinstance(value, str)), "a string"
_SIGNED: Rule = is_integer, "an integer"
_BYTES = _at_least(0)

_REQUIRED: dict[str, Rule] = {
    "schema_version": ((lambda value: is_integer(value) and value == 2), "2"),
    "timestamp_ns": _at_least(0),
    "event_type": _TEXT,
    "collector": _TEXT,
    "sampling_interval_ms": _at_least(0),
    "pid": _at_least(-1),
    "host": _TEXT,
    "device_id": _at_least(-1),
    "allocator_allocated_bytes": _BYTES,
    "allocator_reserved_bytes": _BYTES,
    "allocator_active_bytes": _or_null(_BYTES),
    "allocator_inactive_bytes": _or_null(_BYTES),
    "allocator_change_bytes": _SIGNED,
    "device_used_bytes": _BYTES,
    "device_free_bytes": _or_null(_BYTES),
    "device_total_bytes": _or_null(_BYTES),
    "context": _or_null(_ANY_TEXT),
    "metadata": ((lambda value: isinstance(value, dict)), "an object"),
}
_OPTIONAL: dict[str, Rule] = {
    "job_id": _or_null(_ANY_TEXT),
    "rank": _at_least(0),
    "local_rank": _at_least(0),
    "world_size": _at_least(1),
}
# The keys that every record has.
REQUIRED_V2_FIELDS: tuple[str, ...] = tuple(_REQUIRED)
# The keys that a record of a rank has besides.
OPTIONAL_V2_FIELDS: tuple[str, ...] = tuple(_OPTIONAL)


@dataclass
class TelemetryEventV2:
    """One event. Making one that breaks a rule raises ValueError; a missing rank stays None."""

    schema_version: int
    timestamp_ns: int
    event_type: str
    collector: str
    sampling_interval_ms: int
    pid: int
    host: str
    device_id: int
    allocator_allocated_bytes: int
    allocator_reserved_bytes: int
    allocator_active_bytes: int | None
    allocator_inactive_bytes: int | None
    allocator_change_bytes: int
    device_used_bytes: int
    device_free_bytes: int | None
    device_total_bytes: int | None
    context: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    job_id: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None

    def __post_init__(self) -> None:
        validate_telemetry_record(telemetry_event_to_dict(self))


def telemetry_event_to_dict(event: TelemetryEventV2) -> dict[str, Any]:
    """The record of an event; of the optional fields those that are known."""
    record = {each.name: getattr(event, each.name) for each in fields(event)}
    if isinstance(event.metadata, dict):
        record["metadata"] = dict(event.metadata)
    return {
        key: value for key, value in record.items() if key not in _OPTIONAL or value is not None
    }


def validate_telemetry_record(record: Mapping[str, Any]) -> None:
    """Checks a record of version 2 by every rule; ValueError names the first field that breaks one."""
    missing = [key for key in _REQUIRED if key not in record]
    if missing:
        raise ValueError(f"Missing required telemetry fields: {', '.join(missing)}")
    unknown = [str(key) for key in record if key not in _REQUIRED and key not in _OPTIONAL]
    if unknown:
        raise ValueError(f"Unknown telemetry fields: {', '.join(unknown)}")
    for key, value in record.items():
        holds, wanted = _REQUIRED.get(key) or _OPTIONAL[key]
        if not holds(value):
            raise ValueError(f"{key} must be {wanted}, not {value!r}")
    total = record["device_total_bytes"]
    for key in ("device_used_bytes", "device_free_bytes"):
        part = record[key]
        if total is not None and part is not None and part > total:
            raise ValueError(f"{key} ({part}) cannot exceed device_total_bytes ({total})")
    world_size = record.get("world_size")
    for key in ("rank", "local_rank"):
        if world_size is not None and record.get(key) is not None and record[key] >= world_size:
            raise ValueError(f"{key} ({record[key]}) must be less than world_size ({world_size})")


def telemetry_event_from_record(
    record: Mapping[str, Any],
    permissive_legacy: bool = True,
    default_collector: str = "legacy.unknown",
    default_sampling_interval_ms: int = 0,
) -> TelemetryEventV2:
    """The event of a record of version 2, or of version 1 (no ``schema_version``) if that is allowed.

    `default_collector` and `default_sampling_interval_ms` fill a record of version 1 that does not
    name them. Raises ValueError: another version, a rule broken, version 1 without a timestamp.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"a telemetry record must be an object, not {type(record).__name__}")
    if "schema_version" not in record:
        if not permissive_legacy:
            raise ValueError("Legacy record conversion is disabled")
        record = as_version_2(record, default_collector, default_sampling_interval_ms)
    version = record["schema_version"]
    if not is_integer(version):
        raise ValueError(f"schema_version must be an integer, not {version!r}")
    if version != SCHEMA_VERSION_V2:
        raise ValueError(f"Unsupported schema_version: {version}; this reads version 2")
    validate_telemetry_record(record)
    return TelemetryEventV2(**dict(record))


def _is_event(payload: Mapping[str, Any]) -> bool:
    return "timestamp" in payload or "timestamp_ns" in payload


def _records_of(payload: Any, events_key: str | None) -> list[Any]:
    """The list of records in a JSON document: itself, under a key, or the only one."""
    if isinstance(payload, list):
        return payload
    if not isinstance(payload, dict):
        raise ValueError("telemetry must be a JSON object or array")
    key = "events" if events_key is None else events_key
    if isinstance(payload.get(key), list):
        records: list[Any] = payload[key]
        return records
    if events_key is not None:
        raise ValueError(f"Top-level key '{events_key}' must contain a list of events")
    if _is_event(payload):
        return [payload]
    raise ValueError("there are no telemetry events: no list, no key 'events'")


def _json_records(text: str, events_key: str | None) -> list[Any]:
    try:
        return _records_of(json.loads(text), events_key)
    except json.JSONDecodeError as not_one_document:
        lines = [line for line in enumerate(text.splitlines(), 1) if line[1].strip()]
        if len(lines) < 2:
            raise ValueError(f"no JSON: {not_one_document}") from None
        records = []
        for number, line in lines:
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                # The first line tells whether it was meant as a document or as lines.
                problem = not_one_document if not records else error
                raise ValueError(f"line {number}: no JSON: {problem}") from None
        return records


def _csv_value(key: str, text: str) -> Any:
    """A cell as JSON would have it; integers of a column with gaps are written 17.0 by some."""
    if key == "metadata":
        for read in (json.loads, ast.literal_eval):
            try:
                return read(text)
            except (ValueError, SyntaxError):
                continue
        raise ValueError(f"metadata must be an object, not {text!r}")
    if key in ("event_type", "type", "collector", "host", "context", "message", "job_id", "device"):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    is_whole = key != "timestamp" and key != "memory_mb" and number.is_integer()
    return int(number) if is_whole else number


def _csv_records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for row in csv.DictReader(lines):
        if None in row or None in row.values():
            raise ValueError("a row has more or fewer cells than there are columns")
        record = {key: _csv_value(key, text) for key, text in row.items() if text != ""}
        if "schema_version" in row:
            # An empty cell is null in a field that must be there, else the field is not there.
            record = {**{key: None for key in row if key in _REQUIRED}, **record}
        yield record


def load_telemetry_events(
    path: str | os.PathLike[str],
    permissive_legacy: bool = True,
    events_key: str | None = None,
) -> list[TelemetryEventV2]:
    """The events of a file: a JSON array, an object with a list of them, JSON lines, or CSV.

    `events_key` names the list in a JSON object (``events`` if not given). Files whose name ends in
    ``.csv`` are CSV. Raises ValueError that names the first record that is none, or OSError.
    """
    with open(path, encoding="utf-8", newline="") as file:
        try:
            if os.fspath(path).lower().endswith(".csv"):
                records: list[Any] = list(_csv_records(file))
            else:
                records = _json_records(file.read(), events_key)
        except (UnicodeDecodeError, csv.Error, RecursionError) as error:
            raise ValueError(f"no text of telemetry: {error}") from None
    events = []
    for index, record in enumerate(records):
        try:
            events.append(telemetry_event_from_record(record, permissive_legacy))
        except ValueError as error:
            raise ValueError(f"event {index}: {error}") from None
    return events


def write_telemetry_events(
    path: str | os.PathLike[str], events: Iterable[TelemetryEventV2], format: str = "json"
) -> None:
    """Writes events as a JSON array, an event a line, or as CSV with the columns of the format.

    `format`: "json" or "csv", else ValueError. In CSV null is an empty cell, metadata is JSON.
    """
    if format not in ("csv", "json"):
        raise ValueError(f"Unsupported format: {format}; use csv or json")
    with open(path, "w", encoding="utf-8", newline="") as file:
        if format == "csv":
            writer = csv.DictWriter(file, [*REQUIRED_V2_FIELDS, *OPTIONAL_V2_FIELDS])
            writer.writeheader()
            for event in events:
                record = telemetry_event_to_dict(event)
                record["metadata"] = json.dumps(record["metadata"], default=str)
                writer.writerow(record)
            return
        separator = "["
        for event in events:
            file.write(f"{separator}\n{json.dumps(telemetry_event_to_dict(event), default=str)}")
            separator = ","
        file.write("[]\n" if separator == "[" else "\n]\n")


__all__ = [
    "OPTIONAL_V2_FIELDS",
    "REQUIRED_V2_FIELDS",
    "SCHEMA_VERSION_V2",
    "UNKNOWN_HOST",
    "UNKNOWN_PID",
    "TelemetryEventV2",
    "load_telemetry_events",
    "telemetry_event_from_record",
    "telemetry_event_to_dict",
    "validate_telemetry_record",
    "write_telemetry_events",
]
