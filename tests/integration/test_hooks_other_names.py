"""Blocks that are allocated or freed by other names than malloc and free."""

from __future__ import annotations

import glob

import pytest
from conftest import full

ROUNDED = 1.04  # an allocator's blocks have certain sizes
SLACK = 128 << 10  # what the C library and the loader have allocated, and tables of tcmalloc's

# 10,000 texts each of 2,001, 1,001 and 6 bytes.
COPIES = 10_000 * (2001 + 1001 + len("/proc") + 1)


def heap_at_exit(oomrec, mode, *words, env=None):
    run = oomrec("run", "--mode", mode, "--dump-at-exit", "--", *words, env=env, exits=0)
    bundle = oomrec.json("show", run.only_bundle())
    return run, bundle["spaces"]["heap"], bundle["holders"]


NAMES = ["free_sized", "free_aligned_sized", "cfree", "dallocx", "sdallocx", "mallocx"]


def preloading(name: str | None) -> dict:
    found = glob.glob(f"/usr/lib/*/{name}") if name else [""]
    return {"LD_PRELOAD": found[0]} if found else pytest.skip(f"not installed: {name}")


@pytest.mark.parametrize(
    "mode, allocator",
    [
        ("exact", None),
        ("sampled", "libjemalloc.so.2"),
        full("sampled", None),
        full("exact", "libjemalloc.so.2"),
    ],
)
@pytest.mark.parametrize("function", NAMES)
def test_a_free_by_another_name_is_seen(oomrec, victim, mode, allocator, function):
    """jemalloc's names do without jemalloc what free() and malloc() do: a program that looks for one finds it."""
    env = preloading(allocator)
    run, heap, _ = heap_at_exit(oomrec, mode, victim("other_frees"), function, env=env)
    assert run.stdout == "done\n"
    assert heap["live_bytes"] < SLACK and heap["allocated_count"] >= 100_000, heap
    assert heap["peak_bytes"] < 25 << 20, heap


@pytest.mark.parametrize("allocator", [None, "libjemalloc.so.2"])
@pytest.mark.parametrize("function", NAMES)
def test_a_limit_counts_what_was_freed_by_another_name(oomrec, victim, allocator, function):
    words = ("run", "--limit", "40M", "--", victim("other_frees"), function)
    run = oomrec(*words, env=preloading(allocator))
    assert run.stdout == "done\n" and run.exit_code == 0, str(run)
    assert not run.bundles()


def test_with_the_recorder_off_it_frees_too(preload, victim):
    run = preload(victim("other_frees"), "free_sized", env={"OOMREC_MODE": "off"})
    assert run.stdout == "done\n", str(run)


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@pytest.mark.parametrize("allocator", [None, "own", "libmimalloc.so.3", "libjemalloc.so.2"])
def test_copies_of_texts_are_live_until_they_are_freed(oomrec, victim, mode, allocator):
    """The C library's strdup calls malloc. An allocator's own does not, and its blocks are freed by free()."""
    env = {}
    if allocator == "own":
        env["LD_PRELOAD"] = victim("copying_allocator.so")
    elif allocator:
        found = glob.glob(f"/usr/lib/*/{allocator}") or pytest.skip(f"not installed: {allocator}")
        env["LD_PRELOAD"] = found[0]
    run, heap, holders = heap_at_exit(oomrec, mode, victim("copies"), env=env)
    assert run.stdout == "2000 1000 /proc\n"
    assert COPIES <= heap["live_bytes"] < COPIES * ROUNDED, heap
    assert heap["allocated_bytes"] >= 5 * COPIES, heap
    if mode == "exact":
        of_main = sum(
            h["bytes"] for h in holders if any(f["function"] == "main" for f in h["stack"])
        )
        assert (
            COPIES * 0.98 <= of_main < COPIES * ROUNDED
        )  # the latest ones are in the thread's sums


# A family of names, and whose they are; the C library's own are tcmalloc's, too.
FAMILIES = [
    ("libc", None),
    ("libc", "libtcmalloc_minimal.so.4"),
    ("tc", "libtcmalloc_minimal.so.4"),
    ("mi", "libmimalloc.so.2"),
    ("x", "libjemalloc.so.2"),
]
families = pytest.mark.parametrize("family, allocator", FAMILIES)


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@families
def test_an_allocator_is_seen_by_its_further_names(oomrec, victim, mode, family, allocator):
    """The victim frees by any of them what it has allocated by any, and counts itself what is left."""
    env = preloading(allocator)
    run, heap, holders = heap_at_exit(oomrec, mode, victim("named_functions"), family, env=env)
    live = int(run.stdout)
    assert live <= heap["live_bytes"] < live + SLACK, (live, heap)
    kept = sum(
        h["bytes"] for h in holders if any("take_" in (f["function"] or "") for f in h["stack"])
    )
    if mode == "exact":  # in glibc's heap with what lies between aligned blocks
        assert live * 0.99 < kept < live * 1.7, (live, kept)


@pytest.mark.parametrize("allocator", sorted({name for _, name in FAMILIES if name}))
def test_a_program_finds_no_name_that_it_would_not_find_alone(plain, library, victim, allocator):
    theirs = preloading(allocator)["LD_PRELOAD"]
    for other in (theirs, ""):
        alone = plain(victim("named_functions"), "names", env={"LD_PRELOAD": other})
        both = {"LD_PRELOAD": f"{library}:{other}"}
        assert plain(victim("named_functions"), "names", env=both).stdout == alone.stdout
        assert (" 1\n" in alone.stdout) == (other != ""), alone.stdout


@families
def test_with_the_recorder_off_the_further_names_work(plain, library, victim, family, allocator):
    env = {"LD_PRELOAD": f"{library}:{preloading(allocator)['LD_PRELOAD']}", "OOMREC_MODE": "off"}
    run = plain(victim("named_functions"), family, env=env)
    assert run.exit_code == 0 and int(run.stdout) > 0, str(run)


TAKES_UP = {  # what 50,000 or 1,000,000 blocks of this kind take up in glibc's heap
    "aligned": 50_000 * 4096,
    "empty": 1_000_000 * 24,
    "small": 1_000_000 * 24,
}


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@pytest.mark.parametrize("kind", TAKES_UP)
def test_a_block_weighs_what_it_takes_up(oomrec, victim, mode, kind):
    """They ask for less than the block of 19 MiB beside them, and take up more."""
    _, heap, holders = heap_at_exit(oomrec, mode, victim("rounded"), kind)
    many = sum(h["bytes"] for h in holders if any(f["function"] == "many" for f in h["stack"]))
    spread = 0.01 if mode == "exact" else 0.7  # a sample for each half a MiB
    assert abs(many / TAKES_UP[kind] - 1) < spread, (many, holders[:2])
    if mode == "exact":
        assert holders[0]["stack"][-1]["function"] == "many" or many > 20_000_000, holders[0]
        if kind != "aligned":
            held = sum(h["bytes"] for h in holders if h["space"] == "heap")
            assert abs(held - heap["live_bytes"]) < SLACK, (held, heap)


def test_what_is_freed_takes_up_nothing(oomrec, victim):
    for kind in TAKES_UP:
        run = oomrec(
            "run", "--mode", "exact", "--dump-at-exit", "--", victim("rounded"), kind, "free"
        )
        bundle = oomrec.json("show", run.bundles()[-1], "--at", "end")
        many = [h for h in bundle["holders"] if any(f["function"] == "many" for f in h["stack"])]
        assert all(h["bytes"] == 0 for h in many), many
