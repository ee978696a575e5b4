"""fragmentation: of programs whose heap is fragmented in a known way, alive and as bundles."""

import pytest
from schemas import check

MIB = 1 << 20


@pytest.fixture
def fragmented(oomrec, victim):
    """fragmented("every_second") is the pid of a process whose heap is so."""

    def start(what, mode="exact"):
        words = ["run", "--quiet", "--mode", mode, "--", victim("fragments"), what]
        process = oomrec.start(*words, stdin=-1)
        return int(process.stdout.readline())

    return start


def rules(told):
    return [advice["rule"] for advice in told["advice"]]


def test_every_second_small_block_is_free(oomrec, fragmented):
    """60 MiB of it: no page is free as a whole."""
    pid = fragmented("every_second")

    told = oomrec.json("fragmentation", pid)

    check("fragmentation", told)
    areas, runs = told["heap"]["areas"], told["heap"]["free_runs"]
    assert areas["held_bytes"] == pytest.approx(120 * MIB, rel=0.1)
    assert areas["live_bytes"] == pytest.approx(60 * MIB, rel=0.1)
    assert areas["free_share"] == pytest.approx(0.5, abs=0.05)
    assert areas["held_bytes"] * 0.9 <= areas["resident_bytes"] <= areas["held_bytes"]
    assert runs["bytes"] == pytest.approx(60 * MIB, rel=0.1) and runs["count"] > 50_000
    assert runs["page_bytes"] < 8 * MIB and runs["largest_bytes"] < 8 * MIB
    assert rules(told) == ["small_gaps"]

    page = oomrec("fragmentation", pid)
    assert page.exit_code == 0 and max(map(len, page.stdout.splitlines())) <= 100
    assert "jemalloc" in page.stdout and "critical" in page.stdout

    bundle = oomrec.json("dump", pid)["bundle"]
    of_bundle = oomrec.json("fragmentation", bundle)
    check("fragmentation", of_bundle)
    assert of_bundle["heap"]["areas"] == areas and of_bundle["heap"]["free_runs"] == runs
    assert of_bundle["map"]["anonymous_bytes"] > 100 * MIB


def test_runs_of_many_pages_are_free(oomrec, fragmented):
    told = oomrec.json("fragmentation", fragmented("long_runs"))

    runs = told["heap"]["free_runs"]
    assert runs["page_bytes"] > 0.9 * runs["bytes"] > 50 * MIB
    assert rules(told) == ["free_pages"]


def test_the_arenas_of_threads(oomrec, fragmented):
    told = oomrec.json("fragmentation", fragmented("arenas"))

    areas = told["heap"]["areas"]
    assert areas["count"] >= 8 and areas["arenas_bytes"] > 0.8 * areas["held_bytes"]
    assert rules(told)[0] == "many_arenas"


def test_samples_tell_how_much_is_free_and_not_where(oomrec, fragmented):
    pid = fragmented("every_second", mode="sampled")
    told = oomrec.json("fragmentation", pid)

    check("fragmentation", told)
    assert told["heap"]["areas"]["free_share"] == pytest.approx(0.5, abs=0.05)
    assert told["heap"]["free_runs"] is None and rules(told) == ["free_heap"]
    assert "known of exact recordings only" in oomrec("fragmentation", pid).stdout


def test_a_heap_in_use_and_large_blocks_are_no_fragments(oomrec, fragmented):
    """Blocks with mappings of their own are not in the heap's pieces."""
    told = oomrec.json("fragmentation", fragmented("in_use"))

    areas = told["heap"]["areas"]
    assert told["heap"]["live_bytes"] > 150 * MIB and areas["held_bytes"] < 80 * MIB
    assert areas["free_share"] < 0.2 and rules(told) == []
    assert "nothing notable" in oomrec("fragmentation", fragmented("in_use")).stdout
