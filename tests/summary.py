"""Adds up test results: python3 tests/summary.py FILE… → "N passed, N failed, N skipped".

A .json file is meson's testlog, a .xml file pytest's JUnit report. A missing, empty or unreadable
file is a failure, because tests that did not run have not passed. Exits with 1 after any failure.

Each failure is named above that line. scripts/test reruns failed integration tests alone, and writes
NAME-again.xml beside NAME.xml. The second result helps to find the cause, but a test that passes
only alone still counts as failed.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

MESON_RESULTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
ALONE = {
    "passed": " (failed beside others, passed alone)",
    "failed": " (failed beside others, failed alone)",
}


def of_meson(path: Path) -> list[tuple[str, str]]:
    """Tests and their outcomes."""
    results = map(json.loads, path.read_text().splitlines())
    return [
        (f"{path.stem}: {result['name']}", MESON_RESULTS.get(result["result"], "failed"))
        for result in results
    ]


def of_pytest(path: Path) -> list[tuple[str, str]]:
    words = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    found = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        ends = [words[part.tag] for part in case if part.tag in words]
        module = case.get("classname", "").replace(".", "/")
        name = f"{module}.py::{case.get('name')}" if module else case.get("name")
        # A test that fails in its body and in its teardown is listed twice.
        found[name] = "failed" if "failed" in ends else ends[0] if ends else "passed"
    return list(found.items())


def of_second_run(path: Path) -> dict[str, str]:
    again = path.with_name(path.stem + "-again.xml")
    return dict(of_pytest(again)) if again.exists() else {}


def problems_and_counts(path: Path) -> tuple[list[str], Counter]:
    try:
        outcomes = of_meson(path) if path.suffix == ".json" else of_pytest(path)
        alone = of_second_run(path)
    except (OSError, ValueError, KeyError, TypeError, ElementTree.ParseError) as error:
        return [f"{path}: no results: {error}"], Counter(failed=1)
    if not outcomes:
        return [f"{path}: no test has run"], Counter(failed=1)
    failed = [name for name, outcome in outcomes if outcome == "failed"]
    counts = Counter(outcome for _, outcome in outcomes)
    return [name + ALONE.get(alone.get(name), "") for name in failed], counts


problems, total = [], Counter()
for file in map(Path, sys.argv[1:]):
    of_file, counts = problems_and_counts(file)
    problems += of_file
    total += counts
for problem in problems:
    print(f"failed: {problem}")
print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
sys.exit(1 if total["failed"] else 0)
