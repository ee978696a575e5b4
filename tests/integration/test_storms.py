"""Programs that do everything at once end as they would have: no deadlock, no crash, no rest."""

from __future__ import annotations

import pytest

MODES = ["sampled", "exact"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["storm", "spawn_storm", "prefork", "signals"])
def test_a_storm_passes(plain, preload, victim, name, mode):
    without = plain(victim(name))
    recorded = preload(victim(name), env={"OOMREC_MODE": mode})
    assert (recorded.stdout, recorded.exit_code) == (without.stdout, 0), str(recorded)
    assert recorded.stderr == without.stderr
    assert preload.sessions_left() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pages", [0, 1, 10, 100, 1000, 10000])
def test_an_address_space_so_tight_that_one_more_page_fails(preload, victim, mode, pages):
    recorded = preload(victim("tight"), pages, env={"OOMREC_MODE": mode})
    assert (recorded.stdout, recorded.exit_code) == ("child 0, refused\n", 3), str(recorded)
    assert recorded.bundles()
