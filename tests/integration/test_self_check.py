"""A short round of the self-check: what is taken over from a thread's last stack is what a full walk
finds, and libunwind. `scripts/self-check` makes the long one."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
import self_check

VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.fixture
def check_library(build_dir) -> Path:
    path = Path(f"{build_dir}-check") / "liboomrec.so"
    if not path.exists():
        pytest.skip(f"{path} is not built: scripts/self-check builds it")
    return path


@pytest.mark.parametrize("workload", self_check.WORKLOADS)
def test_no_stack_is_another_than_the_full_walks(check_library, workload):
    program = self_check.WORKLOADS[workload][2][0]
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    if workload in ("numpy", "torch") and importlib.util.find_spec(workload) is None:
        pytest.skip(f"no {workload} here")
    counts = self_check.check(check_library, workload, long=False)
    assert counts["different"] == 0
    assert counts["large_rules"] + counts["odd_rules"] < counts["rules"] / 1000
    assert counts["reusing"] > counts["stacks"] / 2 > 100
    if workload in ("cpython", "numpy", "torch"):
        assert counts["python_reused"] > counts["python_frames"] / 2 > counts["stacks"]
    assert counts["known_chains"] > counts["stacks"] / 20
    assert counts["known_stacks"] > counts["known_chains"] / 2
    assert counts["oracle_frames"] > 5 * counts["oracle_stacks"] > 0


@pytest.mark.parametrize("version", VERSIONS)
def test_nor_is_one_of_any_python(check_library, python, victim, version):
    command = [python(version), victim("python/changing_stacks.py")]
    counts = self_check.check_command(check_library, command)
    assert counts["different"] == 0
    assert counts["python_reused"] > counts["python_frames"] / 2 > counts["stacks"]
