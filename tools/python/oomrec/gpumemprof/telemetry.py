"""TelemetryEvent version 2, the trackers' export format, checked strictly when written and read.

A record has the 18 fields of ``REQUIRED_V2_FIELDS``, may have those of ``OPTIONAL_V2_FIELDS``, and no
others. Written records have all: a process outside a job has rank 0 of 1, and no job. Sizes are bytes, times
nanoseconds since 1970, ``device_id`` is -1 for the host. An unknown value is null; its field is never omitted.
A file is a JSON array (or an object with the list under ``events``), one JSON object per line, or CSV. Records
of version 1, without ``schema_version``, are converted. Every problem is a ValueError that names the field,
and in a file the record. `oomrec analyze` reads the same files in the same way.
"""

from __future__ import annotations

import csv
import json
import os
import warnings
from dataclasses import dataclass, field, fields
from typing import Any, Iterable, Mapping

from .._foreign_files import read_named
from ._ranks import resolve_distributed_identity, with_defaults
from ._telemetry_fields import (
    FIELDS,
    NOTES,
    VERSION,
    TelemetryProblem,
    check_keys,
    check_values,
    check_version,
)
from ._telemetry_files import Budget, guarded, records_of
from ._telemetry_later import as_version_2 as later_as_version_2
from ._telemetry_later import is_later
from ._telemetry_legacy import as_version_2, has_size

# The version of records that are written.
SCHEMA_VERSION_V2 = VERSION
# `pid` of a record of version 1 that does not name it.
UNKNOWN_PID = -1
# `host` of a record of version 1 that does not name it.
UNKNOWN_HOST = "unknown"

# The keys that every record has.
REQUIRED_V2_FIELDS: tuple[str, ...] = (
    "schema_version",
    *(each.key for each in FIELDS.values() if not each.optional),
)
# The keys of a rank, which a record that is read may lack.
OPTIONAL_V2_FIELDS: tuple[str, ...] = tuple(each.key for each in FIELDS.values() if each.optional)


_MOST_BYTES = 1 << 30  # of a file
_EVENT_BYTES = 4096  # of memory, and for the time to check it


@dataclass
class TelemetryEventV2:
    """One event. An invalid field raises ValueError. Outside a job the rank is 0 of 1."""

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
    job_id: str | None = None
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate_telemetry_record(telemetry_event_to_dict(self))


def telemetry_event_to_dict(event: TelemetryEventV2) -> dict[str, Any]:
    """The record of an event, with all its fields."""
    record = {each.name: getattr(event, each.name) for each in fields(event)}
    if isinstance(event.metadata, dict):
        record["metadata"] = dict(event.metadata)
    return record


def validate_telemetry_record(record: Mapping[str, Any]) -> None:
    """Checks a record of version 2; ValueError names the first invalid field."""
    check_keys(record)
    check_values(record)
    check_version(record["schema_version"])


def telemetry_event_from_record(
    record: Mapping[str, Any],
    permissive_legacy: bool = True,
    default_collector: str = "legacy.unknown",
    default_sampling_interval_ms: int = 0,
) -> TelemetryEventV2:
    """The event of a record of version 2 to 4, or of version 1 (no ``schema_version``) if that is allowed.

    `default_collector` and `default_sampling_interval_ms` complete a record of version 1 that lacks them.
    Raises ValueError for another version, an invalid field, or version 1 without a timestamp.
    """
    if not isinstance(record, Mapping):
        message = f"a telemetry record must be an object, not {type(record).__name__}"
        raise TelemetryProblem("object", message)
    if "schema_version" in record and is_later(record["schema_version"]):
        record = later_as_version_2(record)
    elif "schema_version" in record:
        check_version(record["schema_version"])
    elif permissive_legacy:
        record = as_version_2(record, default_collector, default_sampling_interval_ms)
    else:
        raise ValueError("Legacy record conversion is disabled")
    check_keys(record)
    if not all(key in record for key in OPTIONAL_V2_FIELDS):
        record = {**record, **_rank_of(record)}
    return TelemetryEventV2(**record)


def _rank_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the rank. A world size that is missing is the smallest with these ranks."""
    known = {key: record[key] for key in OPTIONAL_V2_FIELDS if key in record}
    if any(FIELDS[key].rule(value) for key, value in known.items()):
        check_values(record)  # raises: nothing can be derived from these
    rank = with_defaults(known)
    if "world_size" not in record:
        rank["world_size"] = max(rank["rank"], rank["local_rank"]) + 1
    return rank


def load_telemetry_events(
    path: str | os.PathLike[str],
    permissive_legacy: bool = True,
    events_key: str | None = None,
) -> list[TelemetryEventV2]:
    """The events of a file: a JSON array, an object with a list of them, JSON lines, or CSV.

    The content decides which of them it is, not the file's name. `events_key` names the list in a JSON
    object (``events`` if not given). A last line that a killed writer cut off is skipped with a
    warning. Raises ValueError, which names the first record that cannot be read, or OSError. A file of more
    than 1 GiB is not read, nor one whose texts would need many times its size in memory, as no events do.
    """
    try:
        data = read_named(path, _MOST_BYTES)
    except ValueError as error:
        raise TelemetryProblem("file", f"it {error}") from None
    budget = Budget(len(data))
    records = records_of(data, events_key, budget)
    del data
    budget.take(len(records.rows) * _EVENT_BYTES)
    cut, has_no_size = records.cut, False
    events = []
    for number, record in enumerate(records.rows, 1):
        try:
            events.append(telemetry_event_from_record(record, permissive_legacy))
        except TelemetryProblem as problem:
            cut = records.may_be_cut and number == len(records.rows)
            if cut:
                break
            raise TelemetryProblem(problem.reason, f"event {number - 1}: {problem}") from None
        except ValueError as error:
            raise ValueError(f"event {number - 1}: {error}") from None
        has_no_size |= "schema_version" not in record and not has_size(record)
    notes = {"cut": cut, "may_be_cut": records.may_be_cut and not cut, "no_size": has_no_size}
    for note in (name for name, holds in notes.items() if holds):
        warnings.warn(f"{os.fspath(path)}: {NOTES[note]}", stacklevel=2)
    return events


def write_telemetry_events(
    path: str | os.PathLike[str], events: Iterable[TelemetryEventV2], format: str = "json"
) -> None:
    """Writes events as a JSON array with one event per line, or as CSV with the format's columns.

    `format`: "json" or "csv", else ValueError. In CSV null is an empty cell, metadata is JSON, and a text that
    a spreadsheet would take for a formula gets an apostrophe in front.
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
                writer.writerow({key: guarded(value) for key, value in record.items()})
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
    "resolve_distributed_identity",
    "telemetry_event_from_record",
    "telemetry_event_to_dict",
    "validate_telemetry_record",
    "write_telemetry_events",
]
