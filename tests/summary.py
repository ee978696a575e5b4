"""Adds up test results: python3 tests/summary.py FILE… → "N passed, N failed, N skipped".

A .json file is meson's testlog, a .xml file pytest's JUnit report. One that is missing, empty or
not readable is a failure: tests that did not run have not passed. Exits with 1 when any failed.

Real kills on a busy machine can be late: scripts/test runs what failed once more, alone. A report
NAME-again.xml beside NAME.xml is of that second run; what passed there is named, and has passed.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

MESON_RESULTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def of_meson(path):
    return Counter(
        MESON_RESULTS.get(json.loads(line)["result"], "failed")
        for line in path.read_text().splitlines()
    )


def outcomes(path):
    """Test → how it ended."""
    words = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    found = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        ends = [words[part.tag] for part in case if part.tag in words]
        name = f"{case.get('classname')}::{case.get('name')}"
        found[name] = "failed" if "failed" in ends else ends[0] if ends else "passed"
    return found


def of_pytest(path):
    found = outcomes(path)
    again = path.with_name(path.stem + "-again.xml")
    for name, outcome in (outcomes(again) if again.exists() else {}).items():
        if outcome == "passed" and found.get(name) == "failed":
            print(f"passed only alone: {name}")
            found[name] = outcome
    return Counter(found.values())


def results_of(path):
    try:
        counts = of_meson(path) if path.suffix == ".json" else of_pytest(path)
    except (OSError, ValueError, KeyError, TypeError, ElementTree.ParseError) as error:
        print(f"{path}: no results: {error}", file=sys.stderr)
        return Counter(failed=1)
    if sum(counts.values()) == 0:
        print(f"{path}: no test has run", file=sys.stderr)
        return Counter(failed=1)
    return counts


total = sum(map(results_of, map(Path, sys.argv[1:])), Counter())
print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
sys.exit(1 if total["failed"] else 0)
