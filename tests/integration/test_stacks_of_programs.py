"""Stacks of third-party programs: our walk equals libunwind's, frame by frame."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "victims" / "new_caught.cpp"
SORT = "my @a = sort { $a <=> $b } map { $_ * 7919 % 10007 } 1 .. 20000; print $a[-1]"
SQL = (
    "create table t(a, b); with recursive c(i) as (select 1 union all select i + 1 from c"
    " where i < 5000) insert into t select i, hex(i) from c; create index k on t(b);"
    " select group_concat(b) from (select b from t order by b limit 30);"
)
JSON = "import json; [json.loads(json.dumps(list(range(50)))) for _ in range(200)]"

# Program: its arguments, and every how many allocations the walks are compared.
PROGRAMS = {
    "bash": (["-c", "for i in 1 2 3; do echo $(echo $i | sed s/./x/) | cat; done"], 1),
    "perl": (["-e", SORT], 3),
    "sqlite3": ([":memory:", SQL], 3),
    "g++": (["-O1", "-c", "-x", "c++", "-o", "/dev/null", str(SOURCE)], 31),
    "git": (["--version"], 1),
    "openssl": (["genrsa", "2048"], 7),
    sys.executable: (["-c", JSON], 11),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_our_walk_matches_libunwinds(plain, build_dir, tmp_path, program):
    arguments, every = PROGRAMS[program]
    compare(plain, build_dir, tmp_path, every, program, *arguments)


def test_a_program_with_a_hole_in_its_code(plain, build_dir, victim, tmp_path):
    compare(plain, build_dir, tmp_path, 1, victim("holes"))


def test_both_parts_around_the_hole_are_named(preload, oomrec, victim):
    run = preload(victim("holes"))
    assert run.stdout == "refused\n", str(run)
    stack = oomrec.json("show", run.only_bundle())["request"]["stack"]
    assert [frame["function"] for frame in stack[:2]] == ["ask", "main"]
    assert stack[0]["module"] == victim("holes")


def compare(plain, build_dir, directory, every, *command):
    counted = directory / "counted"
    run = plain(*command, env={
        "LD_PRELOAD": build_dir / "tests" / "integration" / "preloaded_oracle.so",
        "STACKS_EVERY": every,
        "STACKS_COUNTED": counted,
    })  # fmt: skip
    assert run.exit_code == 0, str(run)
    processes = [[int(n) for n in line.split()[:4]] for line in counted.read_text().splitlines()]
    stacks, different, given_up, frames = (sum(column) for column in zip(*processes))
    assert (different, given_up) == (0, 0), run.stderr
    assert stacks > 0 and frames > 5 * stacks
