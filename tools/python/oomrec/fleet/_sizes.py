"""How much memory a service needs, from the processes that lived and those that died.

A death proves only that the process needed more than its limit: it is censored there. The Kaplan-Meier estimator takes
both kinds. Percentiles of deaths alone, or of survivors alone, would be wrong in opposite directions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Iterable, NamedTuple

FEWEST_LIVES = 30
MOST_CENSORED = 0.2
MOST_LEAKS = 0.2  # of a service's deaths
HEADROOM = 1.1
# With so many lives the largest lies above the 99th percentile with a probability of 95 % and 63 %.
LIVES_OF_CONFIDENCE = ((300, "high"), (100, "medium"), (FEWEST_LIVES, "low"))
# Verdicts after which the same work fits into more memory of the host.
MORE_MEMORY_HELPS = frozenset(
    """soft_limit address_space_limit data_limit allocation_failed near_limit killed_near_limit cgroup_oom_kill
    system_oom_kill user_space_oom_kill uncaught_bad_alloc crash_after_refusal runtime_limit terminated_under_pressure
    memory_pressure child_killed terminated_by_parent mapping_failed""".split()
)
MOST_STANDS_FOR = 2
RETRY_FACTOR = 1.5  # if the service's need is unknown


class Observation(NamedTuple):
    """Processes with the same need."""

    bytes: int
    weight: float
    survived: bool  # the need is exact; else it was larger


@dataclass(frozen=True)
class Size:
    """What is known about a service's need; figures of memory are bytes, None if unknown."""

    service: str
    limit_bytes: int | None
    lives: int
    deaths: int
    leaks: int
    giant_requests: int
    censored_share: float
    need_p50_bytes: int | None
    need_p95_bytes: int | None
    need_p99_bytes: int | None
    need_max_bytes: int | None
    more_than_bytes: int | None
    recommended_bytes: int | None
    confidence: str
    why: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def kaplan_meier(observations: Iterable[Observation]) -> list[tuple[int, float]]:
    """(need, share of processes that need more), with rising needs.

    A process that died at a need counts as still at risk there, as one that needed more. The estimator gives its share
    to those seen beyond, however few: one of these, perhaps forged, would decide for all that died. So the curve ends
    where a process would stand for more than MOST_STANDS_FOR.
    """
    exact: dict[int, float] = {}
    censored: dict[int, float] = {}
    for each in observations:
        kind = exact if each.survived else censored
        kind[each.bytes] = kind.get(each.bytes, 0.0) + each.weight
    total = at_risk = sum(exact.values()) + sum(censored.values())
    share, curve = 1.0, []
    for need in sorted(exact.keys() | censored.keys()):
        if share * total > MOST_STANDS_FOR * at_risk:
            break
        ended = exact.get(need, 0.0)
        if ended:
            share *= max(1 - ended / at_risk, 0.0)
            curve.append((need, share))
        at_risk -= ended + censored.get(need, 0.0)
    return curve


def percentile(curve: list[tuple[int, float]], share: float) -> int | None:
    """The smallest need that suffices for `share` of the processes; None if it lies beyond all that lived."""
    return next((need for need, more in curve if 1 - more >= share - 1e-9), None)


def rounded_up(count: float) -> int:
    """To 1/16 of the power of two below it, at least a MiB: at most 6 % more."""
    whole = int(count) + (count > int(count))
    step = max(1 << max(whole.bit_length() - 5, 0), 1 << 20)
    return (whole + step - 1) // step * step


def weighted_median(values: Iterable[tuple[float, float]]) -> float:
    """Of (value, weight)."""
    ordered = sorted(values)
    half, passed = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        passed += weight
        if passed >= half:
            return value
    return 0.0


def sizes_of(needs: list[dict[str, Any]]) -> list[Size]:
    """The sizes of all services from the rows of needs.sql, by name."""
    services: dict[str, list[dict[str, Any]]] = {}
    for row in needs:
        services.setdefault(row["service"], []).append(row)
    return [size_of(service, services[service]) for service in sorted(services)]


def size_of(service: str, rows: list[dict[str, Any]]) -> Size:
    lives = [row for row in rows if row["survived"]]
    deaths = [row for row in rows if not row["survived"]]
    leaks = sum(row["processes"] for row in deaths if row["cause"] == "leak")
    giants = sum(row["processes"] for row in deaths if row["cause"] == "giant_request")
    bounds = [row for row in deaths if row["cause"] not in ("leak", "giant_request")]
    # A forged life must not count as a thousand: what it may stand for is what most of them say.
    most_weight = weighted_median(
        (row["weight"], row["processes"]) for row in lives if row["sampled"]
    )
    observations = [
        Observation(
            row["need_bytes"],
            row["processes"] * min(row["weight"], most_weight or 1),
            row["survived"],
        )
        for row in lives + bounds
    ]
    total = sum(each.weight for each in observations)
    died = sum(each.weight for each in observations if not each.survived)
    curve = kaplan_meier(observations)
    life_count = sum(row["processes"] for row in lives)
    p99 = percentile(curve, 0.99)
    limits: dict[int, int] = {}
    for row in deaths:
        if row["limit_bytes"]:
            limits[row["limit_bytes"]] = limits.get(row["limit_bytes"], 0) + row["processes"]
    death_count = sum(row["processes"] for row in deaths)
    censored = died / total if total else 0.0
    more_than = (
        int(weighted_median((row["need_bytes"], row["processes"]) for row in bounds)) or None
    )
    recommended, confidence, why = None, "none", ""
    if leaks > MOST_LEAKS * death_count:
        why = "leak: no limit is large enough"
    elif life_count < FEWEST_LIVES:
        why = f"{life_count} processes that ended well, {FEWEST_LIVES} are needed"
    elif censored > MOST_CENSORED or p99 is None:
        why = f"{100 * censored:.0f} % died at their limit: the need is larger than what was seen"
    else:
        recommended = rounded_up(p99 * HEADROOM)
        confidence = next(word for count, word in LIVES_OF_CONFIDENCE if life_count >= count)
        why = "p99 + 10 %"
    return Size(
        service=service,
        limit_bytes=max(limits, key=lambda size: (limits[size], size), default=None),
        lives=life_count,
        deaths=death_count,
        leaks=leaks,
        giant_requests=giants,
        censored_share=round(censored, 4),
        need_p50_bytes=percentile(curve, 0.5),
        need_p95_bytes=percentile(curve, 0.95),
        need_p99_bytes=p99,
        need_max_bytes=max((row["need_bytes"] for row in lives), default=None),
        more_than_bytes=None if recommended else more_than,
        recommended_bytes=recommended,
        confidence=confidence,
        why=why,
    )


def retry_with_bytes(death: dict[str, Any], size: Size | None) -> int | None:
    """The limit with which a launcher should repeat the work of a row; None if more memory does not help."""
    if death["cause"] in ("leak", "giant_request") or death["verdict"] not in MORE_MEMORY_HELPS:
        return None
    needed = max(death["need_bytes"] or 0, death["limit_bytes"] or 0)
    if size is not None and size.recommended_bytes is not None and size.recommended_bytes > needed:
        return size.recommended_bytes
    return rounded_up(needed * RETRY_FACTOR) if needed else None
