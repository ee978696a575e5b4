"""Python without a global lock: its heap is its own (mimalloc), reserves a GiB at once and never asks malloc."""

from __future__ import annotations

import subprocess

import pytest
from conftest import FREE_THREADED_VERSIONS, metadata

HEAP = "[Python's heap: free, or lost to rounding]"
pytestmark = pytest.mark.parametrize("version", FREE_THREADED_VERSIONS)

# Four threads, each its own objects, and blocks of all sizes; then a request that fails.
HOARD = """
import sys, threading
kept = []
def floats(n):
    kept.append([i * 1.5 for i in range(n)])
def texts(n):
    return [str(i) * 400 for i in range(n)]
def large():
    return bytearray(50_000_000)
threads = [threading.Thread(target=floats, args=(200_000,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
kept += texts(20_000), large()
gone = [bytes(1000) for _ in range(20_000)], bytearray(30_000_000)
del gone
assert not sys._is_gil_enabled()
try:
    bytearray(1 << 60)
except MemoryError:
    print("refused")
"""
FLOATS = 800_000 * (40 + 8)  # objects have a header of 32 bytes
TEXTS = sum(57 + 400 * len(str(i)) for i in range(20_000))
LARGE = 50_000_001


def bytes_in(rows: list[dict], function: str, space: str) -> int:
    return sum(
        row["bytes"]
        for row in rows
        if row["space"] == space
        and any(function in (frame["function"] or "") for frame in row["stack"])
    )


@pytest.fixture
def hoard(oomrec, preload, plain, python, tmp_path, version):
    """hoard(environment) is the bundle of a recorded run, whose output is that of an unrecorded one."""
    script = tmp_path / "hoard.py"
    script.write_text(HOARD)

    def run(**environment):
        alone = plain(python(version), script)
        run = preload(python(version), script, env=environment)
        assert (run.exit_code, run.stdout) == (alone.exit_code, alone.stdout) == (0, "refused\n")
        return oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())

    return run


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_objects_are_on_their_lines(hoard, mode):
    shown = hoard(OOMREC_MODE=mode)
    rows = shown["holders"]
    assert bytes_in(rows, "floats", "python") == pytest.approx(FLOATS, rel=0.15)
    assert bytes_in(rows, "texts", "python") == pytest.approx(TEXTS, rel=0.15)
    assert bytes_in(rows, "large", "python") == pytest.approx(LARGE, rel=0.01)
    assert bytes_in(rows, "bytes", "python") < 2_000_000  # what was freed
    # The pool and its objects are the space's total, within what the last look missed.
    held = sum(row["bytes"] for row in rows if row["space"] in ("map", "python"))
    total = shown["spaces"]["map"]["live_bytes"]
    assert held == pytest.approx(total, rel=0.08)
    assert FLOATS + TEXTS + LARGE < total < 1.6 * (FLOATS + TEXTS + LARGE)
    [heap] = [row for row in rows if row["stack"][0]["function"] == HEAP]
    assert heap["space"] == "map"
    assert any("free-threaded" in note for note in shown["notes"])


def test_each_object_is_a_block_of_the_heap(oomrec, plain, python, version, tmp_path):
    """--python-objects asks other interpreters to use malloc, and this one would end if it were asked."""
    script = tmp_path / "hoard.py"
    script.write_text(HOARD)
    asked = plain(python(version), "-c", "1", env={"PYTHONMALLOC": "malloc"})
    assert asked.exit_code == 1 and "unknown allocator" in asked.stderr  # the control
    run = oomrec("run", "--mode", "exact", "--python-objects", "--", python(version), script)
    assert (run.exit_code, run.stdout) == (0, "refused\n"), str(run)
    shown = oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())
    rows = shown["holders"]
    assert bytes_in(rows, "floats", "heap") == pytest.approx(FLOATS, rel=0.05)
    assert bytes_in(rows, "texts", "heap") == pytest.approx(TEXTS, rel=0.05)
    assert bytes_in(rows, "large", "heap") == pytest.approx(LARGE, rel=1e-4)
    held = sum(row["bytes"] for row in rows if row["space"] == "heap")
    assert held == pytest.approx(shown["spaces"]["heap"]["live_bytes"], rel=0.02)
    run = oomrec("run", "--python-objects", "--", python(version), script)  # sampled
    assert (run.exit_code, run.stdout) == (0, "refused\n"), str(run)


@pytest.mark.parametrize("piece", ["bytearray(4 << 20)", "b'x' * 3000", "(len(kept),) * 50"])
def test_a_limit_holds(oomrec, python, version, tmp_path, piece):
    script = tmp_path / "grow.py"
    script.write_text(
        f"kept = []\ntry:\n    while True:\n        kept.append({piece})\n"
        "except MemoryError:\n    kept.clear()\n    print('refused')\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
    )
    run = oomrec("run", "--limit", "200M", "--", python(version), script)
    refused, most_kib = run.stdout.split()
    assert run.exit_code == 0 and refused == "refused", str(run)
    # bytearray's pages are touched only in part.
    assert int(most_kib) < 300 * 1024
    if "bytearray" not in piece:
        assert int(most_kib) > 150 * 1024
    assert metadata(run.only_bundle())["reason"] == "soft_limit"


def test_a_limit_of_the_system(oomrec, preload, plain, python, version, tmp_path):
    """The heap's reservation of a GiB is refused, which it handles; an object later is not."""
    grow = tmp_path / "grow.py"
    grow.write_text("kept = []\nwhile True:\n    kept.append(bytes(3000))\n")
    limited = ["bash", "-c", 'ulimit -v 600000; exec "$@"', "bash", python(version)]
    run = preload(*limited, "-c", "print(1)")
    assert (run.exit_code, run.stdout, run.stderr) == (0, "1\n", ""), str(run)
    assert run.bundles() == []
    run = preload(*limited, grow)
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "address_space_limit"
    lines = [frame for frame in shown["request"]["stack"] if frame["kind"] == "python"]
    assert lines[0]["file"] == str(grow) and lines[0]["line"] == 3
    [first, *_] = oomrec.json("show", "--top", "1", run.only_bundle())["holders"]
    assert any(frame["line"] == 3 for frame in first["stack"]), first


def test_a_program_that_frees_what_it_takes_is_not_refused(oomrec, python, version):
    """What the heap keeps for reuse does not count twice."""
    code = "for i in range(300):\n    x = bytearray(100 << 20); del x\n    y = [str(j) for j in range(20000)]"
    run = oomrec("run", "--limit", "180M", "--", python(version), "-c", code)
    assert (run.exit_code, run.stderr) == (0, ""), str(run)


@pytest.mark.parametrize("words", [["-X", "dev"], []])
def test_the_interpreters_own_checks_stay(preload, plain, python, version, words):
    """Debug hooks of the interpreter are put in front of its heap after ours."""
    code = "import json; kept = [json.loads('[1, 2, {}]') for _ in range(100000)]; print(len(kept))"
    for environment in ({}, {"PYTHONMALLOC": "debug"}):
        alone = plain(python(version), *words, "-c", code, env=environment)
        run = preload(python(version), *words, "-c", code, env=environment)
        assert (run.exit_code, run.stdout, run.stderr) == (0, alone.stdout, alone.stderr), str(run)


def test_a_forks_child_has_what_its_parent_had(oomrec, preload, python, version, tmp_path):
    script = tmp_path / "forks.py"
    script.write_text(
        "import os\ndef hold():\n    return [i * 1.5 for i in range(400_000)]\nkept = hold()\n"
        "pid = os.fork()\nif pid == 0:\n    more = [b'x' * 900 for _ in range(20000)]\n"
        "    for _ in range(30):\n        gone = [str(i) for i in range(30000)]\n"
        "    try:\n        bytearray(1 << 60)\n    except MemoryError:\n        os._exit(0)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    run = preload(python(version), script)
    assert (run.exit_code, run.stdout) == (0, "0\n"), str(run)
    shown = oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())
    total = shown["spaces"]["map"]["live_bytes"]
    assert 10_000_000 + 18_000_000 < total < 60_000_000
    assert bytes_in(shown["holders"], "hold", "python") > 5_000_000


@pytest.mark.parametrize(
    "module", ["test_json", "test_list", "test_threading", "test_dict", "test_bytes"]
)
def test_the_interpreters_own_tests_pass(preload, plain, python, version, module):
    interpreter = python(version)
    found = subprocess.run([interpreter, "-c", f"import test.{module}"], capture_output=True)
    if found.returncode != 0:
        pytest.skip("it is installed without its tests")
    words = [interpreter, "-m", "unittest", "-q", f"test.{module}"]
    alone = plain(*words, timeout=300)
    for mode in ("sampled", "exact"):
        run = preload(*words, env={"OOMREC_MODE": mode}, timeout=300)
        assert run.exit_code == alone.exit_code, str(run)
