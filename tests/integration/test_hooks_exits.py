"""Every way to end: the exit status is unchanged, the last failure recorded, no session left."""

from __future__ import annotations

import itertools
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
def test_a_failure_is_recorded_with_its_outcome(oomrec, preload, victim, way):
    """Five failures on five stacks at once: the first has a bundle, which counts the others."""
    run = preload(victim("ends"), way, 5, exits=7)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["request"]["size"] == TOO_MUCH + 1001 and shown["outcome"] == "exited 7"
    assert shown["request"]["aftershocks"]["count"] == 4
    assert sessions(preload) == [], str(run)


def test_a_failed_exec_keeps_the_session(oomrec, preload, victim):
    """It is killed later, and is explained with the memory of before."""
    run = preload(victim("ends"), "exec_failed_killed")
    assert run.exit_code == 128 + signal.SIGKILL and len(sessions(preload)) == 1
    found = oomrec.json("recover", "--unknown")["bundles"]  # also of other tests' programs
    [bundle] = [path for path in found if path.startswith(str(preload.dump_dir))]
    shown = oomrec.json("show", bundle)
    assert shown["process"]["pid"] == run.pid and shown["trigger"] == "killed"
    assert shown["spaces"]["heap"]["live_bytes"] > 40 << 20
    assert sessions(preload) == []


def test_an_exec_is_not_a_death(oomrec, preload, victim):
    """Only the image after the exec was killed, although both have the same pid."""
    run = preload(victim("ends"), "exec_killed", exits=128 + signal.SIGKILL)
    [session] = sessions(preload)  # the first image's session is removed when the second starts
    assert f"-{run.pid}-" in session.name
    found = oomrec.json("recover", "--unknown")["bundles"]  # also of other tests' programs
    [bundle] = [path for path in found if path.startswith(str(preload.dump_dir))]
    shown = oomrec.json("show", bundle)
    assert shown["process"]["pid"] == run.pid and shown["process"]["argv"][-1] == "killed"


def test_an_exec_keeps_an_earlier_failure(oomrec, preload, victim):
    run = preload(victim("ends"), "exec", 5)
    assert (run.stdout, run.exit_code) == ("ends\nends\n", 7)
    oomrec.json("recover")
    shown = oomrec.json("show", run.only_bundle())
    assert shown["request"]["size"] == TOO_MUCH + 1001 and sessions(preload) == []


def test_a_daemon_is_recorded(oomrec, preload, victim):
    """daemon() continues in a child: its failure has a bundle, and the parent ended cleanly."""
    run = preload(victim("daemonize"))
    assert (run.stdout, run.exit_code) == ("daemon refused\n", 0)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["request"]["size"] == TOO_MUCH + 151
    assert shown["process"]["pid"] not in (run.pid, os.getpid())
    assert "main" in [frame["function"] for frame in shown["request"]["stack"]]
    assert sessions(preload) == []


@pytest.mark.parametrize(
    ("end", "mode"),
    [*itertools.product(["exit", "syscall", "run"], ["off", "sampled", "exact"]), ("map", "off")],
)
def test_a_helper_without_thread_local_storage(plain, preload, victim, end, mode):
    """As a browser's sandbox starts one: hooks may not touch errno, nor variables of their own."""
    alone = plain(victim("no_tls"), end)
    run = preload(victim("no_tls"), end, env={"OOMREC_MODE": mode})
    assert (alone.exit_code, run.exit_code) == (0, 0), str(run)
    assert (run.stdout, run.stderr) == (alone.stdout, "")
