"""oomrec fragmentation: programs with known fragmentation, running and as bundles."""

import pytest
from schemas import check

MIB = 1 << 20


@pytest.fixture
def fragmented(oomrec, victim):
    """fragmented("every_second") is the pid of a process with that kind of fragmentation."""

    def start(what, mode="exact"):
        words = ["run", "--quiet", "--mode", mode, "--", victim("fragments"), what]
        process = oomrec.start(*words, stdin=-1)
        return int(process.stdout.readline())

    return start


def rules(result):
    return [advice["rule"] for advice in result["advice"]]


def test_every_second_small_block_is_free(oomrec, fragmented):
    """60 MiB are free, but no whole page."""
    pid = fragmented("every_second")

    result = oomrec.json("fragmentation", pid)

    check("fragmentation", result)
    areas, runs = result["heap"]["areas"], result["heap"]["free_runs"]
    assert areas["held_bytes"] == pytest.approx(120 * MIB, rel=0.1)
    assert areas["live_bytes"] == pytest.approx(60 * MIB, rel=0.1)
    assert areas["free_share"] == pytest.approx(0.5, abs=0.05)
    assert areas["held_bytes"] * 0.9 <= areas["resident_bytes"] <= areas["held_bytes"]
    assert runs["bytes"] == pytest.approx(60 * MIB, rel=0.1) and runs["count"] > 50_000
    assert runs["page_bytes"] < 8 * MIB and runs["largest_bytes"] < 8 * MIB
    assert rules(result) == ["small_gaps"]

    page = oomrec("fragmentation", pid)
    assert page.exit_code == 0 and max(map(len, page.stdout.splitlines())) <= 100
    assert "jemalloc" in page.stdout and "critical" in page.stdout

    bundle = oomrec.json("dump", pid)["bundle"]
    of_bundle = oomrec.json("fragmentation", bundle)
    check("fragmentation", of_bundle)
    assert of_bundle["heap"]["areas"] == areas and of_bundle["heap"]["free_runs"] == runs
    assert of_bundle["map"]["anonymous_bytes"] > 100 * MIB


def test_runs_of_many_pages_are_free(oomrec, fragmented):
    result = oomrec.json("fragmentation", fragmented("long_runs"))

    runs = result["heap"]["free_runs"]
    assert runs["page_bytes"] > 0.9 * runs["bytes"] > 50 * MIB
    assert rules(result) == ["free_pages"]


def test_free_memory_that_was_given_back_costs_nothing(oomrec, fragmented):
    """60 MiB of address space are free, and nothing of it is in memory: there is nothing to do."""
    pid = fragmented("trimmed")
    for source in (pid, oomrec.json("dump", pid)["bundle"]):
        result = oomrec.json("fragmentation", source)
        check("fragmentation", result)
        areas = result["heap"]["areas"]
        assert areas["free_bytes"] == pytest.approx(60 * MIB, rel=0.1)
        assert areas["free_resident_bytes"] < 6 * MIB and rules(result) == []
        page = oomrec("fragmentation", source).stdout
        assert "of that resident" in page and "critical" not in page


@pytest.mark.parametrize("mode", ["exact", "sampled"])
def test_live_blocks_that_nobody_touched_hide_no_free_memory(oomrec, fragmented, mode):
    pid = fragmented("untouched", mode)
    for source in (pid, oomrec.json("dump", pid)["bundle"]):
        areas = oomrec.json("fragmentation", source)["heap"]["areas"]
        assert areas["live_bytes"] == pytest.approx(124 * MIB, rel=0.1)
        assert areas["resident_bytes"] == pytest.approx(120 * MIB, rel=0.1)
        assert areas["free_resident_bytes"] == pytest.approx(60 * MIB, rel=0.1)
    text = oomrec("fragmentation", pid).stdout
    assert "% of what is resident  critical" in text and max(map(len, text.splitlines())) <= 100


def test_what_of_mappings_is_resident(oomrec, victim):
    process = oomrec.start("run", "--", victim("residency"), "touched_part", "40")
    pid = process.once("grown").child()
    bundle = oomrec.json("dump", pid)["bundle"]
    for source in (pid, bundle):
        result = oomrec.json("fragmentation", source)
        check("fragmentation", result)
        assert result["map"]["live_bytes"] == 440 * MIB
        assert result["map"]["resident_bytes"] == 48 * MIB
        assert 48 * MIB <= result["map"]["anonymous_bytes"] <= result["rss_bytes"] < 80 * MIB
        assert "of it resident              48.0 MiB" in oomrec("fragmentation", source).stdout


def test_the_arenas_of_several_threads(oomrec, fragmented):
    result = oomrec.json("fragmentation", fragmented("arenas"))

    areas = result["heap"]["areas"]
    assert areas["count"] >= 8 and areas["arenas_bytes"] > 0.8 * areas["held_bytes"]
    assert rules(result)[0] == "many_arenas"


def test_samples_show_how_much_is_free_but_not_where(oomrec, fragmented):
    pid = fragmented("every_second", mode="sampled")
    result = oomrec.json("fragmentation", pid)

    check("fragmentation", result)
    assert result["heap"]["areas"]["free_share"] == pytest.approx(0.5, abs=0.05)
    assert result["heap"]["free_runs"] is None and rules(result) == ["free_heap"]
    assert "it needs an exact recording" in oomrec("fragmentation", pid).stdout


def test_a_full_heap_and_large_blocks_are_not_fragmentation(oomrec, fragmented):
    """Blocks that are mapped individually are not part of the heap's areas."""
    result = oomrec.json("fragmentation", fragmented("in_use"))

    areas = result["heap"]["areas"]
    assert result["heap"]["live_bytes"] > 150 * MIB and areas["held_bytes"] < 80 * MIB
    assert areas["free_share"] < 0.2 and rules(result) == []
    assert "nothing notable" in oomrec("fragmentation", fragmented("in_use")).stdout
