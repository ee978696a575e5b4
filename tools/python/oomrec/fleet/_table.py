"""A fleet's deaths as the view `deaths` of an embedded DuckDB: Parquet by day, and rows that are not compacted yet."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import subprocess
import tempfile
from typing import Any, Iterable, Iterator

from ._errors import FleetError
from ._progress import with_progress
from ._rows import COLUMNS, MOST_LINE_BYTES, Lines, Rejections, day_of, lines_in, lines_of, parse
from ._signatures import count_old, old_lines
from ._store import DirectoryStore, Store, open_store

PART = re.compile(r"deaths/day=\d{4}-\d\d-\d\d/part-(\d+)\.parquet$")
INSTALL = "pip install 'oomrec[fleet]'"
BUNDLE_MARK = "metadata.json"


def need_packages() -> None:
    """Says what to install.

    Raises:
        FleetError: duckdb or pyarrow is not installed
    """
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise FleetError(
            f"oomrec fleet needs the package {error.name}", f"To install it: {INSTALL}"
        ) from error


def connect_engine(spill: str) -> Any:
    """A DuckDB that reads no settings and loads no extension. What exceeds a GB of memory goes into the folder `spill`.

    Raises:
        FleetError: duckdb or pyarrow is not installed
    """
    need_packages()
    import duckdb

    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": "1GB",
            "temp_directory": spill,
        }
    )
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET parquet_metadata_cache = true")
    # A name in SQL is no variable of ours.
    connection.execute("SET python_enable_replacements = false")
    return connection


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def part_number(name: str) -> int:
    found = PART.search(name)
    return int(found[1]) if found else 0


def current_parts(store: Store, day: str | None = None) -> dict[str, str]:
    """The part of each day, or of one: the highest number holds the whole day."""
    parts: dict[str, str] = {}
    for name in store.names(f"deaths/day={day}" if day else "deaths"):
        day = day_of(name)
        if day and PART.search(name) and part_number(name) >= part_number(parts.get(day, "")):
            parts[day] = name
    return parts


def view_of_parts(connection: Any, store: Store, names: Iterable[str], view: str) -> None:
    """Makes a view of Parquet parts with all of COLUMNS; an older part lacks some, which are null.

    Raises:
        FleetError: a part is damaged, or is no table of deaths
    """
    parts = sorted(names)
    if not parts:
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * EXCLUDE (file, why) FROM fresh WHERE false"
        )
        return
    if isinstance(store, DirectoryStore) and not re.search(r"[\[\]*?]", store.path):
        paths = ", ".join(quoted(store.location(part)) for part in parts)
        with damage_named(store.url, parts):
            schemas = connection.execute(
                f"""SELECT count(DISTINCT columns) FROM (
                      SELECT bit_xor(hash(name, type)) AS columns FROM parquet_schema([{paths}]) GROUP BY file_name)"""
            ).fetchall()[0][0]
        # Looking for each name in each part takes half of a short query's time.
        by_name = ", union_by_name = true" * (schemas > 1)
        source = f"read_parquet([{paths}], hive_partitioning = false{by_name})"
        _checked(connection, store, parts, source, view)
        return
    import pyarrow.dataset

    keys = [store.location(part) for part in parts]
    schema = (
        connection.sql("SELECT * EXCLUDE (file, why) FROM fresh LIMIT 0").to_arrow_table().schema
    )
    connection.register(
        f"{view}_files",
        pyarrow.dataset.dataset(keys, filesystem=store.filesystem, schema=schema, format="parquet"),
    )
    _checked(connection, store, parts, f"{view}_files", view)


def older_rows(connection: Any, store: Store, parts: Iterable[str]) -> Lines:
    """The rows of the parts that have signatures of earlier rules; a day at a time, as they may be many."""
    for part in parts:
        view_of_parts(connection, store, [part], "older")
        for line in old_lines(connection, "older"):
            yield part, line, day_of(part)


@contextlib.contextmanager
def damage_named(url: str, parts: Iterable[str]) -> Iterator[None]:
    """Turns DuckDB's error about one of these parts into one for the user."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:
        damaged = next((part for part in parts if part in str(error)), None)
        if damaged is None:
            raise
        raise FleetError(
            f"{url}: {damaged} is not a whole Parquet file: {str(error).splitlines()[0][:200]}",
            "Was it copied by hand? Copy it again, or delete it: the part before it counts then.",
        ) from error


def _checked(connection: Any, store: Store, parts: list[str], source: str, view: str) -> None:
    with damage_named(store.url, parts):
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    found = [row[0] for row in described]
    if not {"death_id", "revision", "signature", "time"} <= set(found):
        raise FleetError(
            f"{store.url}: {parts[0]} is not a table of deaths",
            "Files below deaths/ are made by oomrec fleet compact.",
        )
    types = {
        row[0]: row[1]
        for row in connection.execute("DESCRIBE SELECT * EXCLUDE (file, why) FROM fresh").fetchall()
    }
    columns = ", ".join(
        name if name in found else f"CAST(NULL AS {types[name]}) AS {name}" for name in COLUMNS
    )
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {columns} FROM {source}")


class Table:
    """The view `deaths`, with the columns of docs/schemas/row.json; the latest revision of each death.

    Args:
        url: a directory of bundles or of rows, a file of rows, or s3://BUCKET/PREFIX

    Attributes:
        connection: DuckDB's, for queries of your own
        rejected: rows that could not be read
        fresh: the number of rows that are not compacted yet, or renewed
        renewed: the number of compacted rows that got today's signatures only now
        has_days: whether it is a store of rows by day, not some bundles or a file

    Raises:
        FleetError: a package is missing, the URL cannot be read, or has neither rows nor bundles
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._spill = tempfile.TemporaryDirectory(prefix="oomrec-")
        self.connection = connect_engine(self._spill.name)
        self.rejected = Rejections()
        self.has_days = False
        if os.path.isfile(url):
            self._read(_lines_of_file(url, self.rejected), [], None)
        else:
            store = open_store(url)
            # Before the parts: what is compacted in between is in both, not in none.
            rows = store.names("rows")
            parts = list(current_parts(store).values())
            self.has_days = bool(rows or parts)
            if self.has_days:
                self._read(
                    lines_in(store, with_progress("reading rows", rows), self.rejected),
                    parts,
                    store,
                )
            else:
                self._read_folder(store)
        if not self.query_value("SELECT count(*) FROM (SELECT 1 FROM deaths LIMIT 1)"):
            why = self.rejected.text()
            raise FleetError(f"{url} has no rows" + (f": {why}" if why else ""), exit_code=1)

    def _read_folder(self, store: Store) -> None:
        if not isinstance(store, DirectoryStore):
            raise FleetError(
                f"{store.url} has neither rows/ nor deaths/",
                "Rows get there by oomrec watch --ship URL.",
                exit_code=1,
            )
        names = [
            each for each in os.listdir(store.path) if each.endswith((".json", ".jsonl", ".ndjson"))
        ]
        if names and not os.path.exists(store.location(BUNDLE_MARK)):
            self._read(lines_in(store, sorted(names), self.rejected), [], store)
        else:
            self._read(_lines_of_bundles(store.path), [], store)

    def _read(self, lines: Lines, parts: list[str], store: Store | None) -> None:
        self._parts = parts
        self.store = store
        parse(self.connection, lines, self.rejected)
        self.renewed = 0
        if store is not None:
            view_of_parts(self.connection, store, parts, "compacted")
            with damage_named(self.url, parts):
                self.renewed = count_old(self.connection, "compacted")
        if store is not None and self.renewed:
            older = older_rows(self.connection, store, parts)
            parse(self.connection, older, self.rejected, appends=True)
        self.fresh: int = self.query_value("SELECT count(*) FROM fresh")
        fresh = "SELECT * EXCLUDE (file, why) FROM fresh"
        if not parts:
            source = fresh
        elif not self.fresh:
            source = "SELECT * FROM compacted"
        else:
            self.connection.execute(
                """DELETE FROM fresh WHERE death_id IN (
                     SELECT old.death_id FROM compacted AS old JOIN fresh AS new
                     ON old.death_id = new.death_id AND old.day = new.day AND old.revision > new.revision)"""
            )
            source = f"""SELECT * FROM compacted AS old
                         WHERE NOT EXISTS (FROM fresh AS new WHERE new.death_id = old.death_id AND new.day = old.day)
                         UNION ALL BY NAME {fresh}"""
        self.connection.execute(f"CREATE TEMP VIEW deaths AS {source}")

    def query_value(self, sql: str) -> Any:
        """The first value of a query's first row; None if it has no rows."""
        with damage_named(self.url, self._parts):
            rows = self.connection.execute(sql).fetchall()
        return rows[0][0] if rows else None

    def query(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """The rows of a query; a parameter is written $name. Times are datetimes in UTC, without a zone."""
        named = {name: value for name, value in parameters.items() if f"${name}" in sql}
        with damage_named(self.url, self._parts):
            done = self.connection.execute(sql, named)
            names = [each[0] for each in done.description]
            return [dict(zip(names, row)) for row in done.fetchall()]


def _lines_of_file(path: str, rejected: Rejections) -> Lines:
    with open(path, "rb") as stream:
        for line in lines_of(path, stream, rejected):
            yield path, line, ""


def export_rows(command: str, bundles: list[str]) -> Iterator[bytes]:
    """The lines of `oomrec export --format row` for bundles, or directories of them.

    Raises:
        FleetError: the command fails and prints none
    """
    from .._impl.command import unrecorded_environment

    words = [command, "export", "--format", "row", *bundles]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(
        words,
        env=unrecorded_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
    ) as process:
        assert process.stdout
        count = 0
        while line := process.stdout.readline(MOST_LINE_BYTES + 1):
            count += 1
            yield line
        if process.wait() != 0 and not count:
            errors.seek(0)
            reason = errors.read(10_000).decode(errors="replace").strip() or "oomrec export failed"
            raise FleetError(reason.splitlines()[0], exit_code=process.returncode)


def find_command() -> str:
    """The command oomrec.

    Raises:
        FleetError: it is not found
    """
    from .._impl.command import command

    found = command()
    if found is None:
        raise FleetError("the command oomrec is not found", "Set OOMREC_COMMAND to its path.")
    return found


def _lines_of_bundles(path: str) -> Lines:
    for line in export_rows(find_command(), [path]):
        yield path, line, ""


def time_of(text: str, now: dt.datetime) -> dt.datetime:
    """A moment in UTC: "7d" and "24h" before `now`, or an ISO date or time.

    Raises:
        FleetError: it is none of these
    """
    found = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if found:
        hours = {"h": 1, "d": 24, "w": 168}[found[2]]
        return now - dt.timedelta(hours=int(found[1]) * hours)
    try:
        moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise FleetError(
            f"{text} is no time", "Give 24h, 7d, 4w, or a date such as 2026-11-30."
        ) from None
    return moment.astimezone(dt.timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment
