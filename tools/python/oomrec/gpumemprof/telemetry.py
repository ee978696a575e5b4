"""TelemetryEvent version 2, the trackers' export format, checked strictly when written and read.

A record has the 18 fields of ``REQUIRED_V2_FIELDS``, may have those of ``OPTIONAL_V2_FIELDS``, and no
others. Written records have all: a process outside a job has rank 0 of 1, and no job. Sizes are bytes, times
nanoseconds since 1970, ``device_id`` is -1 for the host. An unknown value is null; its field is never omitted.
A file is a JSON array (or an object with the list under ``events``), one JSON object per line, or CSV. Records
of versions 3 and 4, and of version 1, without ``schema_version``, are converted. Every problem is a ValueError
that names the field, and in a file the record. The command `oomrec` reads files and other versions: it is asked
once for a file, and once for each such record.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import uuid
import warnings
from dataclasses import dataclass, field, fields, replace
from typing import Any, Iterable, Mapping

from .._impl.command import run
from ..errors import ConfigurationError
from ._ranks import resolve_distributed_identity, with_defaults
from ._telemetry_fields import (
    FIELDS,
    LATER_VERSIONS,
    VERSION,
    TelemetryProblem,
    check_keys,
    check_values,
    check_version,
    is_integer,
)

# The version of events, and of records that are written by default.
SCHEMA_VERSION_V2 = VERSION
# A version of Stormlog's: with a session.
SCHEMA_VERSION_V3 = 3
# The version that Stormlog writes: with what its device can tell.
SCHEMA_VERSION_V4 = 4
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

# Of version 4: where a capability is false, the counter is null.
_COUNTER_CAPABILITY_FIELDS = {
    "allocator_allocated_bytes": "supports_allocator_allocated",
    "allocator_reserved_bytes": "supports_allocator_reserved",
    "allocator_active_bytes": "supports_allocator_active",
    "allocator_inactive_bytes": "supports_allocator_inactive",
    "device_used_bytes": "supports_device_used",
    "device_free_bytes": "supports_device_free",
    "device_total_bytes": "supports_device_total",
}
_BACKENDS = ("cuda", "rocm", "mps", "tensorflow", "jax", "cpu")
_UNKNOWN_COLLECTOR = "legacy.unknown"
_EVENT_BYTES = 4096  # of memory, at most
# Writers put an apostrophe before a cell that a spreadsheet would take for a formula.
_FORMULA = re.compile(r"'*[=+\-@\t]")


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


_NAMES = tuple(each.name for each in fields(TelemetryEventV2))


def telemetry_event_to_dict(event: TelemetryEventV2) -> dict[str, Any]:
    """The record of an event, with all its fields."""
    record = {name: getattr(event, name) for name in _NAMES}
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
    default_collector: str = _UNKNOWN_COLLECTOR,
    default_sampling_interval_ms: int = 0,
) -> TelemetryEventV2:
    """The event of a record of version 2 to 4, or of version 1 (no ``schema_version``) if that is allowed.

    `default_collector` and `default_sampling_interval_ms` complete a record of version 1 that lacks them.
    A record of another version than 2 takes 3 ms: `load_telemetry_events` reads many at once.
    Raises ValueError for another version, an invalid field, or version 1 without a timestamp.
    """
    if not isinstance(record, Mapping):
        message = f"a telemetry record must be an object, not {type(record).__name__}"
        raise TelemetryProblem("object", message)
    version = record.get("schema_version")
    if "schema_version" not in record:
        if not permissive_legacy:
            raise ValueError("Legacy record conversion is disabled")
        defaults = {"sampling_interval_ms": default_sampling_interval_ms}
        event = _converted({**defaults, **record})
        is_unknown = event.collector == _UNKNOWN_COLLECTOR
        return replace(event, collector=default_collector) if is_unknown else event
    if is_integer(version) and version in LATER_VERSIONS:
        return _converted(record)
    check_version(version)
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
    size = os.stat(path).st_size  # raises OSError: there is no such file
    # Ordinary events take up to 14 times their size in the file; a hostile file's need not.
    words = [f"--most-events={max(768 << 20, 14 * size) // _EVENT_BYTES}"]
    words += [] if permissive_legacy else ["--no-version-1"]
    words += [] if events_key is None else [f"--events-key={events_key}"]
    events, notes = _read([*words, os.path.abspath(os.fsdecode(path))])
    for note in notes:
        warnings.warn(f"{os.fsdecode(path)}: {note}", stacklevel=2)
    return events


def _converted(record: Mapping[str, Any]) -> TelemetryEventV2:
    """The event of a record of another version."""
    text = json.dumps([dict(record)], default=str, skipkeys=True)
    try:
        events, _ = _read(["-"], text.encode())
    except TelemetryProblem as problem:
        message = str(problem).partition("record 1: ")[2] or str(problem)
        raise TelemetryProblem(problem.reason, message) from None
    return events[0]


def _read(words: list[str], text: bytes = b"") -> tuple[list[TelemetryEventV2], list[str]]:
    """The events and notes that the command reads in a file, or in a `text`."""
    done = run("__telemetry", *words, timeout_s=None, stdin=text)
    if done is None:
        raise ConfigurationError(
            "the command oomrec reads telemetry, and is not beside python and not in the PATH; "
            "set OOMREC_COMMAND to its path"
        )
    lines = io.BytesIO(done.stdout)
    about = json.loads(next(lines, b"{}"))
    if "problem" in about:
        raise TelemetryProblem(about["reason"], about["problem"])
    if done.returncode:
        raise TelemetryProblem("command", f"oomrec could not read it: exit code {done.returncode}")
    return [_checked(json.loads(line)) for line in lines], about["notes"]


def _checked(record: dict[str, Any]) -> TelemetryEventV2:
    """The event of a record that the command has checked."""
    event = object.__new__(TelemetryEventV2)
    # With the same texts as keys in all events: each record has its own.
    vars(event).update(zip(_NAMES, map(record.__getitem__, _NAMES)))
    return event


def write_telemetry_events(
    path: str | os.PathLike[str],
    events: Iterable[TelemetryEventV2],
    format: str = "json",
    schema_version: int = SCHEMA_VERSION_V2,
    session_id: str | None = None,
) -> None:
    """Writes events as a JSON array with one event per line, or as CSV with the format's columns.

    In CSV null is an empty cell, metadata is JSON, and a text that a spreadsheet would take for a formula gets
    an apostrophe in front. Raises ValueError for another format or version.

    Args:
        format: "json" or "csv"
        schema_version: 2, or 3 or 4 for Stormlog
        session_id: of versions 3 and 4, for events that were not read from such a file; None: a new one
    """
    if format not in ("csv", "json"):
        raise ValueError(f"Unsupported format: {format}; use csv or json")
    if schema_version not in (SCHEMA_VERSION_V2, SCHEMA_VERSION_V3, SCHEMA_VERSION_V4):
        raise ValueError(f"Unsupported schema_version: {schema_version}; use 2, 3 or 4")
    is_later = schema_version != SCHEMA_VERSION_V2
    session = session_id or str(uuid.uuid4())
    records = (
        _later_version(event, schema_version, session)
        if is_later
        else telemetry_event_to_dict(event)
        for event in events
    )
    columns = [*REQUIRED_V2_FIELDS, *OPTIONAL_V2_FIELDS]
    with open(path, "w", encoding="utf-8", newline="") as file:
        if format == "csv":
            writer = csv.DictWriter(file, [*columns, *(["session_id"] if is_later else [])])
            writer.writeheader()
            for record in records:
                record["metadata"] = json.dumps(record["metadata"], default=str)
                writer.writerow({key: _guarded(value) for key, value in record.items()})
            return
        separator = "["
        for record in records:
            file.write(f"{separator}\n{json.dumps(record, default=str)}")
            separator = ","
        file.write("[]\n" if separator == "[" else "\n]\n")


def _later_version(event: TelemetryEventV2, version: int, session_id: str) -> dict[str, Any]:
    """An event's record of version 3 or 4."""
    record = telemetry_event_to_dict(event)
    metadata = record["metadata"]
    record.update(schema_version=version, session_id=metadata.pop("session_id", session_id))
    if version == SCHEMA_VERSION_V4:
        given = metadata.get("memory_capabilities")
        capabilities = {**_capabilities(record), **(given if isinstance(given, dict) else {})}
        metadata["memory_capabilities"] = capabilities
        for counter, capability in _COUNTER_CAPABILITY_FIELDS.items():
            if not capabilities[capability]:
                record[counter] = None
        if not capabilities["supports_allocator_allocated"]:
            record["allocator_change_bytes"] = None
    return record


def _capabilities(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record's device and framework can tell, as Stormlog derives it from a record of version 2."""
    metadata, collector = record["metadata"], record["collector"]
    known = {
        capability: record[counter] is not None
        for counter, capability in _COUNTER_CAPABILITY_FIELDS.items()
    }
    has_both = known["supports_allocator_allocated"] and known["supports_allocator_reserved"]
    backend = next((name for name in _BACKENDS if name in collector.lower()), "unknown")
    return {
        "backend": metadata.get("backend") or backend,
        "telemetry_collector": collector,
        "sampling_source": metadata.get("sampling_source") or "unknown",
        **known,
        "supports_native_allocator_history": False,
        "supports_fragmentation_analysis": has_both,
        "supports_allocator_attribution": has_both,
        "supports_bounded_profiling": False,
    }


def _guarded(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


__all__ = [
    "OPTIONAL_V2_FIELDS",
    "REQUIRED_V2_FIELDS",
    "SCHEMA_VERSION_V2",
    "SCHEMA_VERSION_V3",
    "SCHEMA_VERSION_V4",
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
