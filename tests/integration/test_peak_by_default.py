"""A program that ended well has freed most of its memory: the views open at its peak."""

from __future__ import annotations

import json

import pytest
from report_page import Page
from sizes import held_by

MIB = 1 << 20
FREES = """
import sys

def load():
    return bytearray(200 << 20)

loaded = load()
del loaded
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def ended_well(oomrec, python):
    run = oomrec("run", "--dump-at-exit", "--", python(), "-c", FREES, "0", exits=0)
    return run.only_bundle()


def test_show(oomrec, ended_well):
    shown = oomrec.json("show", ended_well)
    assert shown["holders_at"] == "peak" and held_by(shown, "load") >= 200 * MIB
    page = oomrec("show", ended_well).stdout
    assert "(at the peak of each space; --at end: what was left)" in page
    shown = oomrec.json("show", "--at", "end", ended_well)
    assert shown["holders_at"] == "end" and held_by(shown, "load") == 0
    assert "at the peak" not in oomrec("show", "--at", "end", ended_well).stdout


def test_tree(oomrec, ended_well):
    tree = oomrec.json("tree", ended_well)
    assert tree["at"] == "peak" and tree["root"]["bytes"] > 200 * MIB
    assert "at the peak" in oomrec("tree", ended_well).stdout
    tree = oomrec.json("tree", "--at", "end", ended_well)
    assert tree["at"] == "end" and tree["root"]["bytes"] < 30 * MIB


def test_report(oomrec, ended_well):
    assert Page(oomrec("report", "-o", "-", ended_well).stdout).json["meta"]["moment"] == "peak"


def test_export(oomrec, ended_well):
    def folded(*options):
        lines = oomrec("export", "--format", "folded", *options, ended_well).stdout.splitlines()
        return sum(int(line.rpartition(" ")[2]) for line in lines)

    assert folded() > 200 * MIB > 30 * MIB > folded("--at", "end")
    speedscope = json.loads(oomrec("export", "--format", "speedscope", ended_well).stdout)
    opened = speedscope["profiles"][speedscope["activeProfileIndex"]]
    assert opened["name"].startswith("at the peak")


def test_a_failure_opens_at_the_end(oomrec, python):
    """The control: what was live at the failure is what matters then."""
    failed = FREES + "\ndef fail():\n    bytearray(1 << 46)\n"
    failed = failed.replace("sys.exit(", "bytearray(1 << 46); sys.exit(")
    run = oomrec("run", "--dump-at-exit", "--", python(), "-c", failed, "0")
    bundle = run.bundles_for("allocation_failed")[0]
    assert oomrec.json("show", bundle)["holders_at"] == "end"
    assert oomrec.json("tree", bundle)["at"] == "end"
    assert Page(oomrec("report", "-o", "-", bundle).stdout).json["meta"]["moment"] == "end"


# The same line fails again and again. The last time ends the program, and that gets its bundle at
# the exit: within ten seconds of the first, the kind is only counted.
FAILS_LATE = """
def grow():
    held = []
    while True:
        held.append(bytearray(b"x" * (1 << 20)))

for last in (False, False, True):
    try:
        grow()
    except MemoryError:
        if last:
            raise
"""


def test_a_failure_that_is_told_when_most_is_freed(oomrec, python):
    run = oomrec("run", "--limit", "200M", "--", python(), "-c", FAILS_LATE)
    assert run.exit_code == 1 and len(run.bundles()) == 2, str(run)
    shown = oomrec.json("show")
    assert shown["outcome"] == "exited 1" and shown["holders_at"] == "peak", shown["holders_at"]
    assert sum(h["bytes"] for h in shown["holders"] if "grow" in str(h["stack"])) > 150 * MIB
    first = oomrec.json("show", run.bundles()[0])
    assert first["outcome"] == "recovered" and first["holders_at"] == "end"
