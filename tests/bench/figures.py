"""Medians, ratios, added costs and goals, from the figures of single runs."""

from __future__ import annotations

from statistics import median


def summary(workload: dict, recorder: str) -> dict | None:
    """What a recorder costs in a workload, from results.json. None if it was not run.

    Ratio and added cost are medians over the rounds: within a round both runs met the same machine.
    """
    result = workload["results"].get(recorder)
    plain = workload["results"]["none"]
    if result is None or not result["figures"]:
        return None
    pairs = list(zip(result["figures"], plain["figures"]))
    memory = [mib for mib in result["rss_mib"] if mib is not None]
    plain_memory = [mib for mib in plain["rss_mib"] if mib is not None]
    ratios = [with_it / alone for with_it, alone in pairs]
    return {
        "median": median(result["figures"]),
        "spread_percent": 100 * (max(result["figures"]) / min(result["figures"]) - 1),
        "ratio": median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "added": median(with_it - alone for with_it, alone in pairs),
        "added_mib": median(memory) - median(plain_memory) if memory and plain_memory else None,
        "runs": len(result["figures"]),
    }


def compared(workload: dict, mode: str, other: str) -> dict | None:
    """A mode beside the same of another build. None if either was not run.

    The ratio is of what the program takes with each, a median over the rounds.
    """
    own, before = summary(workload, mode), summary(workload, other)
    if own is None or before is None:
        return None
    results = workload["results"]
    pairs = zip(results[mode]["figures"], results[other]["figures"])
    return {
        "own": own,
        "before": before,
        "ratio": median(now / then for now, then in pairs),
    }


def goal_verdicts(workloads: list[dict], workload: dict, mode: str) -> list[tuple[str, bool]]:
    """Each goal of one of our modes as text, and whether the printed digits reach it."""
    own = summary(workload, mode)
    if own is None:
        return []
    verdicts = []
    for kind, bound in workload["goals"].get(mode, {}).items():
        if kind == "ratio":
            verdicts.append((f"≤ {bound:.2f}", round(own["ratio"], 2) <= bound))
        elif kind == "added":
            verdicts.append((f"≤ {bound} {workload['unit']}", round(own["added"], 1) <= bound))
        elif kind == "added_mib" and own["added_mib"] is not None:
            verdicts.append((f"≤ {bound} MiB", round(own["added_mib"]) <= bound))
        elif kind == "like":
            other = next((one for one in workloads if one["name"] == bound), None)
            added = other and summary(other, mode)
            if added:
                reached = own["added"] <= 1.15 * added["added"]
                verdicts.append((f"≤ 1.15 × {bound}'s", reached))
    return verdicts


# What a program takes at most, as a multiple of what it takes with an earlier build.
EARLIER_GOAL = 1.02

# How many times less than a peer each of our modes should add.
PEER_GOALS = {
    "heaptrack": {"sampled": 20, "exact": 8},
    "memray-native": {"sampled": 20, "exact": 8},
    "memray": {"sampled": 15, "exact": 4},
    "fil": {"sampled": 8, "exact": 2},
}


def times_less(workload: dict, mode: str, peer: str) -> tuple[float | None, bool] | None:
    """How many times less a mode adds than a peer, and whether that reaches the goal.

    No number where the mode adds nothing that could be measured: then it is reached.
    """
    own = summary(workload, mode)
    added = peer_added(workload, peer)
    if own is None or added is None or added <= 0:
        return None
    if own["added"] <= 0:
        return None, True
    times = added / own["added"]
    return times, times >= PEER_GOALS[peer][mode]


def peer_added(workload: dict, peer: str) -> float | None:
    """What a peer adds, in the workload's unit. If it was stopped: what it had added by then."""
    if peer not in workload["results"]:
        return None
    own = summary(workload, peer)
    if own:
        return own["added"]
    ratio = stopped_ratio(workload, peer)
    return ratio and (ratio - 1) * summary(workload, "none")["median"]


def stopped_ratio(workload: dict, recorder: str) -> float | None:
    """The CPU time until it was stopped, as a ratio: a lower bound."""
    stopped_cpu_s = workload["results"][recorder]["stopped_cpu_s"]
    return stopped_cpu_s and stopped_cpu_s / median(workload["results"]["none"]["cpu_s"])
