"""What a recursive function holds at all depths is one holder, in `show`, in the line at the failure and in `leaks`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import distinct_versions
from pythons import PYTHON_VERSIONS
from sizes import take_up

# Each depth holds less than the one block of another line; all of them more.
IN_PYTHON = """
import sys
kept = []
def build(depth):
    kept.append(bytearray(50_000))
    if depth % 2:
        build(depth - 1)
    elif depth:
        build(depth - 1)
def visit(depth):
    kept.append(bytearray(40_000))
    if depth:
        enter(depth - 1)
def enter(depth):
    return visit(depth)
def load():
    kept.append(bytearray(1_000_000))
    build(59)
    visit(49)
load()
bytearray(1 << 46)
"""


# Each way through the tree is a stack: thousands of small holders.
A_TREE = """
def build(depth, ways):
    made = [bytearray(600)]
    for at in range(2):
        if depth:
            made.append(build(depth - 1, ways * 2 + at) if at else build(depth - 1, ways * 2))
    return made
held = [build(12, 1) for _ in range(3)]
bytearray(1 << 46)
"""


def holders_by_line(shown: dict) -> dict[int, dict]:
    """The holders of the program's lines, by the number of the innermost."""
    lines = {}
    for holder in shown["holders"]:
        line = next(
            (frame for frame in holder["stack"] if "grows.py" in (frame["file"] or "")), None
        )
        if line and holder["bytes"] > 100_000:
            assert line["line"] not in lines, "two holders of one line"
            lines[line["line"]] = holder
    return lines


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_in_python(preload, oomrec, python, tmp_path, version):
    (tmp_path / "grows.py").write_text(IN_PYTHON)
    run = preload(python(version), "grows.py", env={"OOMREC_MODE": "exact"})
    found = holders_by_line(oomrec.json("show", run.only_bundle()))
    built, visited, loaded = found[5], found[11], found[17]
    assert 60 * 50_000 <= built["bytes"] < 60 * 51_000 and built["depths"] == 60
    # At depth 0 there is no call of enter() on the stack: that block is another holder.
    assert 49 * 40_000 <= visited["bytes"] < 49 * 41_000 and visited["depths"] == 49
    assert 1_000_000 <= loaded["bytes"] < 1_010_000 and loaded["depths"] == 1
    # With the small objects that the line makes, which are sampled.
    said = re.search(r"holder: (?:about )?(\S+) MiB in \d+ blocks, grows.py:5 build", run.stderr)
    assert said and float(said[1]) == pytest.approx(built["bytes"] / 2**20, abs=0.06), str(run)
    page = oomrec("show", run.only_bundle()).stdout
    assert re.search(
        r"\n +1 +(about )?2\.\d MiB .* at various depths of a recursion\n.*:5 build\n", page
    ), page


IN_C = """
#include <stdlib.h>
#include <string.h>
static void* fill(size_t bytes) { return memset(malloc(bytes), 1, bytes); }
void* build(int depth) {
  void** node = fill(50000);
  if (depth) node[0] = depth % 2 ? build(depth - 1) : NULL;
  if (depth && !node[0]) node[1] = build(depth - 1);
  return node;
}
void* odd(int);
void* even(int depth) {
  void** node = fill(40000);
  if (depth) node[0] = odd(depth - 1);
  return node;
}
void* odd(int depth) {
  void** node = fill(40000);
  if (depth) node[0] = even(depth - 1);
  return node;
}
void* (*volatile call)(int);
static void* through(void* (*function)(int), int depth) { call = function; return call(depth); }
void* leaf(int bytes) { return fill(bytes); }
void* first(int depth) { return through(leaf, 300000 + depth); }
void* second(int depth) { return through(leaf, 300000 + depth); }
int main(void) {
  void* volatile one = fill(1000000);
  build(59), even(49);
  through(first, 1), through(second, 2);
  void* volatile refused = malloc((size_t)1 << 46);  /* volatile: or gcc 16 calls nothing */
  return one != NULL && refused != NULL;
}
"""


@pytest.fixture
def in_c(tmp_path):
    (tmp_path / "grows.c").write_text(IN_C)
    flags = ["-g", "-O1", "-w", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-icf"]
    subprocess.run(["cc", *flags, "-o", "grows", "grows.c"], cwd=tmp_path, check=True)
    return tmp_path / "grows"


def test_in_native_code(preload, oomrec, in_c):
    run = preload(in_c, env={"OOMREC_MODE": "exact"})
    shown = oomrec.json("show", run.only_bundle())
    holders = [
        (holder["bytes"], holder["depths"], [frame["function"] for frame in holder["stack"]])
        for holder in shown["holders"]
    ]
    assert take_up(holders[0][0], 50_000, 60) and holders[0][1] == 60, holders[0]
    assert holders[0][2][:2] == ["fill", "build"]
    in_turn = [holder for holder in holders if holder[2][1] in ("even", "odd")]
    assert take_up(sum(holder[0] for holder in in_turn), 40_000, 50)
    assert len(in_turn) <= 4, in_turn
    # Functions that a common one calls in turn are no recursion: their callers stay apart.
    leaves = [holder for holder in holders if holder[2][1] == "leaf"]
    assert all(take_up(holder[0], 300_001) and holder[1] == 1 for holder in leaves), leaves
    assert len(leaves) == 2
    assert {holder[2][3] for holder in leaves} == {"first", "second"}
    # Where functions have no names only equal calls are one: every second depth.
    said = re.search(r"largest holder: (\S+) MiB in (\d+) blocks, fill in grows", run.stderr)
    assert said and 28 <= int(said[2]) <= 31, str(run)


LEAKS = """
import sys, time
kept = []
def walk(depth):
    if depth:
        return walk(depth - 1)
    kept.append(bytearray(100_000))
for i in range(150):
    walk(i % 50)
    time.sleep(0.02)
print("grown", flush=True)
sys.stdin.read()
"""


def test_a_leak_at_various_depths_is_one(preload, oomrec):
    process = preload.start(
        sys.executable, "-c", LEAKS, env={"OOMREC_MODE": "exact"}, stdin=subprocess.PIPE
    ).once("grown")
    [leak] = oomrec("leaks", "--json", process.pid).json()["leaks"]
    assert leak["growth_bytes"] > 5_000_000
    assert leak["stack"][0]["kind"] == "native" and "walk" in [
        frame["function"] for frame in leak["stack"]
    ]


def test_a_tree_of_many_ways_is_one(preload, oomrec, tmp_path):
    (tmp_path / "grows.py").write_text(A_TREE)
    run = preload(sys.executable, "grows.py", env={"OOMREC_MODE": "exact"})
    assert oomrec.json("show", run.only_bundle())["recording"]["stacks"] > 4000
    said = re.search(r"largest holder: (about .+ blocks), grows.py:3 build", run.stderr)
    assert said, run.stderr
    assert re.search(r"^ *1  (.+ blocks) ", oomrec("show").stdout, re.MULTILINE)[1] == said[1]
    assert int(said[1].split()[-2].replace(",", "")) > 3 * 8191  # and the small objects
