"""Programs that do everything at once end as without the recorder: no deadlock, no crash, no leftovers."""

from __future__ import annotations

import math

import pytest
from conftest import rounds

MODES = ["sampled", "exact"]
SECONDS = rounds(1, 60)
SIGNALS = rounds(1500, 5000)


@pytest.mark.parametrize(
    "words",
    [["storm"], ["spawn_storm"], ["prefork"], ["signals", SIGNALS]],
    ids=lambda words: words[0],
)
def test_a_storm_passes(plain, preload, victim, words):
    command = [victim(words[0]), *words[1:]]
    without = plain(*command)
    for mode in MODES:
        recorded = preload(*command, env={"OOMREC_MODE": mode})
        assert (recorded.stdout, recorded.exit_code) == (without.stdout, 0), str(recorded)
        assert recorded.stderr == without.stderr
        assert preload.sessions_left() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pages", [0, 1, 10, 100, 1000, 10000])
def test_an_address_space_one_page_short(preload, victim, mode, pages):
    recorded = preload(victim("tight"), pages, env={"OOMREC_MODE": mode})
    assert (recorded.stdout, recorded.exit_code) == ("child 0, refused\n", 3), str(recorded)
    assert recorded.bundles()


# glibc's header of a block: 8 bytes, 16 for a mapped one.
HEADER, MAPPED_HEADER = 8, 16
LARGEST = 200_000  # the storm's largest block; 3 MiB in a child
MOST_LIVE = (4 * 64 + 128) * LARGEST  # bound on its live bytes
INTERVAL = 512 << 10


def own_rows(stats: dict) -> list[dict]:
    """The rows of the functions that the storm counts itself."""
    return [
        row
        for row in stats["top_by_bytes"]
        if "own_allocate" in (row["function"] or "") or "own_resize" in (row["function"] or "")
    ]


def is_own(holder: dict) -> bool:
    return any("own_" in (frame["function"] or "") for frame in holder["stack"])


def check_possible(show: dict) -> None:
    """Nothing below zero, which shows as a huge number, and nothing above the possible maximum."""
    for name, space in show["spaces"].items():
        assert 0 <= space["live_bytes"] <= space["peak_bytes"] < 1 << 30, (name, space)
        assert 0 <= space["live_count"] <= max(space["allocated_count"], 1 << 20), (name, space)
    for holder in show["holders"]:
        assert 0 < holder["bytes"] <= MOST_LIVE + (16 << 20), holder
        assert 0 <= holder["count"] < 1 << 20, holder
    assert show["recording"]["dropped_events"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_no_count_is_lost_or_impossible_in_a_storm(oomrec, preload, victim, mode):
    """Compared with glibc's and the program's own counters, while it runs and at its end."""
    env = {
        # glibc counts cached blocks and an arena's own header as in use.
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=4",
        "OOMREC_MODE": mode,
        "OOMREC_MAX_DUMPS": 0,
        "OOMREC_MAX_TOTAL_MB": 0,
        "OOMREC_QUIET": 1,
    }
    run = preload(victim("counted_storm"), SECONDS, env=env, timeout=300 + 2 * SECONDS)
    assert run.exit_code == 0 and run.stderr == "", str(run)
    points = {}
    for line in run.stdout.splitlines():
        name, *figures = line.rsplit(" ", 6)
        points[name] = tuple(map(int, figures))
    assert {"start", "end", "mid 0", "mid 5", "child 0"} <= set(points), str(run)

    differences = {}
    for name, (in_arenas, mapped, mapped_blocks, count, asked, live) in points.items():
        bundle = run.bundle_at(name)
        show = oomrec.json("show", "--top", "100000", bundle)
        check_possible(show)
        assert show["recording"]["mode"] == mode
        heap = show["spaces"]["heap"]
        headers = HEADER * heap["live_count"] + (MAPPED_HEADER - HEADER) * mapped_blocks
        differences[name] = in_arenas + mapped - headers - heap["live_bytes"]
        if not name.startswith("child"):
            assert heap["allocated_count"] >= count and heap["allocated_bytes"] >= asked
        if name not in ("start", "end"):
            continue
        rows = own_rows(oomrec.json("stats", "--top", "100000", bundle))
        recorded = sum(row["count"] for row in rows), sum(row["bytes"] for row in rows)
        if mode == "exact":
            # Blocks weigh what they take up, a little more than was asked for.
            held = sum(holder["bytes"] for holder in show["holders"] if is_own(holder))
            assert recorded[0] == count and asked <= recorded[1] < 1.02 * asked
            assert live <= held <= 1.02 * live
        else:
            assert abs(recorded[1] / asked - 1) < 5 * math.sqrt(INTERVAL / asked)
    # The difference is what was allocated before the recorder started. In the middle of the storm,
    # blocks that threads have not counted yet are added, also in a child forked then.
    assert differences["start"] == differences["end"] and differences["end"] in range(8192)
    assert max(map(abs, differences.values())) < 20 * LARGEST, differences
    assert preload.sessions_left() == []
