"""A row as a profile of the memory in use: a message of OTLP, or pprof's profile.proto.

Both are tables that refer to each other by index, in which index 0 stands for nothing. Field numbers:
https://github.com/open-telemetry/opentelemetry-proto (profiles/v1development, 1.10) and
https://github.com/google/pprof/blob/main/proto/profile.proto
"""

from __future__ import annotations

import datetime as dt
import gzip
import re
import uuid
from typing import Any, Dict, Iterable, Iterator, NamedTuple, Union

Value = Union[int, str, bytes]

PERIOD = ("space", "bytes")
SAMPLE_TYPES = (("inuse_space", "bytes"), ("inuse_objects", "count"))
MOST_LABEL = 1000  # characters: receivers bound what they take
EPOCH = dt.datetime(1970, 1, 1)
IDS = uuid.UUID("5b7e2f0c-63f1-4c2e-9d0a-9c1f6f2f7a11")  # the namespace of our profiles' ids


# --- protobuf ------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def field(number: int, value: Value) -> bytes:
    """A number, or a text or message with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode(errors="replace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fixed64(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def packed(number: int, values: Iterable[int]) -> bytes:
    return field(number, b"".join(map(varint, values)))


def message(*fields: tuple[int, Value]) -> bytes:
    """Fields that are 0 or empty are left out, as their default."""
    return b"".join(field(number, value) for number, value in fields if value)


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers, and the texts and messages, of a message.

    Raises:
        ValueError: it is no message, or has fields of fixed width
    """
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise ValueError("cut short")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        elif tag & 7 == 2:
            length = number()
            if at + length > len(data):
                raise ValueError("cut short")
            yield tag >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError("a field of fixed width")


# --- tables --------------------------------------------------------------------------------------


class Numbered(Dict[Any, int]):
    """The index of each value, in the order of first use. The first one stands for nothing."""

    def __init__(self, nothing: Any) -> None:
        super().__init__({nothing: 0})

    def __missing__(self, value: Any) -> int:
        self[value] = len(self)
        return self[value]


class Function(NamedTuple):
    name: int = 0
    file: int = 0


class Mapping(NamedTuple):
    file: int = 0
    build_id: int = 0


class Location(NamedTuple):
    mapping: int = 0
    address: int = 0
    function: int = 0
    line: int = 0


class Sample(NamedTuple):
    locations: tuple[int, ...]  # the innermost first
    values: tuple[int, int]  # of SAMPLE_TYPES
    labels: dict[str, str]


class Tables:
    """What the holders of a row refer to."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.strings = Numbered("")
        self.functions = Numbered(Function())
        self.mappings = Numbered(Mapping())
        self.locations = Numbered(Location())
        self.samples = [
            Sample(
                tuple(self._location(frame) for frame in holder["frames"] or [] if frame),
                (max(holder["bytes"], 0), max(holder["count"] or 0, 0)),
                {key: holder[key] for key in ("space", "device") if holder[key]},
            )
            for holder in row["holders"] or []
            if holder and holder["bytes"]
        ]

    def _location(self, frame: dict[str, Any]) -> int:
        module, offset = frame["module"] or "", frame["offset"] or 0
        name = frame["function"] or (f"{module}+{offset:#x}" if module else "?")
        text = self.strings
        mapping = Mapping(text[module], text[frame["build_id"] or ""]) if module else Mapping()
        return self.locations[
            Location(
                self.mappings[mapping],
                offset if module else 0,
                self.functions[Function(text[name], text[frame["file"] or ""])],
                frame["line"] or 0,
            )
        ]

    def value_type(self, names: tuple[str, str]) -> bytes:
        return message(*((n, self.strings[name]) for n, name in enumerate(names, 1)))


def time_ns(row: dict[str, Any]) -> int:
    since: dt.timedelta = row["time"] - EPOCH
    return (since // dt.timedelta(microseconds=1)) * 1000


def profile_id(row: dict[str, Any], kind: str = "") -> uuid.UUID:
    """The same each time that a death is pushed, in whichever revision."""
    return uuid.uuid5(IDS, f"{row['death_id']}{kind}")


def service_of(row: dict[str, Any]) -> str:
    return str(row["service"] or row["script"] or row["program"] or "unknown")


# --- pprof ---------------------------------------------------------------------------------------


def pprof(row: dict[str, Any]) -> bytes:
    """The memory in use at a death, as a gzipped profile.proto."""
    tables = Tables(row)
    text = tables.strings
    parts = [field(1, tables.value_type(each)) for each in SAMPLE_TYPES]
    for sample in tables.samples:
        pairs = [message((1, text[key]), (2, text[value])) for key, value in sample.labels.items()]
        made = packed(1, sample.locations) + packed(2, sample.values)
        parts.append(field(2, made + b"".join(field(3, pair) for pair in pairs)))
    for mapping, number in tables.mappings.items():
        # Claims complete symbols, so that readers do not symbolize again: oomrec has tried.
        claims = [(claim, 1) for claim in (7, 8, 9, 10)]
        made = message((1, number), (5, mapping.file), (6, mapping.build_id), *claims)
        parts += [field(3, made)] * (number > 0)
    for each, number in tables.locations.items():
        line = message((1, each.function), (2, each.line))
        made = message((1, number), (2, each.mapping), (3, each.address), (4, line))
        parts += [field(4, made)] * (number > 0)
    for function, number in tables.functions.items():
        made = message((1, number), (2, function.name), (3, function.name), (4, function.file))
        parts += [field(5, made)] * (number > 0)
    parts += [field(9, time_ns(row)), field(11, tables.value_type(PERIOD)), field(12, 1)]
    parts += [field(13, text[str(row["summary"])])] * bool(row["summary"])
    parts.append(field(14, text[SAMPLE_TYPES[0][0]]))
    parts += [field(6, each) for each in text]
    return gzip.compress(b"".join(parts), mtime=0)


def labels(row: dict[str, Any]) -> dict[str, str]:
    """A series' labels, for Pyroscope and Parca. Each combination of values is a series of its own."""
    found = {"__name__": "memory", "__delta__": "false", "service_name": service_of(row)}
    for key in ("release", "namespace", "pod", "container", "job", "host", "signature", "verdict"):
        if row[key]:
            found[key] = str(row[key])[:MOST_LABEL]
    return found


# --- OTLP ----------------------------------------------------------------------------------------

MOST_LABELS = 12  # of the user's own
ATTRIBUTES = {  # of the resource: names of OpenTelemetry's semantic conventions
    "release": "service.version",
    "host": "host.name",
    "namespace": "k8s.namespace.name",
    "pod": "k8s.pod.name",
    "container": "k8s.container.name",
    "image": "container.image.name",
    "program": "process.executable.name",
}
FACTS = ("death_id", "signature", "title", "verdict", "certainty", "cause", "summary")
COUNTS = ("limit_bytes", "need_bytes")
BUILD_ID = "process.executable.build_id.gnu"


def any_value(value: str | int) -> bytes:
    # Of a oneof, even an empty value is written.
    return field(1, value[:MOST_LABEL]) if isinstance(value, str) else field(3, value)


def key_value(key: str, value: str | int) -> bytes:
    return field(1, key) + field(2, any_value(value))


def resource_of(row: dict[str, Any]) -> bytes:
    named: dict[str, str] = {"service.name": service_of(row)}
    named.update((name, str(row[key])) for key, name in ATTRIBUTES.items() if row[key])
    for key, value in sorted((row["labels"] or {}).items())[:MOST_LABELS]:
        name = re.sub(r"[^A-Za-z0-9_.]|^(?=[0-9])", "_", key)  # Pyroscope takes no other
        if name and value:
            named.setdefault(name, value)
    return b"".join(field(1, key_value(key, value)) for key, value in named.items())


def otlp(row: dict[str, Any]) -> bytes:
    """An ExportProfilesServiceRequest: the bytes in use, and the number of blocks."""
    tables = Tables(row)
    stacks, attributes = Numbered(()), Numbered(("", ""))
    about = [attributes[f"oomrec.{key}", row[key]] for key in (*FACTS, *COUNTS) if row[key]]
    profiles = []
    for n, kind in enumerate(SAMPLE_TYPES):
        samples = []
        for sample in tables.samples:
            of = [attributes[f"oomrec.{key}", value] for key, value in sample.labels.items()]
            stack = message((1, stacks[sample.locations]))
            samples.append(field(2, stack + packed(2, of) + packed(4, [sample.values[n]])))
        profiles.append(
            field(
                2,
                field(1, tables.value_type(kind))
                + b"".join(samples)
                + fixed64(3, time_ns(row))
                + field(5, tables.value_type(PERIOD))
                + field(6, 1)  # Pyroscope refuses a period of 0
                + field(7, profile_id(row, kind[0]).bytes)
                + packed(11, about),
            )
        )
    dictionary = _dictionary(tables, stacks, attributes)
    scope = field(1, "oomrec") + field(2, str(row["oomrec_version"] or ""))
    scopes = field(2, field(1, scope) + b"".join(profiles))
    return field(1, field(1, resource_of(row)) + scopes) + field(2, dictionary)


def _dictionary(tables: Tables, stacks: Numbered, attributes: Numbered) -> bytes:
    text = tables.strings
    names = list(text)
    parts = []
    for mapping in tables.mappings:
        build_id = names[mapping.build_id]
        of = packed(5, [attributes[BUILD_ID, build_id]]) if build_id else b""
        parts.append(field(1, message((4, mapping.file)) + of))
    for each in tables.locations:
        line = message((1, each.function), (2, each.line))
        parts.append(field(2, message((1, each.mapping), (2, each.address), (3, line))))
    for function in tables.functions:
        made = message((1, function.name), (2, function.name), (3, function.file))
        parts.append(field(3, made))
    parts.append(field(4, b""))  # the link to nothing
    for key, value in attributes:
        made = field(2, any_value(value)) if key else b""
        parts.append(field(6, message((1, text[key])) + made))
    parts += [field(7, packed(1, each) if each else b"") for each in stacks]
    parts += [field(5, each) for each in text]
    return b"".join(parts)
