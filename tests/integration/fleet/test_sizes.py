"""Needs and limits: the Kaplan-Meier estimator against hand-computed values, percentiles against numpy's."""

import json
import random

import pytest
from conftest import SOURCE, written
from fleet_rows import GIB, MIB, life, line, row
from oomrec.fleet._sizes import (
    MORE_MEMORY_HELPS,
    MOST_STANDS_FOR,
    Observation,
    kaplan_meier,
    percentile,
    retry_with_bytes,
    rounded_up,
    size_of,
)


def lived(*needs, weight=1.0):
    return [Observation(need, weight, True) for need in needs]


def died(*needs):
    return [Observation(need, 1.0, False) for need in needs]


MORE_MEMORY_DOES_NOT_HELP = {
    "crashed", "device_fragmentation", "device_limit", "device_out_of_memory", "exception", "exited", "fork_failed",
    "injected", "killed_externally", "memory_lock_failed", "null_dereference", "request_too_large", "requested",
    "shared_memory_full", "simulated", "thread_creation_failed", "unknown",
}  # fmt: skip


def test_more_memory_helps_each_verdict_or_not():
    schema = json.loads((SOURCE / "docs/schemas/facts.json").read_text())
    assert not MORE_MEMORY_HELPS & MORE_MEMORY_DOES_NOT_HELP
    verdicts = set(schema["$defs"]["verdict_code"]["enum"])
    assert verdicts == MORE_MEMORY_HELPS | MORE_MEMORY_DOES_NOT_HELP


def test_kaplan_meier_by_hand():
    """A textbook's example: 6-MP in leukaemia (Freireich 1963), of which 12 of 21 are censored."""
    exact = lived(6, 6, 6, 7, 10, 13, 16, 22, 23)
    censored = died(6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)

    curve = kaplan_meier(exact + censored)

    published = [
        (6, 0.857),
        (7, 0.807),
        (10, 0.753),
        (13, 0.690),
        (16, 0.627),
        (22, 0.538),
        (23, 0.448),
    ]
    assert [(need, round(share, 3)) for need, share in curve] == published
    assert percentile(curve, 0.5) == 23
    assert percentile(curve, 0.6) is None, "more than half of them were censored beyond"


def test_without_deaths_it_is_the_share_of_larger_lives():
    curve = kaplan_meier(lived(1, 2, 2, 4, weight=10))
    assert curve == [(1, 0.75), (2, 0.25), (4, 0.0)]
    assert [percentile(curve, share) for share in (0.1, 0.25, 0.5, 0.75, 1.0)] == [1, 1, 2, 2, 4]


def test_a_death_at_its_limit_raises_the_percentile_and_is_no_sample_itself():
    lives = lived(*range(1, 101))
    alone = percentile(kaplan_meier(lives), 0.9)
    with_deaths = percentile(kaplan_meier(lives + died(*[50] * 20)), 0.9)
    as_samples = percentile(kaplan_meier(lives + lived(*[50] * 20)), 0.9)
    assert as_samples < alone < with_deaths


@pytest.mark.needs_numpy
def test_percentiles_are_numpys():
    import numpy

    rng = random.Random(3)
    needs = [int(rng.lognormvariate(20, 0.5)) for _ in range(1000)]
    curve = kaplan_meier(lived(*needs))
    for share in (0.5, 0.9, 0.95, 0.99):
        assert percentile(curve, share) == numpy.percentile(
            needs, 100 * share, method="inverted_cdf"
        )


def needs(lives=0, deaths=0, need=GIB, cause=None, limit=2 * GIB, weight=1.0):
    shared = {"service": "web", "weight": weight, "limit_bytes": None}
    found = [
        {
            **shared,
            "sampled": True,
            "survived": True,
            "cause": None,
            "need_bytes": need + n * MIB,
            "processes": 1,
        }
        for n in range(lives)
    ]
    if deaths:
        died = {
            "sampled": False,
            "survived": False,
            "cause": cause,
            "need_bytes": limit,
            "limit_bytes": limit,
            "processes": deaths,
        }
        found.append({**shared, **died, "weight": 1.0})
    return found


@pytest.mark.parametrize(
    "rows, has_answer, why",
    [
        (needs(lives=30), True, "p99"),
        (needs(lives=29), False, "29 processes"),
        (needs(lives=100, deaths=24, limit=GIB), True, "p99"),
        (needs(lives=100, deaths=26, limit=GIB), False, "21 % died"),
        (needs(lives=100, deaths=2), False, "2 % died"),  # beyond all that lived
        (needs(lives=100, deaths=10, cause="leak"), False, "leak"),
        (needs(lives=100, deaths=10, cause="giant_request"), True, "p99"),
        (needs(deaths=10), False, "0 processes"),
    ],
)
def test_when_there_is_an_answer(rows, has_answer, why):
    size = size_of("web", rows)
    assert (size.recommended_bytes is not None) == has_answer
    assert why in size.why
    assert (size.more_than_bytes is None) == (
        has_answer or not any(row["limit_bytes"] and row["cause"] is None for row in rows)
    )


def test_the_answer_is_the_99th_percentile_and_a_tenth():
    size = size_of("web", needs(lives=200))
    assert size.need_p99_bytes == GIB + 197 * MIB
    assert size.need_p99_bytes * 1.1 <= size.recommended_bytes <= size.need_p99_bytes * 1.1 * 1.07
    assert size.confidence == "medium"


def test_rounding_up_adds_at_most_a_sixteenth():
    rng = random.Random(1)
    for count in [1, MIB, GIB, *(int(rng.lognormvariate(24, 3)) for _ in range(1000))]:
        up = rounded_up(count)
        assert count <= up and (up <= count * 17 / 16 or up == -(-count // MIB) * MIB)
        assert up % MIB == 0


def test_a_forged_life_counts_as_one(tmp_path):
    """Ten forged rows among a thousand move no percentile by more than one in a hundred, whatever they claim."""
    import datetime as dt

    from oomrec.fleet import Table
    from oomrec.fleet._queries import Window, sizes
    from oomrec.fleet._table import time_of

    rng = random.Random(5)
    honest = [life(n, int(rng.lognormvariate(20, 0.4)), service="web") for n in range(1000)]
    forged = [life(9000 + n, 1 << 62, weight=1e12, service="web") for n in range(10)]
    until = dt.datetime(2026, 12, 1)
    found = []
    for name, rows in (("honest", honest), ("both", honest + forged)):
        target = written(tmp_path / f"{name}.jsonl", "".join(map(line, rows)))
        [size] = sizes(Table(str(target)), Window(time_of("5w", until), until))
        found.append(size)
    ordered = sorted(each["need_bytes"] for each in honest)
    for share, name in ((0.5, "need_p50_bytes"), (0.95, "need_p95_bytes")):
        assert getattr(found[0], name) <= ordered[int(1000 * share)] * 1.01
        assert getattr(found[1], name) <= ordered[int(1000 * (share + 0.01))] * 1.01


def test_forged_rows_move_a_percentile_by_no_more_than_they_may_stand_for():
    """Whatever they claim, also where many honest processes died at a limit and few were seen beyond it."""
    rng = random.Random(11)
    answers = 0
    for _ in range(300):
        count, limit = rng.choice([40, 100, 400]), int(rng.lognormvariate(20.4, 0.2))
        needs = [int(rng.lognormvariate(20, 0.3)) for _ in range(count)]
        honest = [Observation(min(need, limit), 1.0, need < limit) for need in needs]
        forged = rng.randrange(1, count // 10)
        claimed = rng.choice([1, limit // 2, limit, limit + 1, 1 << 62])
        added = [Observation(claimed, 1.0, rng.random() < 0.7) for _ in range(forged)]
        alone, both = kaplan_meier(honest), kaplan_meier(honest + added)
        moved = MOST_STANDS_FOR * forged / (count + forged)
        for share in (0.5, 0.75, 0.9, 0.95, 0.99):
            found = percentile(both, share)
            if found is None:
                continue
            answers += 1
            beyond = sum(each.bytes >= found for each in honest) / len(honest + added)
            assert beyond >= (1 - share) / MOST_STANDS_FOR - moved
            before = percentile(alone, max(share - moved, 0))
            assert before is None or found >= before or found == claimed
    assert answers > 300


def test_one_life_beyond_the_limit_does_not_decide_for_those_that_died_there():
    honest = lived(*range(1, 851)) + died(*[851] * 150)
    assert percentile(kaplan_meier(honest), 0.99) is None
    assert percentile(kaplan_meier(honest + lived(1 << 62)), 0.99) is None
    assert percentile(kaplan_meier(honest + lived(*[900] * 160)), 0.99) == 900


@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
def test_later_lives_fit_the_limit_that_is_recommended(spread):
    """Simulated services with a known need, of which some died at a limit that was too low."""
    rng = random.Random(int(100 * spread))
    fits, total, over = 0, 0, []
    for _ in range(40):
        limit = int(GIB * (1 + 1.5 * spread))  # 7 % die at it
        seen = [int(rng.lognormvariate(0, spread) * GIB) for _ in range(400)]
        rows = [
            {
                "service": "web",
                "sampled": need <= limit,
                "survived": need <= limit,
                "cause": None,
                "limit_bytes": None if need <= limit else limit,
                "weight": 1.0,
                "need_bytes": min(need, limit),
                "processes": 1,
            }
            for need in seen
        ]
        size = size_of("web", rows)
        if size.recommended_bytes is None:
            assert size.more_than_bytes == limit, (
                "nothing beyond the limit was seen, so nothing is promised"
            )
            rows = [
                {**row, "sampled": True, "survived": True, "need_bytes": need}
                for row, need in zip(rows, seen)
            ]
            size = size_of("web", rows)
        later = [int(rng.lognormvariate(0, spread) * GIB) for _ in range(400)]
        fits += sum(need <= size.recommended_bytes for need in later)
        total += len(later)
        over.append(size.recommended_bytes / sorted(later)[int(0.99 * len(later))])
    assert fits / total >= 0.98
    assert sorted(over)[len(over) // 2] <= 1.25


@pytest.mark.parametrize(
    "changed, expected",
    [
        ({"cause": "leak"}, None),
        ({"cause": "giant_request"}, None),
        ({"verdict": "request_too_large", "cause": None}, None),
        ({"verdict": "device_out_of_memory", "cause": None}, None),
        ({"verdict": None, "cause": None}, None),
        ({"cause": None, "need_bytes": 2 * GIB, "limit_bytes": 2 * GIB}, 3 * GIB),
        ({"cause": None, "need_bytes": None, "limit_bytes": None}, None),
    ],
)
def test_with_how_much_to_retry(changed, expected):
    assert retry_with_bytes(row(0, **changed), None) == expected


def test_a_retry_gets_what_the_service_needs():
    size = size_of("web", needs(lives=100, need=3 * GIB))
    assert retry_with_bytes(row(0, cause=None, need_bytes=2 * GIB), size) == size.recommended_bytes
    assert retry_with_bytes(row(0, cause=None, need_bytes=9 * GIB), size) > 9 * GIB
