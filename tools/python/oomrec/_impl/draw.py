"""Draws an analysis: timeline, heat map and functions, each as a PNG and as an HTML page.

This file is embedded in the command. `oomrec analyze --visualize` runs it with the data as JSON on stdin
and the output directory as its argument; it prints the names of its files as JSON. PNGs need matplotlib.
The pages need no package, and load nothing.
"""

from __future__ import annotations

import json
import os
import sys
from html import escape
from typing import Any, Dict, Iterator

Data = Dict[str, Any]  # evaluated at run time, so not dict[…]: Python 3.8 lacks it
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
COLOURS = ("#1f6fb4", "#d9822b", "#2a9d5c", "#b0413e", "#7a5ea8", "#4b4b4b")
MIB = 1024.0 * 1024.0


def size_text(count: float) -> str:
    """A size such as "412.0 MiB"."""
    value = float(count)
    for unit in UNITS[:-1]:
        if abs(value) < 1024:
            return "%d B" % value if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {UNITS[-1]}"


def cut(name: str, most: int = 60) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


# --- PNG, by matplotlib ---------------------------------------------------------------------------


def save(figure: Any, path: str) -> None:
    figure.savefig(path, dpi=120, bbox_inches="tight")


def new_figure(rows: int, height: float) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, height * rows))
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, 1, row + 1) for row in range(rows)]
    return figure, axes


def timeline_png(data: Data, path: str) -> None:
    figure, axes = new_figure(len(data["timelines"]), 3.4)
    for axis, timeline in zip(axes, data["timelines"]):
        for curve, colour in zip(timeline["curves"], COLOURS):
            mebibytes = [value / MIB for value in curve["bytes"]]
            axis.plot(timeline["seconds"], mebibytes, label=curve["name"], color=colour, lw=1.2)
        axis.set_title(timeline["name"], loc="left", fontsize=10)
        axis.set_ylabel("MiB")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.legend(loc="upper left", fontsize=8)
    axes[-1].set_xlabel("seconds")
    save(figure, path)


def heatmap_png(data: Data, path: str) -> None:
    rows = data["heat"]
    figure, axes = new_figure(1, 1.2 + 0.3 * len(rows))
    seconds, grid = heat_grid(rows)
    image = axes[0].imshow(
        [[value / MIB for value in line] for line in grid],
        aspect="auto",
        interpolation="nearest",
        cmap="viridis",
        extent=(seconds[0], max(seconds[-1], seconds[0] + 1e-9), len(rows) - 0.5, -0.5),
    )
    axes[0].set_yticks(range(len(rows)))
    axes[0].set_yticklabels([cut(row["name"], 48) for row in rows], fontsize=8)
    axes[0].set_xlabel("seconds")
    figure.colorbar(image, label="MiB")
    save(figure, path)


def functions_png(data: Data, path: str) -> None:
    rows = data["functions"][::-1]
    figure, axes = new_figure(1, 1.2 + 0.3 * len(rows))
    positions = range(len(rows))
    peaks = [row["peak_bytes"] / MIB for row in rows]
    ends = [row["end_bytes"] / MIB for row in rows]
    axes[0].barh(positions, peaks, color=COLOURS[0], alpha=0.35, label="peak")
    axes[0].barh(positions, ends, color=COLOURS[0], height=0.4, label="in the end")
    axes[0].set_yticks(list(positions))
    axes[0].set_yticklabels([cut(row["name"], 48) for row in rows], fontsize=8)
    axes[0].set_xlabel("MiB")
    axes[0].legend(loc="lower right", fontsize=8)
    save(figure, path)


def heat_grid(rows: list[Data]) -> tuple[list[float], list[list[float]]]:
    """All rows on one time axis: each row keeps its value until its own next sample."""
    seconds = sorted({second for row in rows for second in row["seconds"]})
    grid = []
    for row in rows:
        line, index, value = [], 0, 0.0
        for second in seconds:
            while index < len(row["seconds"]) and row["seconds"][index] <= second:
                value = row["bytes"][index]
                index += 1
            line.append(value)
        grid.append(line)
    return seconds, grid


# --- HTML: a drawing (SVG) in a page that loads nothing --------------------------------------------

WIDTH, LEFT, TOP = 1000, 90, 26


def text_svg(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def curves_svg(timeline: Data) -> str:
    height = 260
    seconds = timeline["seconds"]
    highest = max(max(curve["bytes"], default=0) for curve in timeline["curves"]) or 1
    begin, span = seconds[0], (seconds[-1] - seconds[0]) or 1
    parts = [text_svg(LEFT, 16, timeline["name"])]
    for step in range(5):
        y = TOP + height * (1 - step / 4)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(text_svg(LEFT - 6, y + 4, size_text(highest * step / 4), "end"))
    for number, (curve, colour) in enumerate(zip(timeline["curves"], COLOURS)):
        points = " ".join(
            f"{LEFT + (WIDTH - LEFT) * (second - begin) / span:.1f},"
            f"{TOP + height * (1 - value / highest):.1f}"
            for second, value in zip(seconds, curve["bytes"])
        )
        label = f"{curve['name']}, at most {size_text(max(curve['bytes'], default=0))}"
        parts.append(f'<polyline points="{points}" stroke="{colour}"/>')
        x = LEFT + 12 + 280 * number
        parts.append(f'<rect x="{x}" y="{TOP + 6}" width="12" height="12" fill="{colour}"/>')
        parts.append(text_svg(x + 18, TOP + 17, label))
    parts.extend(values_svg(timeline, height))
    bottom = TOP + height + 18
    parts.append(text_svg(LEFT, bottom, f"{begin:.1f} s"))
    parts.append(text_svg(WIDTH, bottom, f"{seconds[-1]:.1f} s", "end"))
    return drawing(bottom + 8, parts)


def values_svg(timeline: Data, height: float) -> Iterator[str]:
    """Invisible columns over the curves; their tooltips show the values at that moment."""
    seconds = timeline["seconds"]
    every = column_step(len(seconds))
    span = (seconds[-1] - seconds[0]) or 1
    at = [LEFT + (WIDTH - LEFT) * (second - seconds[0]) / span for second in seconds[::every]]
    for number, (left, right) in enumerate(zip(at, at[1:] + [WIDTH])):
        moment = number * every
        values = [
            f"{curve['name']}: {size_text(curve['bytes'][moment])}" for curve in timeline["curves"]
        ]
        label = "\n".join([f"{seconds[moment]:.1f} s", *values])
        yield (
            f'<rect x="{left:.1f}" y="{TOP}" width="{max(right - left, 0.1):.1f}" height="{height}"'
            f' fill="transparent"><title>{escape(label)}</title></rect>'
        )


def column_step(moments: int) -> int:
    """Samples per column, so that a drawing has at most 200 columns."""
    return max(1, -(-moments // 200))


def heat_svg(rows: list[Data]) -> str:
    left = 330
    seconds, grid = heat_grid(rows)
    every = column_step(len(seconds))
    highest = max(max(line) for line in grid) or 1
    columns = range(0, len(seconds), every)
    width = (WIDTH - left) / len(columns)
    parts = []
    for number, (row, line) in enumerate(zip(rows, grid)):
        y = TOP + 20 * number
        parts.append(text_svg(left - 6, y + 14, cut(row["name"], 48), "end"))
        for column, at in enumerate(columns):
            value = max(line[at : at + every])
            label = f"{row['name']}\n{seconds[at]:.1f} s: {size_text(value)}"
            parts.append(
                f'<rect x="{left + width * column:.1f}" y="{y}" width="{width + 0.3:.1f}" height="18"'
                f' fill="{COLOURS[0]}" fill-opacity="{value / highest:.3f}">'
                f"<title>{escape(label)}</title></rect>"
            )
    bottom = TOP + 20 * len(rows) + 16
    parts.append(text_svg(left, bottom, f"{seconds[0]:.1f} s"))
    parts.append(text_svg(WIDTH, bottom, f"{seconds[-1]:.1f} s", "end"))
    return drawing(bottom + 8, parts)


def bars_svg(rows: list[Data]) -> str:
    left = 330
    highest = max(row["peak_bytes"] for row in rows) or 1
    parts = []
    for number, row in enumerate(rows):
        y = TOP + 24 * number
        label = f"peak {size_text(row['peak_bytes'])}, in the end {size_text(row['end_bytes'])}"
        parts.append(text_svg(left - 6, y + 14, cut(row["name"], 48), "end"))
        for key, opacity, inset in (("peak_bytes", 0.35, 0), ("end_bytes", 1, 5)):
            width = (WIDTH - left - 170) * row[key] / highest
            parts.append(
                f'<rect x="{left}" y="{y + inset}" width="{max(width, 1):.1f}"'
                f' height="{18 - 2 * inset}" fill="{COLOURS[0]}" fill-opacity="{opacity}">'
                f"<title>{escape(row['name'])}\n{escape(label)}</title></rect>"
            )
        end = left + (WIDTH - left - 170) * row["peak_bytes"] / highest
        parts.append(text_svg(end + 6, y + 14, size_text(row["peak_bytes"])))
    return drawing(TOP + 24 * len(rows) + 8, parts)


def drawing(height: float, parts: list[str]) -> str:
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH + 10} {height:.0f}" role="img">\n{body}\n</svg>'


def html_page(data: Data, kind: str) -> str:
    if kind == "timeline":
        drawn = "\n".join(curves_svg(timeline) for timeline in data["timelines"])
    elif kind == "heatmap":
        drawn = heat_svg(data["heat"])
    else:
        drawn = bars_svg(data["functions"])
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>{escape(kind)}: {escape(data["title"])}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 2em auto; max-width: 1100px }}
svg {{ width: 100%; font-size: 12px }}
svg text {{ fill: currentColor }}
polyline {{ fill: none; stroke-width: 1.5 }}
.grid {{ stroke: #8884 }}
</style>
<h1>{escape(kind)}</h1>
<p>{escape(data["title"])}</p>
{drawn}
</html>
"""


# --------------------------------------------------------------------------------------------------

PNG = {"timeline": timeline_png, "heatmap": heatmap_png, "functions": functions_png}


def kinds_of(data: Data) -> list[str]:
    """The kinds of drawing that have data. Removes the empty rows from `data`."""
    timelines = [timeline for timeline in data["timelines"] if timeline["seconds"]]
    heat = [row for row in data["heat"] if row["seconds"]]
    data["timelines"], data["heat"] = timelines, heat
    found = {"timeline": timelines, "heatmap": heat, "functions": data["functions"]}
    return [kind for kind, rows in found.items() if rows]


def has_matplotlib() -> bool:
    try:
        import matplotlib  # noqa: F401
    except Exception:  # a broken installation counts as none
        return False
    return True


def draw(data: Data, directory: str) -> dict[str, Any]:
    """Draws every kind that has data. Returns {"files": names, "missing": what was left out, or None}."""
    os.makedirs(directory, exist_ok=True)
    files, missing = [], None
    kinds = kinds_of(data)
    png = has_matplotlib()
    for kind in kinds:
        if png:
            PNG[kind](data, os.path.join(directory, f"{kind}.png"))
            files.append(f"{kind}.png")
        with open(os.path.join(directory, f"{kind}.html"), "w", encoding="utf-8") as file:
            file.write(html_page(data, kind))
        files.append(f"{kind}.html")
    if not png:
        missing = "no PNG: matplotlib is not installed for " + sys.executable
    return {"files": files, "missing": missing}


if __name__ == "__main__":
    json.dump(draw(json.load(sys.stdin), sys.argv[1]), sys.stdout)
