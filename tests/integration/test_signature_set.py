"""A part of scripts/signatures: one cause, one signature, whatever is refactored around it."""

import argparse

import pytest
from signatures.__main__ import Result, chosen, key_of, performed

OPTIONS = {"python": [], "keep": None, "j": 3}


@pytest.mark.parametrize(
    "programs, variants",
    [
        (["plugins"], ["base", "refactored", "newer"]),
        (["words"], ["base", "refactored", "O3"]),
    ],
)
def test_a_cause_keeps_its_signature(build_dir, tmp_path, programs, variants):
    options = argparse.Namespace(
        **{**OPTIONS, "keep": str(tmp_path)}, program=programs, variant=variants
    )
    runs = chosen(options)
    performed(runs, options, build_dir)
    result = Result(runs)
    problems = [(run.label, run.variant.name, run.problem) for run in runs if not run.row]
    assert all("no interpreter" in problem for _, _, problem in problems), problems
    keys = {(run.label, run.variant.name): key_of(run) for run in result.known}
    score = result.score(lambda row: row["signature"])
    assert score.precision == score.recall == 1, keys
    assert result.kept("refactored") == (4, 4), keys
