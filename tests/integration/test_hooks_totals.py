"""The heap's totals are those of glibc itself, mallinfo2(), wherever blocks are made and freed."""

from __future__ import annotations

import pytest

# What glibc keeps beside a block: 8 bytes, 16 when it is mapped by itself.
HEADER, MAPPED_HEADER = 8, 16
NO_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def points_of(run) -> dict:
    """What the program printed: {point: bytes in arenas, bytes mapped, blocks mapped}."""
    lines = [line.rsplit(" ", 3) for line in run.stdout.splitlines()]
    return {name: tuple(map(int, figures)) for name, *figures in lines}


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_totals_agree_with_mallinfo2(oomrec, preload, victim, mode):
    env = {**NO_CACHES, "OOMREC_MAX_DUMPS": 0, "OOMREC_MODE": mode}
    run = preload(victim("heap_totals"), env=env)
    points = points_of(run)
    assert len(points) == 10 and run.exit_code == 0, str(run)
    differences = {}
    for name, (in_arenas, mapped, mapped_blocks) in points.items():
        heap = oomrec.json("show", run.bundle_at(name))["spaces"]["heap"]
        in_use = in_arenas + mapped
        headers = HEADER * heap["live_count"] + (MAPPED_HEADER - HEADER) * mapped_blocks
        differences[name] = in_use - headers - heap["live_bytes"]
    # What was allocated before the recorder started is the difference, at every point the same.
    assert len(set(differences.values())) == 1 and differences["start"] in range(8192), differences


def test_a_realloc_is_one_call(oomrec, preload, victim):
    run = preload(victim("realloc_growth"), env={"OOMREC_MODE": "exact"})
    told = oomrec.json("stats", run.only_bundle())["apis"]["realloc"]
    asked_for, size = 0, 1 << 20
    for _ in range(told["count"]):
        size += size // 2
        asked_for += size
    assert told["count"] > 8 and told["bytes"] == asked_for


def test_glibc_maps_what_it_would_have_mapped(plain, preload, victim):
    """Its threshold for mapping a block is as it was: freeing a mapped block would have raised it."""
    without, run = (
        points_of(start(victim("heap_totals"), env=NO_CACHES)) for start in (plain, preload)
    )
    assert without["allocated"][1:] == run["allocated"][1:] != (0, 0)


def test_a_child_that_frees_what_it_inherited(oomrec, preload, victim):
    env = {**NO_CACHES, "OOMREC_MAX_DUMPS": 0, "OOMREC_MODE": "exact"}
    run = preload(victim("heap_totals"), env=env)
    spaces = {}
    for name in ("child", "child released"):
        shown = oomrec.json("show", run.bundle_at(name))
        spaces[name] = shown["spaces"]["heap"]
        held = [holder["bytes"] for holder in shown["holders"] if holder["space"] == "heap"]
        assert 0 < sum(held) <= spaces[name]["live_bytes"] and min(held) >= 0, held
    assert 0 <= spaces["child released"]["live_bytes"] < spaces["child"]["live_bytes"] - (7 << 20)
