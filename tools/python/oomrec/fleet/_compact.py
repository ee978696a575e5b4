"""Turns rows, one small file each, into Parquet by day.

A day's newest part holds the whole day: the part before it and the rows since, the latest revision of each death, with
the signatures of today's rules. It becomes visible as a whole; only then the rows go. So a run that is cut anywhere loses nothing, and the next one finishes
its work.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from ._progress import Progress
from ._rows import MOST_LINE_BYTES, Rejections, day_of, lines_in, parse
from ._signatures import count_old
from ._store import DirectoryStore, Store, open_store
from ._table import (
    PART,
    connect_engine,
    current_parts,
    need_packages,
    older_rows,
    part_number,
    view_of_parts,
)

ROWS_OF_GROUP = 50_000
UNIQUE = ("death_id", "raw_key")  # texts of which a dictionary would be as large as the column
SPILL = ".compacting-"
OLD_PART_S = 3600.0  # readers at work may still hold an older part


def compact(url: str) -> dict[str, Any]:
    """Compacts the rows of a URL.

    Args:
        url: a directory with rows/day=…/, or s3://BUCKET/PREFIX

    Returns:
        {"days", "rows", "rejected": {reason: count}}: what this run compacted

    Raises:
        FleetError: a package is missing, the URL cannot be read or written, or another process compacts it
    """
    need_packages()
    store = open_store(url)
    rejected = Rejections()
    days: dict[str, list[str]] = {}
    for name in store.names("rows"):
        days.setdefault(day_of(name), []).append(name)
    strays = days.pop("", [])
    rejected.add("not below rows/day=YYYY-MM-DD/", strays)
    bar = Progress("compacting", sum(map(len, days.values())))
    rows = 0
    with store.lock(), tempfile.TemporaryDirectory(prefix=SPILL, dir=_spill_folder(store)) as spill:
        connection = connect_engine(spill)
        # Parsing is serial. More threads make the sorting a little faster, and cost a tenth more.
        connection.execute("SET threads = 1")
        days = {**_days_to_renew(connection, store), **days}
        for day in sorted(days):
            rows += _compact_day(connection, store, day, days[day], rejected, spill)
            bar.add(len(days[day]))
        bar.end()
        _remove_old_parts(store)
    return {"days": len(days), "rows": rows, "rejected": dict(rejected.counts)}


def _spill_folder(store: Store) -> str | None:
    """Beside the target, so that a part is renamed into its place. What a killed run left there goes."""
    if not isinstance(store, DirectoryStore):
        return None
    folder = store.location("deaths")
    for name in os.listdir(folder):
        if name.startswith(SPILL):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    return folder


def _days_to_renew(connection: Any, store: Store) -> dict[str, list[str]]:
    """Days whose rows have signatures of earlier rules, without new rows."""
    parts = current_parts(store)
    parse(connection, iter([]), Rejections())  # the columns of a view
    view_of_parts(connection, store, parts.values(), "compacted")
    if not count_old(connection, "compacted"):
        return {}
    found: dict[str, list[str]] = {}
    for day, part in parts.items():
        view_of_parts(connection, store, [part], "compacted")
        if count_old(connection, "compacted"):
            found[day] = []
    return found


def _compact_day(
    connection: Any, store: Store, day: str, names: list[str], rejected: Rejections, spill: str
) -> int:
    part = current_parts(store, day).get(day)
    parse(connection, lines_in(store, names, rejected), rejected)
    if part:
        parse(connection, older_rows(connection, store, [part]), rejected, appends=True)
    rows = int(connection.execute("SELECT count(*) FROM fresh").fetchall()[0][0])
    if rows:
        view_of_parts(connection, store, [part] if part else [], "compacted")
        connection.execute(
            "DELETE FROM fresh USING compacted WHERE fresh.death_id = compacted.death_id AND fresh.revision < compacted.revision"
        )
        made = os.path.join(spill, "part.parquet")
        ordered = connection.sql(
            """SELECT * FROM (
                 SELECT * FROM compacted AS old WHERE NOT EXISTS (FROM fresh WHERE fresh.death_id = old.death_id)
                 UNION ALL BY NAME SELECT * EXCLUDE (file, why) FROM fresh)
               ORDER BY signature, death_id"""
        )
        _write_part(ordered.to_arrow_reader(ROWS_OF_GROUP), made)
        store.put(made, f"deaths/day={day}/part-{part_number(part or '') + 1}.parquet")
    _keep_rejected(store, rejected, names)
    store.remove(names)
    return rows


def _write_part(batches: Any, path: str) -> None:
    """Writes Parquet with the deltas of integers, which takes half the room.

    Not by DuckDB: with these it encodes floats by BYTE_STREAM_SPLIT, which Spark's reader knows since 4.3 only.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile, ParquetWriter

    empty = pa.BufferOutputStream()
    ParquetWriter(empty, batches.schema).close()
    columns = ParquetFile(empty.getvalue()).schema
    kinds = {each.path: each.physical_type for each in map(columns.column, range(len(columns)))}
    numbers = [name for name, kind in kinds.items() if kind in ("INT32", "INT64")]
    texts = [name for name, kind in kinds.items() if kind == "BYTE_ARRAY" and name not in UNIQUE]
    encodings = dict.fromkeys(numbers, "DELTA_BINARY_PACKED")
    how = {"compression": "zstd", "use_dictionary": texts, "column_encoding": encodings}
    with ParquetWriter(path, batches.schema, **how) as part:
        for batch in batches:
            part.write_batch(batch, ROWS_OF_GROUP)


def _keep_rejected(store: Store, rejected: Rejections, names: list[str]) -> None:
    """Files with a line that was left out go to rejected/, for a person to look at: the first 16 KiB of each."""
    for name, stream in store.streams(each for each in names if each in rejected.files):
        data = stream.read(MOST_LINE_BYTES) if stream is not None else b""
        store.write(f"rejected/{name.partition('/')[2]}", data)


def _remove_old_parts(store: Store) -> None:
    current = set(current_parts(store).values())
    old = [name for name in store.names("deaths") if PART.search(name) and name not in current]
    store.remove(name for name in old if store.age_s(name) > OLD_PART_S)
