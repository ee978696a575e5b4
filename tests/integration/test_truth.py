"""The set of cases whose truth is known by construction (tests/truth): no verdict may be wrong.

A fixed part of the set runs each time, the whole with `scripts/test --full`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from truth.case import NOTHING, WAYS, died, innocent, quiet
from truth.cases import CASES
from truth.grade import grade
from truth.machine import Machine, Missing
from truth.sandbox import run_case
from truth.table import expected, got

WHOLE = bool(os.environ.get("OOMREC_TEST_FULL"))
CHOSEN = [
    pytest.param(case, way, id=f"{case.name}-{way}")
    for case in CASES
    for way in case.ways
    if WHOLE or (case.short and way == case.ways[0])
]


@pytest.fixture(scope="session")
def machine(build_dir):
    return Machine(build_dir)


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("case, way", CHOSEN)
def test_no_verdict_is_wrong(case, way, machine, tmp_path, build_dir):
    with contextlib.ExitStack() as scratch:
        if case.disk:  # tmp_path may be in memory
            tmp_path = Path(scratch.enter_context(tempfile.TemporaryDirectory(dir=build_dir)))
        check(case, way, machine, tmp_path)


def check(case, way, machine, parent):
    directory = parent / "case"
    directory.mkdir()
    try:
        result = run_case(machine, case, way, directory)
    except Missing as missing:
        pytest.skip(str(missing))
    assert result.grade.grade in ("right", "unsure"), (
        f"{result.grade.why}: {case.story}\nexpected {expected(result)}\ngot {got(result)}"
    )


def test_the_set_covers_each_class_in_each_way():
    assert len({case.name for case in CASES}) == len(CASES)
    ways = [(case.group, way) for case in CASES for way in case.ways]
    assert len(ways) >= 600
    groups = {case.group for case in CASES} - {
        "coroner"
    }  # only a parent can do without a recording
    assert {(group, way) for group in groups for way in WAYS} <= set(ways)
    assert {case.group for case in CASES if case.short} == groups | {"coroner"}


def answered(code: str, certainty: str = "proven", **more) -> dict:
    return {
        "verdict": {"code": code, "certainty": certainty},
        "request": None,
        "process": {"executable": "/usr/bin/sort", "argv": ["sort", "-S", "9G"]},
        "limit": {"kind": "none"},
        "outcome": "signal 9",
        "holders": [{"stack": [{"function": "grow", "file": "/srv/job.py"}]}],
        **more,
    }


@pytest.mark.parametrize(
    "truth, shown, wanted",
    [
        (died("cgroup_oom_kill"), answered("cgroup_oom_kill"), ("right", "")),
        (died("cgroup_oom_kill"), answered("cgroup_oom_kill", "possible"), ("unsure", "possible")),
        (died("cgroup_oom_kill"), answered("killed_externally"), ("wrong", "denied falsely")),
        (died("cgroup_oom_kill"), answered("soft_limit", "likely"), ("wrong", "wrong cause")),
        (died("cgroup_oom_kill"), answered("unknown"), ("unsure", "unknown")),
        (died("cgroup_oom_kill"), None, ("wrong", "nothing left")),
        (
            died("killed_near_limit", decided=False),
            answered("killed_near_limit", "possible"),
            ("right", ""),
        ),
        (
            died("soft_limit", least_request=9000),
            answered("soft_limit", request={"size": 24}),
            ("wrong", "request of 24 bytes"),
        ),
        (
            died("soft_limit", limit="soft"),
            answered("soft_limit"),
            ("wrong", "limit none, not soft"),
        ),
        (
            died("cgroup_oom_kill", limit="cgroup", limit_mib=60),
            answered("cgroup_oom_kill"),
            ("unsure", "the limit is not known"),
        ),
        (
            died("cgroup_oom_kill", holder="grow"),
            answered("cgroup_oom_kill"),
            ("right", ""),
        ),
        (
            died("cgroup_oom_kill", holder="keep"),
            answered("cgroup_oom_kill"),
            ("wrong", "keep holds nothing"),
        ),
        (
            died("cgroup_oom_kill", program="java"),
            answered("cgroup_oom_kill"),
            ("wrong", "culprit '/usr/bin/sort sort -S 9G', not java"),
        ),
        (
            died("cgroup_oom_kill", program="java"),
            answered("unknown"),
            ("wrong", "culprit '/usr/bin/sort sort -S 9G', not java"),
        ),
        (innocent("crashed"), answered("crashed", "likely"), ("right", "")),
        (innocent("crashed"), answered("null_dereference"), ("wrong", "blamed falsely")),
        (
            innocent("crashed"),
            answered("null_dereference", "possible"),
            ("unsure", "null_dereference, possible"),
        ),
        (innocent("crashed"), None, ("unsure", NOTHING)),
        (quiet(), None, ("right", "")),
        (quiet(), answered("unknown", "possible"), ("wrong", "false alarm")),
    ],
)
def test_an_answer_is_graded_by_its_claim(truth, shown, wanted):
    found = grade(truth, shown)
    assert (found.grade, found.why) == wanted
