"""The fields of a telemetry event and their rules, for events that a program makes.

The table is telemetry_fields.json, which the command `oomrec` uses, too. The command reads files and other
versions; this module only checks values of version 2, which need not have a form in JSON.
"""

from __future__ import annotations

import json
import pkgutil
import reprlib
from decimal import Decimal
from typing import Any, Callable, Mapping, NamedTuple, Optional

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60
_BLANKS = " \t\n\r\v\f"  # of ASCII


class TelemetryProblem(ValueError):
    """Why a file or a record is rejected. `reason` is one word, the same as the command's."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


# Takes a value; returns the reason why the field cannot have it, or None.
Rule = Callable[[Any], Optional[str]]


def is_integer(value: object) -> bool:
    """Whether `value` is an integer of 64 bits, and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def shown(value: object) -> str:
    """The value for a message: a foreign one may be of any size."""
    return _REPR.repr(value)


def nanoseconds(seconds: float) -> int:
    """Seconds as nanoseconds, from the digits of the float's repr: multiplying 1.7e9 s by 1e9 is inexact."""
    digits = repr(seconds)
    whole, _, fraction = (format(Decimal(digits), "f") if "e" in digits else digits).partition(".")
    return int(whole + fraction[:9].ljust(9, "0"))


def _rule(kind: str, least: int | None) -> Rule:
    base, _, null = kind.partition(" or ")
    lowest = -(2**63) if least is None else least

    def integer(value: Any) -> str | None:
        if not is_integer(value):
            return None if value is None and null else "type"
        return "value" if value < lowest else None

    def text(value: Any) -> str | None:
        if not isinstance(value, str):
            return None if value is None and null else "type"
        return "value" if base == "text" and not value.strip(_BLANKS) else None

    def dictionary(value: Any) -> str | None:
        return None if isinstance(value, dict) else "type"

    return {"integer": integer, "object": dictionary}.get(base, text)


class Field(NamedTuple):
    """A field of version 2. `kind` is "integer" (at least `least`), "text" (not blank), "any text" or "object";
    with " or null" it accepts null, too."""

    key: str
    kind: str
    optional: bool
    least: int | None
    rule: Rule

    @property
    def wanted(self) -> str:
        """The requirement in words, as in "pid must be an integer >= -1"."""
        base, _, null = self.kind.partition(" or ")
        words = {"integer": "an integer", "text": "a non-empty string", "any text": "a string"}
        least = "" if self.least is None else f" >= {self.least}"
        return words.get(base, "an object") + least + (" or null" if null else "")


def _field(row: Mapping[str, Any]) -> Field:
    return Field(
        key=row["key"],
        kind=row["is"],
        optional=row.get("optional", False),
        least=row.get("least"),
        rule=_rule(row["is"], row.get("least")),
    )


_table = json.loads(pkgutil.get_data(__package__, "telemetry_fields.json") or b"")

VERSION: int = _table["schema_version"]
# Versions that the command reads as version 2.
LATER_VERSIONS = {int(version) for version in _table["later_versions"] if version.isdigit()}
FIELDS: dict[str, Field] = {row["key"]: _field(row) for row in _table["fields"]}
# Pairs of fields: in AT_MOST the first must not exceed the second, in LESS_THAN it must be less.
AT_MOST: list[tuple[str, str]] = [(part, whole) for part, whole in _table["at_most"]]
LESS_THAN: list[tuple[str, str]] = [(rank, world) for rank, world in _table["less_than"]]

_KNOWN = {"schema_version", *FIELDS}
_REQUIRED = {"schema_version", *(field.key for field in FIELDS.values() if not field.optional)}


def check_version(version: Any) -> None:
    """Checks `schema_version`: only the current version can be read."""
    if not is_integer(version):
        raise TelemetryProblem(
            "version", f"schema_version must be an integer, not {shown(version)}"
        )
    if version != VERSION:
        message = f"Unsupported schema_version: {version}; this reads versions {VERSION} to 4"
        raise TelemetryProblem("version", message)


def check_keys(record: Mapping[str, Any]) -> None:
    """Checks that a record has the keys of version 2, and no others."""
    keys = record.keys()
    if not keys >= _REQUIRED:
        missing = [key for key in ("schema_version", *FIELDS) if key in _REQUIRED - keys]
        message = f"Missing required telemetry fields: {', '.join(missing)}"
        raise TelemetryProblem("missing", message)
    if not keys <= _KNOWN:
        unknown = [str(key) for key in record if key not in _KNOWN]
        more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
        message = f"Unknown telemetry fields: {', '.join(unknown[:10])}{more}"
        raise TelemetryProblem("unknown", message)


def check_values(record: Mapping[str, Any]) -> None:
    """Checks the values of a record that has the keys of version 2, in the order of the table."""
    for key, field in FIELDS.items():
        if key in record:
            reason = field.rule(record[key])
            if reason:
                is_small = reason == "value" and field.least is not None
                wanted = f">= {field.least}" if is_small else field.wanted
                message = f"{key} must be {wanted}, not {shown(record[key])}"
                raise TelemetryProblem(reason, message)
    for part, whole in AT_MOST:
        if None not in (record[part], record[whole]) and record[part] > record[whole]:
            message = f"{part} ({record[part]}) cannot exceed {whole} ({record[whole]})"
            raise TelemetryProblem("contradiction", message)
    for rank, world in LESS_THAN:
        if None not in (record.get(rank), record.get(world)) and record[rank] >= record[world]:
            message = f"{rank} must be < {world}: {record[rank]} of {record[world]}"
            raise TelemetryProblem("contradiction", message)
