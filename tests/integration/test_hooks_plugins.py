"""Libraries that a C program loads privately: their operator new, and failures of the loader."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sizes import take_up

TOO_MUCH = 1 << 46
MORE_THAN_THE_LIMIT = (64 << 20) + 163


def run_plugin(run_with, victim, size, **env):
    script = victim("python/new_in_plugin.py")
    env = {"OOMREC_MAX_DUMPS": 0, **env}
    return run_with(sys.executable, script, victim("cxx_plugin.so"), size, env=env)


def check_bundles(oomrec, run, script, size, verdict):
    plain = oomrec.json("show", run.bundles()[0])
    afterwards = oomrec.json("show", run.bundle_at("afterwards"))
    assert plain["verdict"]["code"] == verdict
    request = plain["request"]
    assert (request["api"], request["size"]) == ("operator_new", size)
    assert "refused_new" in [frame["function"] for frame in request["stack"]]
    asked = next(frame for frame in request["stack"] if frame["kind"] == "python")
    assert asked["function"] == "ask"
    lines = Path(script).read_text().splitlines()
    assert lines[asked["line"] - 1] == "    return function(size)"
    assert any(
        take_up(holder["bytes"], (7 << 20) + 1)
        and "go_on" in [frame["function"] for frame in holder["stack"]]
        for holder in afterwards["holders"]
    ), afterwards["holders"]


def test_new_that_fails_by_the_system(oomrec, plain, preload, victim):
    size = TOO_MUCH + 167
    without, run = run_plugin(plain, victim, size), run_plugin(preload, victim, size)
    assert without.stdout == "plain 2\nnothrow 1\naligned 2\n", str(without)
    assert (run.stdout, run.exit_code) == (without.stdout, 0), str(run)
    script = victim("python/new_in_plugin.py")
    check_bundles(oomrec, run, script, size, "request_too_large")


def test_new_that_fails_by_the_soft_limit(oomrec, preload, victim):
    size = MORE_THAN_THE_LIMIT
    run = run_plugin(preload, victim, size, OOMREC_LIMIT=64 << 20)
    assert run.stdout == "plain 2\nnothrow 1\naligned 2\n" and run.exit_code == 0, str(run)
    check_bundles(oomrec, run, victim("python/new_in_plugin.py"), size, "soft_limit")


def test_a_failed_new_is_reported_once(preload, victim):
    """The library's operator new retries the failed call: malloc, or an aligned one."""
    run = run_plugin(preload, victim, TOO_MUCH + 167)
    events = json.loads((run.bundle_at("afterwards") / "events.json").read_text())
    failures = [(row["api"], row["size"]) for row in events if row["event_type"] == "error"]
    new, malloc = ("operator_new", TOO_MUCH + 167), ("malloc", TOO_MUCH + 167)
    aligned = failures[-1]  # GCC 16's does not round the size up
    assert aligned in [("aligned_alloc", TOO_MUCH + 256), ("posix_memalign", TOO_MUCH + 167)]
    # One try per call of the handler and a last one. The nothrow form calls no handler.
    assert failures == [new, malloc, malloc, new, new, aligned, aligned]


def test_a_library_that_does_not_fit_is_a_failure(oomrec, plain, preload, victim):
    names = [victim("wide_plugin.so")]
    without, run = (
        plain(victim("dlopen_failure"), *names),
        preload(victim("dlopen_failure"), *names),
    )
    assert "failed to map segment" in without.stdout
    assert (run.stdout, run.exit_code) == (without.stdout, without.exit_code), str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["request"]["api"] == "dlopen" and shown["request"]["error"] == "ENOMEM"
    assert "main" in [frame["function"] for frame in shown["request"]["stack"]]


def test_exhausted_static_tls_is_not_a_failure(plain, preload, victim):
    names = [victim("static_tls_plugin.so")]
    without, run = (
        plain(victim("dlopen_failure"), *names),
        preload(victim("dlopen_failure"), *names),
    )
    assert "cannot allocate memory in static TLS block" in without.stdout
    assert (run.stdout, run.exit_code) == (without.stdout, without.exit_code), str(run)
    assert run.bundles() == [], str(run)
