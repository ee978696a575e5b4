"""The fast path of exact mode records what the slow path records, takes so many instructions, and may be
interrupted by a fork."""

from __future__ import annotations

import shutil

import compare_sessions
import instructions
import pytest
from conftest import full
from pythons import PACKAGE_PYTHON_VERSIONS, PYTHON_VERSIONS

pytestmark = pytest.mark.skipif(shutil.which("setarch") is None, reason="no setarch here")


def test_both_paths_record_every_kind_of_event_alike(library, build_dir):
    command = compare_sessions.command_of("all_events", build_dir)
    entries, different = compare_sessions.difference(library, build_dir, command)
    assert entries > 5000
    assert different == []


# The paths meet Python's frames only as stacks; the versions between differ in these alone.
@pytest.mark.parametrize(
    "version",
    [
        full(version) if version in PACKAGE_PYTHON_VERSIONS[1:-1] else version
        for version in PYTHON_VERSIONS
    ],
)
def test_both_paths_record_python_alike(library, build_dir, python, version):
    command = compare_sessions.command_of("python", build_dir, str(python(version)))
    entries, different = compare_sessions.difference(library, build_dir, command)
    assert entries > 5000
    assert different == []


@pytest.mark.parametrize(
    ("mode", "pattern", "depth"),
    [
        # The rare least count of pattern c takes longer to find than pattern d's, of stacks that recur, too. Each frame
        # costs as much as the next: one depth of a pattern is enough.
        full(*row) if row[1] == "c" or row[1:] in [("a", 16), ("a", 106)] else row
        for row in instructions.ROWS
    ],
)
def test_a_pair_takes_few_instructions(build_dir, mode, pattern, depth):
    try:
        added = instructions.added(build_dir, mode, pattern, depth)
    except OSError as error:
        pytest.skip(f"single steps are not possible here: {error}")
    assert 0 < added < instructions.ROWS[mode, pattern, depth]


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_handler_may_fork_inside_a_hook(preload, victim, mode):
    """Its child returns into the hook, and ends well."""
    run = preload(victim("forks_in_handlers"), env={"OOMREC_MODE": mode}, timeout=100)
    assert (run.exit_code, run.stderr) == (0, ""), str(run)
