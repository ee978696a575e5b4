"""A sandboxed program survives: the recorder makes no system call, and its recording is readable."""

from __future__ import annotations

import sys

import pytest

TOO_MUCH = 1 << 46


@pytest.mark.parametrize("how", ["prctl", "syscall"])
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_sandboxed_program_is_not_killed(oomrec, plain, preload, victim, how, mode):
    without = plain(victim("sandboxed"), how)
    if without.exit_code == 77:
        pytest.skip("no seccomp filter may be set here")
    run = preload(victim("sandboxed"), how, env={"OOMREC_MODE": mode})
    assert (run.stdout, run.exit_code) == (without.stdout, without.exit_code) == ("lives\n", 3)
    assert run.bundles() == []

    recovered = oomrec("recover", exits=0)
    shown = oomrec.json("show", recovered.only_bundle())
    assert shown["outcome"] == "exited 3"
    assert shown["request"]["size"] == TOO_MUCH + 163
    assert "main" in [frame["function"] for frame in shown["request"]["stack"]]
    assert shown["spaces"]["heap"]["live_bytes"] >= 64 << 20


def test_an_inherited_filter_is_the_containers(oomrec, preload, victim):
    """Every container has one, and the recorder works as usual."""
    run = preload(victim("sandboxed"), "prctl", victim("naive_malloc"))
    if run.exit_code == 77:
        pytest.skip("no seccomp filter may be set here")
    assert oomrec.json("show", run.only_bundle())["request"]["size"] == TOO_MUCH + 101


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_service_under_systemds_filter_lives_and_is_recorded(oomrec, preload, victim, mode):
    """SystemCallFilter=@system-service kills for a system call that is in none of its groups."""
    run = preload(victim("as_service"), victim("naive_malloc"), env={"OOMREC_MODE": mode})
    if run.exit_code == 77:
        pytest.skip("no seccomp filter may be set here")
    assert oomrec.json("show", run.only_bundle())["request"]["size"] == TOO_MUCH + 101


def test_a_python_service_under_systemds_filter_lives_and_is_recorded(oomrec, preload, victim):
    program = "import subprocess; subprocess.run(['true']); kept = bytearray(100 << 20)"
    run = preload(victim("as_service"), sys.executable, "-c", program, env={"OOMREC_LIMIT": "64M"})
    if run.exit_code == 77:
        pytest.skip("no seccomp filter may be set here")
    assert "MemoryError" in run.stderr, str(run)
    assert oomrec.json("show", run.only_bundle())["verdict"]["code"] == "soft_limit"
