"""Calls before our constructor and after our last exit handler, alone and beside another preload."""

from __future__ import annotations

import sys

import pytest

MODES = ["sampled", "exact", "off"]


@pytest.mark.parametrize("mode", MODES)
def test_early_and_late_calls(plain, preload, victim, mode):
    without = plain(victim("early_calls"))
    assert without.stdout == "42 1 1\nlast\n" and without.exit_code == 0
    run = preload(victim("early_calls"), env={"OOMREC_MODE": mode})
    assert (run.stdout, run.exit_code, run.stderr) == (without.stdout, 0, ""), str(run)


@pytest.mark.parametrize("bind", [None, "1"])
@pytest.mark.parametrize("mode", MODES)
def test_beside_another_preload_in_both_orders(plain, library, victim, mode, bind):
    """The first preload initializes last and exits first. The other's first calloc calls dlsym."""
    other = victim("early_preload.so")
    env = {"OOMREC_MODE": mode, "LD_BIND_NOW": bind}
    for order in (f"{library}:{other}", f"{other}:{library}"):
        run = plain(victim("early_calls"), env={**env, "LD_PRELOAD": order})
        assert (run.stdout, run.exit_code) == ("42 1 1\nlast\nunloaded\n", 0), str(run)
        assert run.stderr == "", str(run)
        run = plain(
            sys.executable, "-c", "print(len([0] * 10**6))", env={**env, "LD_PRELOAD": order}
        )
        assert (run.stdout, run.exit_code) == ("1000000\nunloaded\n", 0), str(run)


def test_a_failure_is_recorded_through_another_preload(oomrec, plain, library, victim):
    env = {"LD_PRELOAD": f"{victim('early_preload.so')}:{library}"}
    run = plain(victim("naive_malloc"), env=env)
    assert oomrec.json("show", run.only_bundle())["request"]["api"] == "malloc"
