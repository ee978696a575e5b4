"""The heap's totals are those of glibc itself, mallinfo2(), wherever blocks are made and freed."""

from __future__ import annotations

import ctypes
import mmap

import pytest

# What glibc keeps beside a block in an arena; mapped_header() when it is mapped by itself.
HEADER = 8
NO_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def points_of(run) -> dict:
    """What the program printed: {point: bytes in arenas, bytes mapped, blocks mapped}."""
    lines = [line.rsplit(" ", 3) for line in run.stdout.splitlines()]
    return {name: tuple(map(int, figures)) for name, *figures in lines}


def mapped_header() -> int:
    """16 bytes, 24 since glibc 2.43: what the usable size of a mapped block lacks of whole pages."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.malloc_usable_size.argtypes = libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(64 << 20)  # above the highest threshold for mapping
    header = -libc.malloc_usable_size(block) % mmap.PAGESIZE
    libc.free(block)
    return header


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_totals_agree_with_mallinfo2(oomrec, preload, victim, mode):
    env = {**NO_CACHES, "OOMREC_MAX_DUMPS": 0, "OOMREC_MODE": mode}
    run = preload(victim("heap_totals"), env=env)
    points = points_of(run)
    assert len(points) == 10 and run.exit_code == 0, str(run)
    mapped_headers = mapped_header() - HEADER
    differences = {}
    for name, (in_arenas, mapped, mapped_blocks) in points.items():
        heap = oomrec.json("show", run.bundle_at(name))["spaces"]["heap"]
        in_use = in_arenas + mapped
        headers = HEADER * heap["live_count"] + mapped_headers * mapped_blocks
        differences[name] = in_use - headers - heap["live_bytes"]
    # glibc 2.43 counts what aligns a mapped block, and does not discount it: mapped bytes of no block.
    _, padding, mapped_blocks = points["end"]
    assert padding in range(64) and mapped_blocks == 0
    # What was allocated before the recorder started is the difference, at every point the same.
    before = differences["start"]
    assert before in range(8192) and differences["end"] == before + padding, differences
    assert set(differences.values()) <= {before, before + padding}, differences


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
