"""A short self-check: stacks that reuse the thread's last one equal a full walk and libunwind's.
`scripts/self-check` makes the long one."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
import self_check
from conftest import distinct_versions
from pythons import PYTHON_VERSIONS


@pytest.fixture
def check_library(build_dir) -> Path:
    path = Path(f"{build_dir}-check") / "liboomrec.so"
    if not path.exists():
        pytest.skip(f"{path} is not built: scripts/self-check builds it")
    return path


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(name, marks=[pytest.mark.full] * (name == "torch"))  # as much as four others
        for name in self_check.WORKLOADS
    ],
)
def test_every_stack_equals_the_full_walk(check_library, workload):
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
    assert counts["cached_chains"] > counts["stacks"] / 20
    assert counts["cached_stacks"] > counts["cached_chains"] / 2
    assert counts["quick_nodes"] > counts["cached_chains"] / 2
    assert counts["oracle_frames"] > 5 * counts["oracle_stacks"] > 0


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_every_python_stack_equals_the_full_walk(check_library, python, victim, version):
    command = [python(version), victim("python/changing_stacks.py")]
    counts = self_check.check_command(check_library, command)
    assert counts["different"] == 0
    assert counts["python_reused"] > counts["python_frames"] / 2 > counts["stacks"]
