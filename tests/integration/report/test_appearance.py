"""What a reader sees at any size, in any colours, and in a frame of another page."""

import html
import itertools
import math
import re

import pytest
import report_data
from report_browser import VIEWS, change, choice


def test_tabs_by_keyboard(show):
    page = show(report_data.small())
    page.locator("#tab-overview").focus()
    seen = []
    for _ in VIEWS:
        page.keyboard.press("ArrowRight")
        seen.append(page.evaluate("document.activeElement.id"))
    assert seen == [f"tab-{view}" for view in [*list(VIEWS)[1:], "overview"]]
    page.keyboard.press("End")
    assert page.locator("#tab-environment").get_attribute("aria-selected") == "true"


def linear_rgb(colour: str) -> list[float]:
    """Linear RGB of the browser's rgb(…)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        red, green, blue = linear_rgb(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted([luminance(first), luminance(second)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_dark_and_light_have_enough_contrast(show):
    """Texts have the contrast that WCAG requires (4.5), in both themes and after switching."""
    grounds = {}
    for dark in (False, True):
        page = show(report_data.small(), "view=flame", dark=dark)
        colour = lambda name, page=page: page.evaluate("(name) => report.colour(name)", name)  # noqa: E731
        for ground in ["paper", "ground"]:
            for ink in ["ink", "quiet", "accent", "alarm", "mark"]:
                assert contrast(colour(ink), colour(ground)) >= 4.5, (dark, ink, ground)
        for hue in [*range(8), "other"]:
            assert contrast(colour("frame-ink"), colour(f"hue-{hue}")) >= 4.5, (dark, hue)
        grounds[dark] = colour("paper")
        choice(page, "Theme").select_option("light" if dark else "dark")
        assert colour("paper") != grounds[dark]
        # The canvas follows.
        drawn = page.evaluate("report.views.flame.canvas.palette.paper")
        assert drawn == colour("paper")
    assert grounds[False] != grounds[True]


# Linear RGB as seen without one kind of cones (Machado, Oliveira, Fernandes 2009).
EYES = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no middle": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no short": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def seen(colour: str, eyes) -> list[float]:
    """The colour in CIELAB, where distance is perceived difference."""
    linear = linear_rgb(colour)
    red, green, blue = (
        max(0, min(1, sum(weight * part for weight, part in zip(row, linear)))) for row in eyes
    )
    xyz = [
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0888,
    ]
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_parts_are_distinct_for_colour_blind_readers(show, dark):
    page = show(report_data.small(), "view=flame", dark=dark)
    colours = page.evaluate("report.views.flame.canvas.palette.grounds")
    assert len(colours) == 9
    for name, eyes in EYES.items():
        for first, second in itertools.combinations(colours, 2):
            # 2.3 is just noticeable side by side.
            assert math.dist(seen(first, eyes), seen(second, eyes)) > 12, (name, first, second)


# The number of words in table cells that wrap onto several lines.
TORN_WORDS = """() => {
  let torn = 0;
  for (const cell of document.querySelectorAll(".scrolls td, .scrolls th")) {
    const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = text.nextNode(); node; node = text.nextNode()) {
      for (const word of node.textContent.matchAll(/\\S+/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set(Array.from(range.getClientRects(), (rect) => rect.top)).size > 1) ++torn;
      }
    }
  }
  return torn;
}"""


@pytest.mark.parametrize(
    ("size", "scale"),
    [(size, 1) for size in [(420, 800), (600, 800), (700, 800), (800, 600), (1280, 800)]]
    + [((640, 400), 2)],
    ids=lambda value: str(value).replace(", ", "x"),
)
def test_nothing_is_cut_off_in_a_small_window(show, size, scale):
    """At 200 % a window of 1280 × 800 is 640 × 400 to draw in. Tables scroll inside themselves."""
    made = report_data.small()
    process = {**made.json["processes"][0], "program": "a_worker_process", "bundle": "oom_cpu_001"}
    made.json["processes"] += [{**process, "pid": 5000 + i} for i in range(3)]
    page = show(made, size=size, scale=scale)
    for view in VIEWS:
        change(page, view=view)
        wide = page.evaluate(
            "['html', 'main'].map((name) => document.querySelector(name))"
            ".map((part) => part.scrollWidth - part.clientWidth)"
        )
        assert wide == [0, 0], view
        assert page.evaluate(TORN_WORDS) == 0, view


def test_it_works_in_a_frame_of_a_notebook(show, template):
    """As %%oomrec shows it: a sandboxed document without its own address."""
    made = report_data.page(template, report_data.small(), view="flame")
    frame = f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(made)}"></iframe>'
    page = show(f"<!DOCTYPE html><html data-ready><title>notebook</title>{frame}</html>")
    (inside,) = page.frames[1:]
    inside.wait_for_selector("html[data-ready]", state="attached")
    inside.get_by_role("tab", name="Table").click()
    inside.locator('#panel[data-shows="table"]').wait_for()
    inside.get_by_role("tab", name="Flame graph").click()
    inside.locator('#panel[data-shows="flame"]').wait_for()
