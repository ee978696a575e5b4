"""Reads rows, which are other people's input: a bad line is counted and never fatal.

A value of a wrong type is read as null. A row whose identity is wrong is rejected.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from itertools import accumulate, islice
from typing import Any, BinaryIO, Iterable, Iterator, Tuple

from ._signatures import with_today
from ._store import Store

MOST_LINE_BYTES = 16 * 1024  # as oomrec export bounds a row
LINES_AT_ONCE = 5_000
BLOCK_BYTES = 256 * 1024
TOO_LONG = "longer than 16 KiB"

TEXT, INTEGER, NUMBER, BOOLEAN = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"


def named(kind: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), kind)


FRAMES = [
    {
        **named(TEXT, "kind function file"),
        "line": INTEGER,
        **named(TEXT, "module build_id"),
        "offset": INTEGER,
        "own": BOOLEAN,
    }
]
HOLDERS = [
    {
        **named(TEXT, "space device"),
        **named(INTEGER, "bytes resident_bytes count"),
        "estimated": BOOLEAN,
        "sig": TEXT,
        "frames": FRAMES,
    }
]
# The columns of docs/schemas/row.json with DuckDB's types, as its from_json() takes them.
COLUMNS: dict[str, Any] = {
    "schema_version": INTEGER,
    **named(TEXT, "oomrec_version death_id"),
    "revision": INTEGER,
    **named(TEXT, "kind time day episode_id episode_role host service release namespace"),
    **named(TEXT, "pod container image job task"),
    **named(INTEGER, "rank world_size attempt"),
    "labels": "MAP(VARCHAR, VARCHAR)",
    **named(TEXT, "program script verdict certainty trigger outcome summary ended_by limit_kind"),
    **named(INTEGER, "limit_bytes used_bytes peak_bytes rss_bytes cgroup_limit_bytes node_bytes"),
    "need_bytes": INTEGER,
    "need_is_bound": BOOLEAN,
    "started": TEXT,
    **named(NUMBER, "run_seconds lost_gib_hours growth_bytes_per_s"),
    **named([INTEGER], "timeline_ms timeline_rss timeline_live"),
    "signature": TEXT,
    "signature_version": INTEGER,
    "signature_coarse": TEXT,
    "signature_also": [TEXT],
    **named(TEXT, "signature_alias title"),
    "top_share": NUMBER,
    **named(TEXT, "cause thread_group label"),
    "request": {
        "api": TEXT,
        "size": INTEGER,
        **named(TEXT, "space device error"),
        "frames": FRAMES,
    },
    "holders": HOLDERS,
    "gpu": [{"device": TEXT, **named(INTEGER, "held used total others"), "fragmentation": NUMBER}],
    "life_weight": NUMBER,
    "raw_key": TEXT,
    "raw_bytes": INTEGER,
}
TIMES = ("time", "started")
MOST_HOURS = 1e6  # of a row's lost GiB hours: a forged row cannot hide all others

# Why a row is rejected; the first that holds.
REASONS = {
    "not a row": "r.schema_version IS NULL OR r.schema_version < 1",
    "of a newer schema: update oomrec": "r.schema_version > 1",
    "wrong death_id": "NOT coalesce(regexp_full_match(r.death_id, '[0-9a-f]{16}'), false)",
    "wrong revision": "r.revision IS NULL OR r.revision < 0",
    "wrong kind": "r.kind IS NULL OR r.kind NOT IN ('death', 'failure', 'warning', 'life')",
    "wrong time": "try_cast(r.time AS TIMESTAMP) IS NULL",
    "wrong day": "r.day IS DISTINCT FROM left(r.time, 10) OR folder NOT IN ('', r.day)",
}

Line = Tuple[str, bytes, str]  # file, text, day of the file's folder ("": none)
Lines = Iterator[Line]


def value_of(name: str) -> str:
    """A column from the parsed row `r`, within its bounds."""
    kind = COLUMNS[name]
    if name in TIMES:
        return f"try_cast(r.{name} AS TIMESTAMP) AS {name}"
    if name == "top_share":
        return f"CASE WHEN r.{name} BETWEEN 0 AND 1 THEN r.{name} END AS {name}"
    if name == "lost_gib_hours":
        return f"CASE WHEN r.{name} BETWEEN 0 AND {MOST_HOURS} THEN r.{name} END AS {name}"
    if name == "life_weight":
        return f"CASE WHEN isfinite(r.{name}) AND r.{name} >= 1 THEN r.{name} END AS {name}"
    if kind == NUMBER:
        return f"CASE WHEN isfinite(r.{name}) THEN r.{name} END AS {name}"
    if kind == INTEGER:
        return f"CASE WHEN r.{name} >= 0 THEN r.{name} END AS {name}"
    return f"r.{name}"


SELECTED = ", ".join(map(value_of, COLUMNS))
STRUCTURE = json.dumps(COLUMNS)
WHY = (
    "CASE " + " ".join(f"WHEN {test} THEN '{reason}'" for reason, test in REASONS.items()) + " END"
)


class Rejections:
    """What was not read, by reason, and the files that it is in."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.files: set[str] = set()

    def add(self, why: str, files: Iterable[str]) -> None:
        for file in files:
            self.counts[why] += 1
            self.files.add(file)

    def text(self) -> str:
        """Such as "5 rows were left out: 3 not JSON, 2 wrong day"; empty if none was."""
        if not self.counts:
            return ""
        parts = sorted(self.counts.items(), key=lambda each: (-each[1], each[0]))
        listed = ", ".join(f"{count:,} {why}" for why, count in parts)
        return f"{sum(self.counts.values()):,} rows were left out: {listed}"


def lines_of(name: str, stream: BinaryIO, rejected: Rejections) -> Iterator[bytes]:
    """The stream's lines, each at most 16 KiB and without its end. Splitting blocks takes half of readline()'s time."""
    rest, skipping = b"", False
    while block := stream.read(BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        if skipping and lines:
            del lines[0]
            skipping = False
        for line in lines:
            if len(line) > MOST_LINE_BYTES:
                rejected.add(TOO_LONG, [name])
            elif line and not line.isspace():
                yield line
        if len(rest) > MOST_LINE_BYTES or skipping:
            rejected.add(TOO_LONG, [name] * (not skipping))
            rest, skipping = b"", True
    if rest and not rest.isspace():
        yield rest


def day_of(name: str) -> str:
    """The day in a file's path, such as rows/day=2026-11-30/node-1.json; "" if it has none."""
    found = re.search(r"(?:^|/)day=(\d{4}-\d\d-\d\d)/", name)
    return found[1] if found else ""


def lines_in(store: Store, names: Iterable[str], rejected: Rejections) -> Lines:
    """(file, line, day of the file's folder) of all files."""
    for name, stream in store.streams(names):
        if stream is None:
            rejected.add("cannot be read", [name])
            continue
        day = day_of(name)
        for line in lines_of(name, stream, rejected):
            yield name, line, day


def parse(
    connection: Any,
    lines: Lines,
    rejected: Rejections,
    table: str = "fresh",
    appends: bool = False,
) -> None:
    """Makes a temporary table of the latest revision of each death among the lines, or appends them to it.

    It has the columns of COLUMNS and `file`. Rejected lines are counted by reason.
    """
    if not appends:
        _register(connection, [])
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {_select('false')}")
    while batch := list(islice(lines, LINES_AT_ONCE)):
        _insert(connection, with_today(batch), rejected, table)
    connection.execute(
        f"""DELETE FROM {table} WHERE rowid NOT IN (
              SELECT first(rowid ORDER BY revision DESC, signature_version DESC, oomrec_version DESC, rowid DESC)
              FROM {table} GROUP BY death_id)"""
    )


def _register(connection: Any, batch: list[Line]) -> None:
    """Makes the batch a table `lines`.

    Raises:
        pyarrow.ArrowInvalid: a line is not UTF-8
    """
    import pyarrow as pa

    texts = _text_column([each[1] for each in batch])
    texts.validate(full=True)
    files = _text_column([each[0].encode(errors="replace") for each in batch])
    days = _text_column([each[2].encode() for each in batch])
    connection.register("lines", pa.table({"line": texts, "file": files, "folder": days}))


def _text_column(texts: list[bytes]) -> Any:
    """An arrow array of the texts. pyarrow.array() would import pandas, and take ten times as long."""
    import pyarrow as pa

    ends = array("i", accumulate(map(len, texts), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _is_utf8(line: Line, rejected: Rejections) -> bool:
    try:
        line[1].decode()
    except UnicodeDecodeError:
        rejected.add("not UTF-8", [line[0]])
        return False
    return True


def _select(where: str) -> str:
    return f"""SELECT {SELECTED}, file, {WHY} AS why FROM (
                 SELECT from_json(line, '{STRUCTURE}') AS r, file, folder FROM lines WHERE {where})"""


def _insert(connection: Any, batch: list[Line], rejected: Rejections, table: str) -> None:
    import duckdb
    import pyarrow as pa

    try:
        _register(connection, batch)
    except pa.ArrowInvalid:
        _register(connection, [each for each in batch if _is_utf8(each, rejected)])
    try:
        connection.execute(f"INSERT INTO {table} {_select('true')}")
    except duckdb.Error:  # a line that is not JSON: checking first would take a quarter of the time
        bad = connection.execute("SELECT file FROM lines WHERE NOT json_valid(line)").fetchall()
        rejected.add("not JSON", (file for (file,) in bad))
        connection.execute(f"INSERT INTO {table} {_select('json_valid(line)')}")
    for why, file in connection.execute(
        f"SELECT why, file FROM {table} WHERE why IS NOT NULL"
    ).fetchall():
        rejected.add(why, [file])
    connection.execute(f"DELETE FROM {table} WHERE why IS NOT NULL")
