"""Adds up test results: python3 tests/summary.py FILE… → "N passed, N failed, N skipped".

A .json file is meson's testlog, a .xml file pytest's JUnit report. One that is missing, empty or
not readable is a failure: tests that did not run have not passed. Exits with 1 when any failed.
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


def of_pytest(path):
    counts = Counter()
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        failed = int(suite.get("failures")) + int(suite.get("errors"))
        skipped = int(suite.get("skipped"))
        counts.update(
            passed=int(suite.get("tests")) - failed - skipped, failed=failed, skipped=skipped
        )
    return counts


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
