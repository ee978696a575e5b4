"""scripts/soak in a short form: storms beside `oomrec watch` leave nothing that grows."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soak
from conftest import rounds

SECONDS = rounds(5, 60)

FIRST = soak.Sample(10, 30 << 20, 7, 3, 4 << 20, 5, 4, 0)


def test_storms_leave_nothing_that_grows(build_dir):
    run = subprocess.run(
        [sys.executable, Path(soak.__file__), "--minutes", str(SECONDS / 60)],
        env={**os.environ, "OOMREC_TEST_BUILD": str(build_dir)},
        capture_output=True,
        text=True,
        timeout=SECONDS + 300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "storm killed" in run.stdout and run.stdout.endswith("all bounded\n")


@pytest.mark.parametrize(
    "change, said",
    [
        ({}, None),
        ({"watch_bytes": 60 << 20}, "memory of oomrec watch"),
        ({"watch_descriptors": 21}, "descriptors"),
        ({"recordings": 51}, "recordings stay"),
        ({"recording_bytes": 300 << 20}, "too much memory"),
        ({"bundles": 7}, None),
        ({"bundles": 8}, "bundles stay"),
        ({"stale": 1}, "unfinished"),
    ],
)
def test_growth_is_a_problem(change, said):
    last = dataclasses.replace(FIRST, seconds=1000, **change)
    found = soak.problems(FIRST, [FIRST, FIRST, last], {"storm done": 3, "storm killed": 2})
    assert len(found) == (said is not None) and all(said in line for line in found)


@pytest.mark.parametrize("how", ["hung", "died of 11"])
def test_a_program_that_ends_otherwise_is_a_problem(how):
    assert soak.problems(FIRST, [FIRST], {f"storm {how}": 1}) == [f"storm {how}: 1 times"]
