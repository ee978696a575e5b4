"""`oomrec attach`: the mappings that a program had before are one holder, as far as they are its own."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from attach_targets import Told, live, needs_tracing, shown
from pythons import find_python

pytestmark = needs_tracing

MIB = 1 << 20


@pytest.fixture
def had_mappings(running):
    return Told(running("had_mappings"))


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_mappings_are_told_from_blocks_arenas_and_stacks(oomrec, had_mappings, mode):
    assert oomrec("attach", "--mode", mode, had_mappings.pid).exit_code == 0
    assert live(oomrec, had_mappings, "map") == 40 * MIB, "of 4; not those that it may not write"
    assert live(oomrec, had_mappings, "heap") == pytest.approx(240 * MIB, rel=0.01)

    bundle = shown(oomrec, had_mappings)
    before = [row for row in bundle["holders"] if row["space"] == "map"]
    assert [row["bytes"] for row in before] == [40 * MIB]
    assert before[0]["stack"][0]["function"] == "[before attaching]"
    assert any("private anonymous mappings by their sizes" in note for note in bundle["notes"])


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_what_is_unmapped_later_is_subtracted(oomrec, had_mappings, mode):
    assert oomrec("attach", "--mode", mode, had_mappings.pid).exit_code == 0
    had_mappings("u 0")
    assert live(oomrec, had_mappings, "map") == 30 * MIB
    had_mappings("h 1")
    assert live(oomrec, had_mappings, "map") == 25 * MIB
    had_mappings("f 2")  # a block of malloc's: no mapping of the program's
    had_mappings("m 0")
    assert live(oomrec, had_mappings, "map") == 35 * MIB
    assert live(oomrec, had_mappings, "heap") == pytest.approx(200 * MIB, rel=0.01)
    rows = [row["bytes"] for row in shown(oomrec, had_mappings)["holders"] if row["space"] == "map"]
    assert sorted(rows) == [10 * MIB, 25 * MIB]


def test_a_limit_counts_them(oomrec, had_mappings):
    oomrec("attach", "--limit", "285M", had_mappings.pid, exits=0)
    had_mappings("m 0")  # the program ends, as its mapping is refused
    assert had_mappings.process.wait(timeout=300) != 0
    newest = oomrec.json("ls", "--all")
    assert newest and "soft_limit" in str(newest)


def test_a_second_recording_begins_with_what_is_left(oomrec, had_mappings):
    for _ in range(3):
        assert oomrec("attach", had_mappings.pid).exit_code == 0
        assert live(oomrec, had_mappings, "map") == 40 * MIB
        assert oomrec("attach", "--detach", had_mappings.pid).exit_code == 0
    had_mappings("u 3")
    assert oomrec("attach", had_mappings.pid).exit_code == 0
    assert live(oomrec, had_mappings, "map") == 30 * MIB


def test_fragmentation_does_not_take_old_blocks_for_live_ones(oomrec, had_mappings):
    """Which of the blocks from before have mappings of their own is not known."""
    assert oomrec("attach", "--mode", "exact", had_mappings.pid).exit_code == 0
    run = oomrec("fragmentation", had_mappings.pid)
    assert "at most: blocks from before attaching may have mappings of their own" in run.stdout
    assert re.search(r"of it free +0 B +at least 0\.0 %", run.stdout), str(run)
    said = " ".join(run.stdout.split())
    assert "addresses of blocks from before `oomrec attach` are not recorded" in said
    assert oomrec.json("fragmentation", had_mappings.pid)["heap"]["free_runs"] is None


PYTHON = """
import sys
kept = [object() for _ in range(400_000)]
print("ready", flush=True)
for line in sys.stdin:
    kept.clear()
    print("done", flush=True)
"""


def arena_bytes(interpreter: str) -> int:
    """Of the same objects. A process whose allocator was replaced does not print them."""
    program = PYTHON.partition("print")[0] + "sys._debugmallocstats()"
    printed = subprocess.run([interpreter, "-c", program], capture_output=True, text=True).stderr
    found = re.search(r"([\d,]+) arenas \* ([\d,]+) bytes/arena", printed)
    return int(found[1].replace(",", "")) * int(found[2].replace(",", ""))


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_the_arenas_of_pythons_small_objects_are_mappings(oomrec, plain, version):
    interpreter = find_python(version) or pytest.skip(f"no Python {version} here")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    program = Told(plain.start(interpreter, "-c", PYTHON, **pipes))
    assert program.answer() == "ready"
    arenas = arena_bytes(interpreter)
    assert oomrec("attach", program.pid).exit_code == 0
    before = live(oomrec, program, "map")
    assert arenas - MIB <= before <= arenas + 2 * MIB
    program("free")
    assert live(oomrec, program, "map") < before - 4 * MIB


def test_the_pause_of_a_large_program(oomrec, plain):
    """A thousand mappings and many large blocks: each is looked at."""
    program = Told(
        plain.start(
            sys.executable,
            "-c",
            "import mmap\n"
            "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n"
            "kept = [mmap.mmap(-1, 300_000, flags) for _ in range(1000)]\n"
            "for one in kept: one[:] = bytes(300_000)\n"
            "blocks = [bytearray(200_000) for _ in range(3000)]\n"
            "print('ready', flush=True)\ninput()\n",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
    )
    assert program.answer() == "ready"
    said = oomrec.json("attach", program.pid)
    print(f"paused for {said['paused_ns'] / 1e6:.1f} ms")
    mapped = live(oomrec, program, "map")
    assert mapped == pytest.approx(1000 * 303_104, rel=0.1)
