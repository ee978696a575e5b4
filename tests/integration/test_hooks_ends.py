"""Every way to end: the status is the program's, the last refusal is told, and nothing is left."""

from __future__ import annotations

import os
import signal

import pytest

TOO_MUCH = 1 << 46
WAYS = [
    "return", "exit", "_exit", "_Exit", "quick_exit", "exit_group", "thread", "exec_failed",
]  # fmt: skip


def sessions(runner) -> list:
    return sorted(runner.session_dir.glob("*/*.session"))


@pytest.mark.parametrize("way", WAYS)
def test_a_clean_end_leaves_nothing(preload, victim, way):
    run = preload(victim("ends"), way)
    assert (run.stdout, run.exit_code) == ("ends\n", 7), str(run)
    assert run.bundles() == [] and sessions(preload) == []


@pytest.mark.parametrize("way", WAYS)
def test_the_last_refusal_is_told_with_its_outcome(oomrec, preload, victim, way):
    """Five on five stacks: three at once, the others wait for their turn, which the end is."""
    run = preload(victim("ends"), way, 5)
    assert run.exit_code == 7
    last = oomrec.json("show", run.bundles()[-1])
    assert last["request"]["size"] == TOO_MUCH + 1005 and last["outcome"] == "exited 7"
    assert sessions(preload) == [], str(run)


def test_after_a_failed_exec_the_session_goes_on(oomrec, preload, victim):
    """Killed then: an orphan that held much, so `recover` makes a bundle of it."""
    run = preload(victim("ends"), "exec_failed_killed")
    assert run.exit_code == 128 + signal.SIGKILL and len(sessions(preload)) == 1
    [bundle] = oomrec.json("recover")["bundles"]
    shown = oomrec.json("show", bundle)
    assert shown["process"]["pid"] == run.pid and shown["trigger"] == "killed"
    assert shown["spaces"]["heap"]["live_bytes"] > 40 << 20
    assert sessions(preload) == []


def test_an_exec_is_no_death(oomrec, preload, victim):
    """The image before it was not killed; the one after it was, and has the same pid."""
    run = preload(victim("ends"), "exec_killed")
    assert run.exit_code == 128 + signal.SIGKILL
    [session] = sessions(preload)  # the first image's went when the second began
    assert f"-{run.pid}-" in session.name
    [bundle] = oomrec.json("recover")["bundles"]
    shown = oomrec.json("show", bundle)
    assert shown["process"]["pid"] == run.pid and shown["process"]["argv"][-1] == "killed"


def test_an_exec_after_refusals_keeps_them(oomrec, preload, victim):
    """What was refused before an exec and had to wait for its turn is told in the end."""
    run = preload(victim("ends"), "exec", 5)
    assert (run.stdout, run.exit_code) == ("ends\nends\n", 7)
    oomrec.json("recover")
    told = [oomrec.json("show", bundle)["request"]["size"] for bundle in run.bundles()]
    assert TOO_MUCH + 1005 in told and sessions(preload) == []


def test_a_daemon_is_recorded(oomrec, preload, victim):
    """daemon() goes on in a child: its refusal is in a bundle of its own, the parent ended cleanly."""
    run = preload(victim("daemonize"))
    assert (run.stdout, run.exit_code) == ("daemon refused\n", 0)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["request"]["size"] == TOO_MUCH + 151
    assert shown["process"]["pid"] not in (run.pid, os.getpid())
    assert "main" in [frame["function"] for frame in shown["request"]["stack"]]
    assert sessions(preload) == []
