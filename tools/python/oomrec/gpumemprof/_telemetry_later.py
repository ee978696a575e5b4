"""Reads telemetry records of versions 3 and 4, which Stormlog writes, as version 2.

They have a session_id, which goes to the metadata; version 4 has null in place of counters that a device
lacks, which count as 0. telemetry_fields.json says which.
"""

from __future__ import annotations

from typing import Any, Mapping

from ._telemetry_fields import (
    LATER_VERSIONS,
    VERSION,
    TelemetryProblem,
    is_blank,
    is_integer,
    shown,
)

_SESSION = "session_id"


def is_later(version: Any) -> bool:
    """Whether `schema_version` is one that is read as version 2."""
    return is_integer(version) and str(version) in LATER_VERSIONS


def as_version_2(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of version 2. Raises TelemetryProblem if its session_id is missing or wrong."""
    if _SESSION not in record:
        raise TelemetryProblem("missing", f"Missing required telemetry fields: {_SESSION}")
    session = record[_SESSION]
    if not isinstance(session, str) or is_blank(session):
        reason = "value" if isinstance(session, str) else "type"
        raise TelemetryProblem(
            reason, f"{_SESSION} must be a non-empty string, not {shown(session)}"
        )
    converted = {key: value for key, value in record.items() if key != _SESSION}
    for key in LATER_VERSIONS[str(record["schema_version"])]["null_as_zero"]:
        if key in converted and converted[key] is None:
            converted[key] = 0
    if isinstance(converted.get("metadata"), dict):
        converted["metadata"] = {_SESSION: session, **converted["metadata"]}
    converted["schema_version"] = VERSION
    return converted
