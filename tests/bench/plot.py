"""The plot: a row per workload, a dot per recorder, at the ratio of its run to one without a recorder."""

from __future__ import annotations

import math
from html import escape

from figures import stopped_ratio, summary

COLOURS = {
    "sampled": "#0b7a3b",
    "exact": "#1f5fd0",
    "heaptrack": "#b3261e",
    "memray": "#e08a00",
    "memray-native": "#8a5200",
    "fil": "#7b2fa8",
    "jemalloc": "#6b7280",
    "gperftools": "#111827",
}
LEFT, TOP, ROW, WIDTH, RIGHT = 330, 74, 22, 560, 30
LOW = 0.8


def svg(results: dict) -> str:
    rows = [(workload, points(workload)) for workload in results["workloads"]]
    high = max([2.0, *(ratio for _, row in rows for _, ratio, _ in row)]) * 1.2

    def x(ratio: float) -> float:
        return LEFT + WIDTH * math.log(max(ratio, LOW) / LOW) / math.log(high / LOW)

    bottom = TOP + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{bottom + 30}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text(
            10,
            20,
            "Time with a recorder, as a ratio to none (logarithmic; an arrow: stopped there)",
            size=14,
        ),
        *legend(results, rows),
    ]
    for tick in ticks(high):
        colour = "#9ca3af" if tick == 1 else "#e5e7eb"
        parts.append(f'<path d="M{x(tick):.1f} {TOP - 6}V{bottom}" stroke="{colour}"/>')
        parts.append(text(x(tick), bottom + 16, f"{tick:g}", "middle"))
    for number, (workload, row) in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        parts.append(text(LEFT - 10, y + 4, workload["title"], "end"))
        parts.append(f'<path d="M{LEFT} {y + ROW / 2}H{LEFT + WIDTH}" stroke="#f3f4f6"/>')
        parts += [dot(x(ratio), y, name, ratio, stopped) for name, ratio, stopped in reversed(row)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def points(workload: dict) -> list[tuple[str, float, bool]]:
    """(recorder, ratio, whether it was stopped), ours first."""
    found = []
    for name in COLOURS:
        result = workload["results"].get(name)
        own = summary(workload, name)
        if own:
            found.append((name, own["ratio"], False))
        elif result and result["stopped_cpu_s"]:
            found.append((name, stopped_ratio(workload, name), True))
    return found


def ticks(high: float) -> list[float]:
    steps = [digit * 10.0**power for power in range(6) for digit in (1, 2, 5)]
    return [step for step in steps if step <= high]


def dot(x: float, y: float, name: str, ratio: float, stopped: bool) -> str:
    tip = f"<title>{escape(name)}: {'more than ' if stopped else ''}{ratio:.2f}</title>"
    if stopped:
        return f'<path d="M{x:.1f} {y - 5}l8 5l-8 5z" fill="{COLOURS[name]}">{tip}</path>'
    return f'<circle cx="{x:.1f}" cy="{y}" r="4.5" fill="{COLOURS[name]}" fill-opacity="0.85">{tip}</circle>'


def legend(results: dict, rows: list) -> list[str]:
    shown = {name for _, row in rows for name, _, _ in row}
    parts, left = [], 14
    for recorder in results["recorders"]:
        if recorder["name"] in shown:
            parts.append(
                f'<circle cx="{left}" cy="44" r="4.5" fill="{COLOURS[recorder["name"]]}"/>'
            )
            parts.append(text(left + 9, 48, recorder["title"]))
            left += 26 + 7 * len(recorder["title"])
    return parts


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#111827">{escape(words)}</text>'
