"""The tables, as Markdown that is readable on a terminal, too."""

from __future__ import annotations

import leaks
from figures import (
    EARLIER_GOAL,
    PEER_GOALS,
    compared,
    goal_verdicts,
    stopped_ratio,
    summary,
    times_less,
)
from recorders import MODES, earlier


def all_tables(results: dict) -> str:
    parts = ["### What oomrec costs\n", own_table(results)] if results["workloads"] else []
    present = {name for workload in results["workloads"] for name in workload["results"]}
    others = {earlier(mode) for mode in MODES} & present
    if others:
        parts += ["\n### Beside an earlier build\n", earlier_table(results)]
    own = {"none", *MODES, *others}
    peers = [one for one in results["recorders"] if one["name"] in present - own]
    if peers:
        parts += ["\n### Beside its peers\n", peer_table(results, peers)]
        with_goals = [one for one in peers if one["name"] in PEER_GOALS]
        if with_goals:
            parts += [
                "\n### Time added by peers, as a multiple of ours\n",
                times_table(results, with_goals),
            ]
    if results["reading"]:
        parts += ["\n### What reading costs\n", reading_table(results["reading"])]
    if results["refusal"]:
        parts += [
            "\n### How long a failed allocation takes\n",
            waiting_table(results["refusal"], "program"),
        ]
    if results["commands"]:
        parts += [
            "\n### How long a command takes to start\n",
            waiting_table(results["commands"], "command"),
        ]
    if results["leaks"]:
        parts += ["\n### Which leaks are reported\n", leaks_table(results["leaks"])]
    if results.get("python"):
        parts += ["\n### What the Python package's calls take\n", calls_table(results["python"])]
    return "\n".join(parts) + "\n" + said_once(results)


def reading_table(measured: list[dict]) -> str:
    rows = [["command", "recording", "CPU time", "memory", "goal", ""]]
    for row in measured:
        rows.append(
            [
                f"oomrec {row['command']}",
                row["recording"],
                amount(row["median_s"], "s"),
                "" if row["rss_mib"] is None else f"{row['rss_mib']:.0f} MiB",
                f"≤ {row['goal_s']} s",
                "reached" if row["median_s"] <= row["goal_s"] else "**missed**",
            ]
        )
    return aligned(rows)


def waiting_table(measured: list[dict], what: str) -> str:
    rows = [[what, "median", "slowest", "goal", ""]]
    for row in measured:
        rows.append(
            [
                row["program"],
                amount(row["median_ms"], "ms"),
                amount(max(row["took_ms"]), "ms"),
                f"≤ {row['goal_ms']} ms",
                "reached" if row["median_ms"] <= row["goal_ms"] else "**missed**",
            ]
        )
    return aligned(rows)


def calls_table(measured: list[dict]) -> str:
    modes = list(dict.fromkeys(mode for row in measured for mode in row["median_ns"]))
    rows = [["call", *modes, "goal", ""]]
    for row in measured:
        took, goal = row["median_ns"], row["goal_ns"]
        reached = goal is None or max(took.values()) <= goal
        rows.append(
            [
                row["call"],
                *(amount(took[mode], "ns") if mode in took else "" for mode in modes),
                f"≤ {goal} ns" if goal else "",
                "" if goal is None else "reached" if reached else "**missed**",
            ]
        )
    return aligned(rows)


def leaks_table(measured: list[dict]) -> str:
    rows = [["program", "label", *(f"{mode}: reported" for mode in MODES), ""]]
    for program in dict.fromkeys(row["program"] for row in measured):
        by_mode = {row["mode"]: row for row in measured if row["program"] == program}
        first = next(iter(by_mode.values()))
        right = all(
            row["wrong"] == 0 and (row["right"] > 0) == row["leaks"] for row in by_mode.values()
        )
        rows.append(
            [
                first["what"],
                "leak" if first["leaks"] else "none",
                *(reported_cell(by_mode.get(mode)) for mode in MODES),
                "right" if right else "**wrong**",
            ]
        )
    lines = []
    for mode in MODES:
        precision, recall = leaks.precision_and_recall(
            [row for row in measured if row["mode"] == mode]
        )
        reached = "reached" if min(precision, recall) >= leaks.GOAL else "**missed**"
        lines.append(
            f"{mode}: precision {precision:.2f}, recall {recall:.2f}; goal ≥ {leaks.GOAL}: {reached}."
        )
    return aligned(rows) + "\n\n" + "\n".join(lines)


def reported_cell(row: dict | None) -> str:
    if row is None or row["right"] + row["wrong"] == 0:
        return ""
    return f"{row['bytes_per_second'] / 2**20:.1f} MiB/s, {row['confidence']:.2f}"


def own_table(results: dict) -> str:
    rows = [["workload", "mode", "alone", "with", "spread", "ratio", "added", "memory", "goal", ""]]
    for workload in results["workloads"]:
        unit = workload["unit"]
        for mode in MODES:
            own, alone = summary(workload, mode), summary(workload, "none")
            if own is None or alone is None:
                problem = workload["results"].get(mode, {}).get("problem") or "not measured"
                rows.append([workload["title"], mode, "", problem, "", "", "", "", "", ""])
                continue
            verdicts = goal_verdicts(results["workloads"], workload, mode)
            rows.append(
                [
                    workload["title"] if mode == MODES[0] else "",
                    mode,
                    amount(alone["median"], unit),
                    amount(own["median"], unit),
                    f"{own['spread_percent']:.0f} %",
                    f"{own['ratio']:.2f}",
                    amount(own["added"], unit, sign=True),
                    "" if own["added_mib"] is None else f"{own['added_mib']:+.0f} MiB",
                    ", ".join(words for words, _ in verdicts),
                    ", ".join("reached" if reached else "**missed**" for _, reached in verdicts),
                ]
            )
    return aligned(rows)


def earlier_table(results: dict) -> str:
    rows = [["workload", "mode", "before", "now", "ratio", "memory before", "now", ""]]
    for workload in results["workloads"]:
        for mode in MODES:
            both = compared(workload, mode, earlier(mode))
            if both is None:
                continue
            memory = [both[build]["added_mib"] for build in ("before", "own")]
            reached = round(both["ratio"], 2) <= EARLIER_GOAL
            rows.append(
                [
                    workload["title"] if mode == MODES[0] else "",
                    mode,
                    *(
                        amount(both[build]["median"], workload["unit"])
                        for build in ("before", "own")
                    ),
                    f"{both['ratio']:.2f}",
                    *("" if mib is None else f"{mib:+.1f} MiB" for mib in memory),
                    "" if reached else "**slower**",
                ]
            )
    return aligned(rows)


def peer_table(results: dict, peers: list[dict]) -> str:
    columns = [*MODES, *(one["name"] for one in peers)]
    titles = {one["name"]: one["title"] for one in results["recorders"]}
    rows = [["workload", "alone", *(titles[name] for name in columns)]]
    for workload in results["workloads"]:
        alone = amount(summary(workload, "none")["median"], workload["unit"])
        rows.append([workload["title"], alone, *(peer_cell(workload, name) for name in columns)])
    return aligned(rows)


def peer_cell(workload: dict, name: str) -> str:
    result = workload["results"].get(name)
    if result is None:
        return ""
    own = summary(workload, name)
    if own is None:
        return f"> {stopped_ratio(workload, name):.0f} ×" if result["stopped_cpu_s"] else "fails"
    if workload["unit"] == "s":
        return f"{own['ratio']:.2f}"
    return amount(own["added"], workload["unit"], sign=True)


def times_table(results: dict, peers: list[dict]) -> str:
    rows = [["workload", *(f"{one['title']}: {mode}" for one in peers for mode in MODES)]]
    for workload in results["workloads"]:
        cells = [times_cell(workload, mode, one["name"]) for one in peers for mode in MODES]
        if any(cells):
            rows.append([workload["title"], *cells])
    bounds = (f"≥ {PEER_GOALS[one['name']][mode]}" for one in peers for mode in MODES)
    rows.insert(1, ["goal", *bounds])
    return aligned(rows)


def times_cell(workload: dict, mode: str, peer: str) -> str:
    both = times_less(workload, mode, peer)
    if both is None:
        return ""
    times, reached = both
    stopped = "> " if workload["results"][peer]["stopped_cpu_s"] else ""
    if times is None:
        return "adds nothing"
    digits = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
    return f"{stopped}{digits}" if reached else f"**{stopped}{digits}**"


def said_once(results: dict) -> str:
    about = results["machine"]
    kind = "virtual machine" if about["virtual"] else "machine"
    lines = [
        f"Measured on {results['date_utc']}: {about['cores']} cores of a {kind} ({about['cpu']}), "
        f"{about['memory_gib']} GiB, Linux {about['kernel']}, {about['libc']}, "
        f"Python {about['python']}. {rounds_in_words(results)}."
    ]
    lines += [
        f"Skipped: {one['title']}: {one['problem']}."
        for one in results["recorders"]
        if one["problem"]
    ]
    for workload in results["workloads"]:
        lines += [
            f"Failed: {name} in {workload['name']}: {result['problem']}."
            for name, result in workload["results"].items()
            if result["problem"]
        ]
    return "\n" + "\n".join(lines) + "\n"


def rounds_in_words(results: dict) -> str:
    words = f"Interleaved rounds: {results['rounds']}"
    if results["peer_rounds"]:
        words += f", peers in {results['peer_rounds']} of them (one where a run takes more than 5 s), stopped after {results['peer_seconds']:.0f} s"
    return words + ("; a quick run: not to be quoted" if results["quick"] else "")


def amount(value: float, unit: str, sign: bool = False) -> str:
    digits = 1 if unit != "s" else 2 if abs(value) >= 1 else 3
    if unit == "ns" and abs(value) >= 100:
        digits = 0
    return f"{value:{'+' if sign else ''},.{digits}f} {unit}"


def aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
        for row in rows
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)
