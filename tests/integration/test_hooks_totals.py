"""The heap's totals agree with glibc's own, mallinfo2(), for every way to allocate and free."""

from __future__ import annotations

import ctypes
import mmap

import pytest

# glibc's header of a block in an arena; mapped_header() is that of a mapped block.
HEADER = 8
NO_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def points_of(run) -> dict:
    """The program's output as {point: bytes in arenas, bytes mapped, blocks mapped}."""
    lines = [line.rsplit(" ", 3) for line in run.stdout.splitlines()]
    return {name: tuple(map(int, figures)) for name, *figures in lines}


def mapped_header() -> int:
    """16 bytes, 24 since glibc 2.43: what the usable size of a mapped block lacks of whole pages."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.malloc_usable_size.argtypes = libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(64 << 20)  # above the highest mmap threshold
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
    # glibc 2.43 counts the alignment of a mapped block, and never subtracts it: bytes without a block.
    _, padding, mapped_blocks = points["end"]
    assert padding in range(64) and mapped_blocks == 0
    # The difference is what was allocated before the recorder started, the same at every point.
    before = differences["start"]
    assert before in range(8192) and differences["end"] == before + padding, differences
    assert set(differences.values()) <= {before, before + padding}, differences


def test_a_realloc_counts_as_one_call(oomrec, preload, victim):
    run = preload(victim("refusals"), "realloc", env={"OOMREC_MODE": "exact"})
    reallocs = oomrec.json("stats", run.only_bundle())["apis"]["realloc"]
    asked_for, size = 0, 1 << 20
    for _ in range(reallocs["count"]):
        size += size // 2
        asked_for += size
    assert reallocs["count"] > 8 and reallocs["bytes"] == asked_for


def test_glibcs_mmap_threshold_is_unchanged(plain, preload, victim):
    """glibc's dynamic mmap threshold is unchanged. Freeing a mapped block would have raised it."""
    without, run = (
        points_of(start(victim("heap_totals"), env=NO_CACHES)) for start in (plain, preload)
    )
    assert without["allocated"][1:] == run["allocated"][1:] != (0, 0)


def test_a_child_that_frees_inherited_blocks(oomrec, preload, victim):
    env = {**NO_CACHES, "OOMREC_MAX_DUMPS": 0, "OOMREC_MODE": "exact"}
    run = preload(victim("heap_totals"), env=env)
    spaces = {}
    for name in ("child", "child released"):
        shown = oomrec.json("show", run.bundle_at(name))
        spaces[name] = shown["spaces"]["heap"]
        held = [holder["bytes"] for holder in shown["holders"] if holder["space"] == "heap"]
        assert 0 < sum(held) <= spaces[name]["live_bytes"] and min(held) >= 0, held
    assert 0 <= spaces["child released"]["live_bytes"] < spaces["child"]["live_bytes"] - (7 << 20)
