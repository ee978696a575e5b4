"""`oomrec attach --objects`: what the interpreter itself counts, and nothing that the program could notice."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from attach_targets import needs_tracing
from conftest import distinct_versions
from pythons import PYTHON_VERSIONS, find_python
from schemas import check

pytestmark = needs_tracing


# Its classes would show that their code is run.
SCRIPT = """
import collections, json, sys, time
class Plain:
    def __init__(self): self.value = 1
class Slots:
    __slots__ = ("value",)
    def __init__(self): self.value = [1]
class Sized:
    def __sizeof__(self): print("its __sizeof__ was called", flush=True); return 10 ** 9
class Meta(type):
    def __getattribute__(cls, name):
        print("its metaclass was asked for", name, flush=True)
        return super().__getattribute__(name)
class OfMeta(metaclass=Meta):
    pass
kept = [Plain() for _ in range(1000)] + [Slots() for _ in range(2000)]
kept += [collections.OrderedDict(a=1) for _ in range(300)] + [Sized() for _ in range(7)]
kept += [OfMeta() for _ in range(9)] + [([i], {i: i}) for i in range(500)]
kept += [collections.deque([i] * 100) for i in range(50)] + [set(range(i)) for i in range(30)]
# Empty, and larger or smaller by the number of imports so far.
locks = [getattr(sys.modules["_frozen_importlib"], name, None) for name in ("_blocking_on", "_module_locks")]
def tally():
    found = {}
    for one in gc.get_objects():
        kind = type(one)
        module = type.__getattribute__(kind, "__module__")
        name = ("" if module == "builtins" else module + ".") + type.__getattribute__(kind, "__qualname__")
        row = found.setdefault(name, [0, 0])
        row[0] += 1
        row[1] += sys.getsizeof(one) if kind is not Sized and not any(one is each for each in locks) else 0
    return found
had = "gc" in sys.modules
modules = sorted(sys.modules)
print("ready", flush=True)
for line in sys.stdin:
    end = time.monotonic() + float(line)
    while time.monotonic() < end: pass
    print(json.dumps([had == ("gc" in sys.modules), modules == sorted(sys.modules), sys.exc_info()[0]]), flush=True)
    import gc
    print(json.dumps([tally(), gc.isenabled(), sum(one["collections"] for one in gc.get_stats()), sys.getrefcount(Plain)]), flush=True)
"""


@pytest.fixture
def serving(plain, tmp_path):
    def start(interpreter: str, script: str = SCRIPT) -> subprocess.Popen:
        (tmp_path / "holds.py").write_text(script)
        process = plain.start(
            interpreter, tmp_path / "holds.py", stdin=subprocess.PIPE, env={"PYTHONHASHSEED": "0"}
        ).once("ready")
        return process

    return start


def work(process: subprocess.Popen, seconds: float) -> None:
    process.tell(f"{seconds}\n")


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_the_types_have_what_the_interpreter_says(oomrec, plain, serving, version):
    interpreter = find_python(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} here")
    alone = serving(interpreter)
    work(alone, 0.5)
    process = serving(interpreter)
    work(process, 3)
    document = oomrec.json("attach", "--objects", process.pid)
    check("attach", document)
    objects = document["objects"]
    for one in (alone, process):
        assert json.loads(one.stdout.readline()) == [True, True, None], "modules, exception"
    expected = json.loads(alone.stdout.readline())
    found = json.loads(process.stdout.readline())
    different = {
        name: (found[0].get(name), expected[0].get(name))
        for name in {*found[0], *expected[0]}
        if found[0].get(name) != expected[0].get(name)
    }
    assert (different, found[1:]) == ({}, expected[1:]), (
        "counts, sizes, references, and how often it has collected"
    )
    tally = found[0]

    rows = {row["type"]: row for row in objects["rows"]}
    for name, count in {
        "__main__.Plain": 1000,
        "__main__.Slots": 2000,
        "__main__.Sized": 7,
        "__main__.OfMeta": 9,
        "collections.OrderedDict": 300,
        "collections.deque": tally["collections.deque"][0],
        "set": tally["set"][0],
        "function": tally["function"][0],
        "type": tally["type"][0],
    }.items():
        assert rows[name]["count"] == count, name
        if name != "__main__.Sized":
            assert rows[name]["bytes"] == tally[name][1], name
    assert rows["__main__.Sized"]["bytes"] < 1000
    # The script itself makes some between the two counts.
    for name in ("dict", "list", "tuple"):
        assert rows[name]["count"] == pytest.approx(tally[name][0], abs=20)
        assert rows[name]["bytes"] == pytest.approx(tally[name][1], abs=4000)
    assert objects["count"] == pytest.approx(sum(row[0] for row in tally.values()), abs=60)
    assert objects["types"] >= len(objects["rows"]) and not objects["is_partial"]
    assert sum(row["count"] for row in objects["rows"]) <= objects["count"]

    ended = plain.finish(process)
    assert ended.exit_code == 0 and ended.stdout == ended.stderr == "", "none of its code was run"


def test_counting_again_changes_no_count(oomrec, plain, serving):
    """No reference to an object or type is kept."""
    process = serving(find_python("3.11") or "python3")
    counts = []
    for _ in range(4):
        work(process, 1.5)
        document = oomrec.json("attach", "--objects", process.pid)
        process.stdout.readline()
        counts.append(json.loads(process.stdout.readline())[3])
        rows = {row["type"]: row["count"] for row in document["objects"]["rows"]}
        assert rows["__main__.Plain"] == 1000
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert len(set(counts)) == 1, counts
    assert plain.finish(process).exit_code == 0


def test_the_page(oomrec, serving):
    process = serving(find_python("3.11") or "python3")
    work(process, 2)
    run = oomrec("attach", "--objects", process.pid)
    assert run.exit_code == 0 and run.stderr == "", str(run)
    lines = run.stdout.splitlines()
    assert lines[0].startswith(f"process {process.pid} is recorded now")
    assert "which Python's garbage collector tracks" in lines[2]
    assert any(line.split()[-2:] == ["2,000", "__main__.Slots"] for line in lines), run.stdout
    assert "other types)" in run.stdout


def test_a_program_that_waits(oomrec, plain, serving):
    """Its main thread never comes to run anything, so it is recorded without; and it does not do it later."""
    process = serving(find_python("3.11") or "python3")
    begin = time.monotonic()
    run = oomrec("attach", "--objects", process.pid)
    assert run.exit_code == 0 and "is recorded now" in run.stdout, str(run)
    assert "its main thread has run no Python code for 5 s" in run.stderr
    assert time.monotonic() - begin < 30
    assert oomrec("top", "--once", process.pid).exit_code == 0
    work(process, 0.1)
    assert json.loads(process.stdout.readline()) == [True, True, None]
    assert plain.finish(process).exit_code == 0


@contextlib.contextmanager
def twentieth_of_a_processor(pid: int):
    """Puts the process in a cgroup that gets no more."""
    root = Path("/sys/fs/cgroup")
    parent = root / "cpu" if (root / "cpu").is_dir() else root  # version 1, or 2
    group = parent / f"oomrec_test_{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be created: {error}")
    try:
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text("20000")
            (group / "cpu.cfs_quota_us").write_text("1000")
        elif (group / "cpu.max").exists():
            (group / "cpu.max").write_text("1000 20000")
        else:
            pytest.skip("no processor time can be limited by cgroup here")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for left in (group / "cgroup.procs").read_text().split():
            (parent / "cgroup.procs").write_text(left)
        group.rmdir()


MANY = """
import select, sys, time
kept = [[] for _ in range(4_000_000)]
print("ready", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    if select.select([sys.stdin], [], [], 0)[0]: break
print(len(kept), all(one == [] for one in kept), flush=True)
"""


def test_a_count_that_takes_too_long_is_partial(oomrec, plain, serving):
    """Counting stops after a second, and the result is marked as partial."""
    process = serving(find_python("3.11") or "python3", MANY)
    with twentieth_of_a_processor(process.pid):
        document = oomrec.json("attach", "--objects", "--json", process.pid)
    assert document["objects"]["is_partial"]
    counted = sum(row["count"] for row in document["objects"]["rows"])
    assert 1000 < counted < 4_000_000
    oomrec("attach", "--detach", process.pid, exits=0)
    ended = plain.finish(process, input="\n")
    assert (ended.exit_code, ended.stdout) == (0, "4000000 True\n"), str(ended)


def test_a_program_that_is_not_python(oomrec, running):
    process = running("grows_in_steps")
    run = oomrec("attach", "--objects", process.pid)
    assert run.exit_code == 0 and "no Python interpreter was found in it" in run.stderr, str(run)
    assert oomrec.json("attach", "--detach", process.pid)["objects"] is None


def test_an_interpreter_without_a_lock(oomrec, plain, serving):
    interpreter = find_python("3.13t") or find_python("3.14t")
    if interpreter is None:
        pytest.skip("no free-threaded Python here")
    process = serving(interpreter)
    work(process, 3)
    run = oomrec("attach", "--objects", process.pid)
    assert run.exit_code == 0 and "has no global lock" in run.stderr, str(run)
    assert plain.finish(process).exit_code == 0


def test_subinterpreters_are_not_counted(oomrec, plain, serving):
    interpreter = find_python("3.12") or find_python("3.13")
    if interpreter is None:
        pytest.skip("no Python 3.12 here")
    process = serving(
        interpreter,
        "import sys, time\n"
        "try: import _interpreters as i\nexcept ImportError: import _xxsubinterpreters as i\n"
        "other = i.create()\n"
        "i.run_string(other, 'class Hidden: pass\\nkept = [Hidden() for _ in range(500)]')\n"
        "class Seen: pass\nkept = [Seen() for _ in range(600)]\nprint('ready', flush=True)\n"
        "for line in sys.stdin:\n    end = time.monotonic() + float(line)\n"
        "    while time.monotonic() < end: pass\n",
    )
    work(process, 3)
    objects = oomrec.json("attach", "--objects", process.pid)["objects"]
    rows = {row["type"]: row["count"] for row in objects["rows"]}
    assert rows["__main__.Seen"] == 600 and "__main__.Hidden" not in rows
    assert objects["other_interpreters"] == 1
    assert plain.finish(process).exit_code == 0


@pytest.mark.needs_torch
def test_a_training_goes_on(oomrec, plain, serving):
    import sys

    # It trains until it is told to end: however long a busy machine takes to attach.
    process = serving(
        sys.executable,
        "import select, sys, torch\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "torch.manual_seed(1)\nlayer = torch.nn.Linear(50, 50)\nlosses = []\n"
        "while not select.select([sys.stdin], [], [], 0)[0]:\n"
        "    loss = layer(torch.randn(20, 50)).square().mean()\n"
        "    loss.backward(); losses.append(loss.item())\n"
        "print(all(0 < one < 10 for one in losses), len(losses) > 100, flush=True)\n",
    )
    work(process, 0)
    objects = oomrec.json("attach", "--objects", process.pid)["objects"]
    assert any(row["type"] == "torch.nn.parameter.Parameter" for row in objects["rows"]) or (
        objects["types"] > 200
    )
    print(objects["count"], objects["took_ns"] / 1e6, "ms")
    work(process, 0)
    ended = plain.finish(process)
    assert ended.exit_code == 0 and ended.stdout == "True True\n", str(ended)
