"""Rows become Parquet: what holds, what a cut in the middle leaves, and what readers see meanwhile."""

import shutil

import pytest
from fleet_rows import fleet, line, row, write_rows


def contents(url) -> list[tuple]:
    from oomrec.fleet import Table

    table = Table(str(url))
    rows = table.connection.execute("SELECT * FROM deaths ORDER BY death_id, revision").fetchall()
    assert len({each[2] for each in rows}) == len(rows), "a death twice"
    return rows


@pytest.fixture
def directory(tmp_path):
    write_rows(tmp_path, fleet(100, days=3))
    return tmp_path


def parts(directory):
    return sorted(
        str(path.relative_to(directory / "deaths")) for path in directory.glob("deaths/day=*/*")
    )


def test_it_holds_what_the_rows_held(directory):
    from oomrec.fleet import compact

    before = contents(directory)
    result = compact(str(directory))

    assert result == {"days": len(parts(directory)), "rows": 100, "rejected": {}}
    assert contents(directory) == before
    assert not list(directory.glob("rows/*/*"))
    assert compact(str(directory)) == {"days": 0, "rows": 0, "rejected": {}}


def test_a_part_is_sorted_by_signature_and_compressed(directory):
    from oomrec.fleet import compact
    from pyarrow import parquet

    compact(str(directory))

    for name in parts(directory):
        file = parquet.ParquetFile(directory / "deaths" / name)
        found = [each or "~" for each in file.read(["signature"])["signature"].to_pylist()]
        assert found == sorted(found)
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_part_has_encodings_that_all_readers_know(directory):
    """Spark's default reader knows BYTE_STREAM_SPLIT since 4.3, fastparquet no DELTA_LENGTH_BYTE_ARRAY."""
    from oomrec.fleet import compact
    from pyarrow import parquet

    compact(str(directory))

    for name in parts(directory):
        group = parquet.ParquetFile(directory / "deaths" / name).metadata.row_group(0).to_dict()
        of = {each["path_in_schema"]: set(each["encodings"]) for each in group["columns"]}
        assert set.union(*of.values()) <= {"PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"}
        assert "DELTA_BINARY_PACKED" in of["need_bytes"]
        assert "RLE_DICTIONARY" in of["signature"]


def test_rows_since_are_read_beside_the_parts_and_a_later_revision_wins(directory):
    from oomrec.fleet import Table, compact

    compact(str(directory))
    first = row(1_000_000_001, days=3)
    write_rows(
        directory,
        [
            {**row(1_000_000_001, time=first["time"]), "revision": 3, "outcome": "exited 3"},
            row(77, days=3),
        ],
    )
    table = Table(str(directory))
    known = "SELECT outcome FROM deaths WHERE death_id = '{:016x}'"

    assert table.query_value("SELECT count(*) FROM deaths") == 101
    assert table.query_value(known.format(1_000_000_001)) == "exited 3"
    uncompacted = contents(directory)
    compact(str(directory))
    assert contents(directory) == uncompacted
    write_rows(directory, [row(1_000_000_001, time=first["time"], revision=1, outcome="exited 1")])
    assert Table(str(directory)).query_value(known.format(1_000_000_001)) == "exited 3", (
        "an older revision came late"
    )
    compact(str(directory))
    assert contents(directory) == uncompacted


@pytest.mark.parametrize("step", ["put", "remove", "write"])
def test_a_cut_anywhere_loses_nothing_and_doubles_nothing(directory, monkeypatch, step):
    """Each time it gets a little further: until it is cut after the n-th change of the store."""
    from oomrec.fleet import compact
    from oomrec.fleet._store import DirectoryStore

    (directory / "rows" / "day=2026-11-01" / "bad.json").write_text("{\n")
    before = contents(directory)
    original = getattr(DirectoryStore, step)
    rounds = 0
    for allowed in range(20):
        left = [allowed]

        def cut(self, *arguments, left=left):
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            return original(self, *arguments)

        monkeypatch.setattr(DirectoryStore, step, cut)
        rounds += 1
        try:
            compact(str(directory))
            break
        except KeyboardInterrupt:
            assert contents(directory) == before
    assert rounds > 1
    assert contents(directory) == before and not list(directory.glob("rows/*/*"))
    assert (directory / "rejected" / "day=2026-11-01" / "bad.json").read_text() == "{\n"


def test_what_a_killed_run_left_goes_with_the_next_one(directory):
    from oomrec.fleet import compact

    left = directory / "deaths" / ".compacting-abc"
    left.mkdir(parents=True)
    (left / "part.parquet").write_text("half")

    compact(str(directory))

    assert not left.exists() and contents(directory)


def test_only_one_process_compacts(directory, fleet):
    from oomrec.fleet._store import open_store

    with open_store(str(directory)).lock():
        code, _, errors = fleet("compact", directory)
    assert code == 1 and "another process" in errors
    assert fleet("compact", directory)[0] == 0


def test_a_half_written_part_is_named(directory, fleet):
    from oomrec.fleet import compact

    compact(str(directory))
    damaged = directory / "deaths" / parts(directory)[2]
    damaged.write_bytes(damaged.read_bytes()[:1000])

    code, output, errors = fleet("top", directory)

    assert code == 2 and output == ""
    assert parts(directory)[2] in errors and "not a whole Parquet file" in errors


def test_a_part_of_an_older_schema_is_read_with_nulls(directory):
    """Columns are only ever added."""
    from oomrec.fleet import Table, compact
    from pyarrow import parquet

    compact(str(directory))
    for name in parts(directory)[::2]:
        path = directory / "deaths" / name
        parquet.write_table(
            parquet.read_table(path, partitioning=None).drop_columns(["cause", "holders"]), path
        )
    rows = Table(str(directory)).query("SELECT cause, holders, signature FROM deaths")

    assert (
        len(rows) == 100
        and any(each["cause"] for each in rows)
        and any(each["holders"] is None for each in rows)
    )


def test_a_table_that_is_none_is_told(directory, fleet):
    from pyarrow import parquet, table

    (directory / "deaths" / "day=2026-11-01").mkdir(parents=True)
    parquet.write_table(
        table({"x": [1]}), directory / "deaths" / "day=2026-11-01" / "part-1.parquet"
    )

    code, _, errors = fleet("top", directory)

    assert code == 2 and "not a table of deaths" in errors


def test_a_path_with_wildcards_is_a_path(directory, tmp_path_factory):
    from oomrec.fleet import compact

    other = tmp_path_factory.mktemp("odd") / "it's [a] *?"
    shutil.copytree(directory, other)
    compact(str(other))
    assert contents(other) == contents(directory)


def test_a_file_with_many_rows_is_compacted_too(tmp_path):
    from oomrec.fleet import compact

    day = "2026-11-03"
    rows = [row(number, time=f"{day}T10:00:00Z") for number in range(50)]
    target = tmp_path / "rows" / f"day={day}" / "reextracted.json"
    target.parent.mkdir(parents=True)
    target.write_text("".join(map(line, rows)))

    assert compact(str(tmp_path))["rows"] == 50
    assert len(contents(tmp_path)) == 50
