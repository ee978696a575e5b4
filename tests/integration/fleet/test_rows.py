"""Rows are other people's input: what is read of them, and what is left out and counted."""

import json
import os

import pytest
import schemas
from conftest import written
from fleet_rows import fleet, life, line, row, write_rows

HOSTILE = {
    "not JSON": [b"{", b"nope", b"{} {}", b'{"a": "\\ud800"}', b"\0"],
    "not UTF-8": [b'{"host": "\xff\xfe"}'],
    "not a row": [
        b"{}",
        b"[]",
        b"5",
        b"null",
        b'"x"',
        b'{"schema_version": "one"}',
        b"[" * 8000 + b"]" * 8000,
    ],
    "longer than 16 KiB": [b"x" * 16_385, b" " * 100_000, line(row(label="x" * 20_000)).encode()],
    "of a newer schema: update oomrec": [line(row(schema_version=2)).encode()],
    "wrong death_id": [
        line(row(death_id=each)).encode() for each in ("", "../etc", "0" * 15, "A" * 16, 5)
    ],
    "wrong revision": [line(row(revision=each)).encode() for each in (-1, None, "x", 1 << 64)],
    "wrong kind": [line(row(kind=each)).encode() for each in ("", None, "murder", {})],
    "wrong time": [
        line({**row(), "time": each}).encode() for each in (None, "soon", 5, "2026-13-01T00:00:00Z")
    ],
    "wrong day": [line({**row(), "day": each}).encode() for each in (None, "2026-11-31", 5)],
}


def test_made_up_rows_are_valid():
    for each in [*fleet(30), life(1, 5)]:
        schemas.check("row", each)


@pytest.fixture
def read():
    """read(lines) is (rows, rejected counts) of a file."""
    from oomrec.fleet import Table

    def of(path, lines):
        path.write_bytes(b"\n".join(lines) + b"\n")
        table = Table(str(path))
        return table.query("SELECT * FROM deaths ORDER BY death_id"), dict(table.rejected.counts)

    return of


def test_a_row_is_read_as_it_was_written(read, tmp_path):
    written = row(
        7,
        request={
            "api": "malloc",
            "size": 1 << 40,
            "space": "heap",
            "device": None,
            "error": "ENOMEM",
            "frames": [],
        },
        gpu=[
            {
                "device": "cuda:0",
                "held": 1,
                "used": 2,
                "total": 3,
                "others": None,
                "fragmentation": 0.5,
            }
        ],
        labels={"team": "söme", "": "\x1b[31m"},
    )

    [found], rejected = read(tmp_path / "rows.json", [line(written).encode()])

    assert rejected == {}
    for name in ("time", "started"):
        assert found.pop(name).isoformat()[:19] == written.pop(name)[:19]
    assert found == written


@pytest.mark.parametrize("why", HOSTILE)
def test_hostile_lines_are_counted_and_the_others_read(why, read, tmp_path):
    good = [line(row(number)).encode().rstrip() for number in range(3)]
    bad = [each.rstrip(b"\n") for each in HOSTILE[why]]

    found, rejected = read(tmp_path / "rows.json", [good[0], *bad, good[1], good[2]])

    assert [each["death_id"] for each in found] == [f"{number:016x}" for number in range(3)]
    assert rejected == {why: len(bad)}


def test_values_of_wrong_types_are_null(read, tmp_path):
    wrong = {
        "need_bytes": "many",
        "limit_bytes": -5,
        "peak_bytes": 1 << 70,
        "top_share": 17,
        "lost_gib_hours": 1e300,
        "growth_bytes_per_s": [1],
        "holders": 5,
        "labels": [],
        "timeline_ms": {"a": 1},
        "life_weight": -3.0,
    }
    infinite = line(row(1)).replace('"run_seconds":', '"run_seconds":Infinity,"ignored":')
    not_a_number = line(row(2)).replace('"run_seconds":', '"run_seconds":NaN,"ignored":')

    found, rejected = read(
        tmp_path / "rows.json",
        [line(row(0, **wrong)).encode(), infinite.encode(), not_a_number.encode()],
    )

    assert rejected == {}
    assert {name: found[0][name] for name in wrong} == dict.fromkeys(wrong)
    assert [each["run_seconds"] for each in found[1:]] == [None, None]


def test_nesting_without_end_is_harmless(read, tmp_path):
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        depth = 16_000 // (len(opening) + len(closing)) - 300
        deep = opening * depth + "1" * (opening != "[") + closing * depth
        text = (
            json.dumps({"schema_version": 1, "death_id": "a" * 16})[:-1] + f', "holders": {deep}}}'
        )
        found, rejected = read(tmp_path / "rows.json", [text.encode(), line(row(3)).encode()])
        assert len(found) == 1 and sum(rejected.values()) == 1


def test_the_latest_revision_of_a_death_holds(read, tmp_path):
    revisions = [row(5, revision=number, outcome=f"exited {number}") for number in (1, 10, 2)]

    [found], _ = read(tmp_path / "rows.json", [line(each).encode() for each in revisions])

    assert found["outcome"] == "exited 10"


def test_a_row_in_the_folder_of_another_day_is_left_out(tmp_path):
    from oomrec.fleet import Table

    write_rows(tmp_path, [row(1), row(2)])
    [source] = (tmp_path / "rows").glob("*/*0001-0.json")
    other = tmp_path / "rows" / "day=2026-01-01" / "forged.json"
    other.parent.mkdir()
    source.rename(other)

    table = Table(str(tmp_path))

    assert dict(table.rejected.counts) == {"wrong day": 1}
    assert table.query_value("SELECT count(*) FROM deaths") == 1


def test_links_and_pipes_among_the_rows_are_left_out(tmp_path):
    """Whoever may write rows must not make the reader open its own files."""
    from oomrec.fleet import Table, compact

    write_rows(tmp_path, [row(1, days=1)])
    secret = written(tmp_path / "secret", line(row(2, days=1)))
    folder = tmp_path / "rows" / "day=2026-11-01"
    (folder / "link.json").symlink_to(secret)
    os.mkfifo(folder / "pipe.json")

    table = Table(str(tmp_path))
    assert dict(table.rejected.counts) == {"cannot be read": 2}
    assert table.query_value("SELECT count(*) FROM deaths") == 1
    assert compact(str(tmp_path))["rejected"] == {"cannot be read": 2}
    assert secret.read_text() and not list(folder.iterdir())
    assert [path.read_text() for path in (tmp_path / "rejected").glob("*/*")] == ["", ""]
