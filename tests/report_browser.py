"""Helpers of tests/integration/report: what a page of the report shows, and how it is changed."""

import json
import re

from report_data import MIB

# Headless and under load, beside other tests: only test_100000_stacks asserts speed.
PATIENCE_MS = 60_000
VIEWS = {
    "overview": "What killed it",
    "timeline": "Timeline",
    "flame": "Flame graph",
    "table": "Table",
    "leaks": "Leaks",
    "fragmentation": "Fragmentation",
    "processes": "Processes",
    "environment": "Environment",
}


def settled(page):
    """Waits for a frame, after which everything is resized and redrawn."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def reads(page, selector: str, pattern: str):
    """Waits until it does, without wait_for_function: the page's policy forbids eval."""
    page.locator(selector).filter(has_text=re.compile(pattern)).wait_for()


def address(page) -> str:
    """The page's location after the #, read in the page, because page.url lags."""
    return page.evaluate("() => window.location.hash").removeprefix("#")


def choice(page, label: str):
    return page.locator(f'select[aria-label="{label}"]')


def change(page, **state):
    page.evaluate("(state) => report.change(state)", state)
    settled(page)


def tree(page) -> dict:
    """The flame graph's tree by name: [bytes, count, {name: […], …}]. Of equal names the largest."""
    text = page.evaluate(
        """() => {
          const { data, views } = report;
          const { tree } = views.flame.canvas;
          const walk = (node) => {
            const below = tree.children(node, "bytes").map((child) => [report.frameName(data, tree.location[child]), walk(child)]);
            return [tree.bytes[node], tree.count[node], Object.fromEntries(below.reverse())];
          };
          return JSON.stringify(walk(0));
        }"""
    )
    return json.loads(text)


def total_mib(page) -> float:
    return tree(page)[0] / MIB


def box_of(page, name: str) -> dict:
    """The middle of a frame's box, in the window."""
    return page.evaluate(
        """(name) => {
          const { canvas } = report.views.flame;
          for (const [depth, level] of canvas.levels.entries()) {
            for (const box of level) {
              if (box.node < 0 || report.frameName(report.data, canvas.tree.location[box.node]) !== name) continue;
              const at = canvas.element.getBoundingClientRect();
              return { x: at.left + box.x + box.width / 2,
                y: at.top + (depth + 0.5) * canvas.rowHeight - canvas.element.scrollTop };
            }
          }
        }""",
        name,
    )


LEAK = """\
kept = []
def make_batch():
    scratch = [bytes(100_000 + n) for n in range(10)]
    return bytearray(3 << 20)
while True:
    kept.append(make_batch())
"""


def tree_bytes(page) -> float:
    return page.evaluate(
        "report.chosen(report.data, report.state).weights.bytes.reduce((a, b) => a + b)"
    )
