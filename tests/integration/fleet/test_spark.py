"""The queries on Spark give what they give in DuckDB."""

import json

import pytest
from fleet_rows import fleet as made_up
from fleet_rows import row, write_rows

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs_module("pyspark"),
    pytest.mark.needs_program("java"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A fleet, most of it as Parquet."""
    from oomrec.fleet import compact

    made = tmp_path_factory.mktemp("fleet")
    write_rows(made, made_up(2000, services=5, days=20))
    compact(str(made))
    later = [row(1_000_000_001, days=20, revision=3), row(77, days=20)]
    write_rows(made, later)
    return made


@pytest.mark.parametrize(
    "words",
    [
        ["top"],
        ["new"],
        ["regressed"],
        ["show", "1"],
        ["sizes"],
        ["gate", "--base", "v1.0", "--head", "v1.2"],
    ],
    ids=lambda words: words[0],
)
def test_equal_results(directory, fleet, words):
    dates = ("--since", "2026-11-12", "--until", "2026-11-20", "--json")
    answers = [
        fleet(*words, directory, *dates, "--on", engine)
        for engine in ("duckdb", "spark://local[2]")
    ]
    (one, here, _), (other, there, errors) = answers
    assert one == other, errors
    assert json.loads(here) == json.loads(there)
