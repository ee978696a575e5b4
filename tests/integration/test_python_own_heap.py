"""Python whose heap is its own (mimalloc): without a global lock always, otherwise by PYTHONMALLOC=mimalloc.

It reserves a GiB at once and never asks malloc.
"""

from __future__ import annotations

import subprocess

import pytest
from conftest import metadata, written
from pythons import FREE_THREADED_VERSIONS
from sizes import bytes_in

HEAP = "[Python's heap: free, or lost to rounding]"
WITH_LOCK = "3.13 mimalloc"
own_heap = pytest.mark.parametrize("version", [*FREE_THREADED_VERSIONS, WITH_LOCK])
free_threaded = pytest.mark.parametrize("version", FREE_THREADED_VERSIONS)

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
assert sys._is_gil_enabled() == (sys.abiflags == "")
try:
    bytearray(1 << 60)
except MemoryError:
    print("refused")
"""
LARGE = 50_000_001


def sizes(version: str) -> tuple[int, int]:
    """Of what `floats` and `texts` keep: an object has a header of 16 bytes, without the lock of 32."""
    header = 16 if version == WITH_LOCK else 32
    floats = 800_000 * (header + 8 + 8)
    return floats, sum(header + 25 + 400 * len(str(i)) for i in range(20_000))


@pytest.fixture
def interpreter(python, version):
    """Its path. Programs are run with `environment`."""
    return python(version.split()[0])


@pytest.fixture
def environment(version):
    return {"PYTHONMALLOC": "mimalloc"} if version == WITH_LOCK else {}


@pytest.fixture
def hoard(oomrec, preload, plain, interpreter, environment, tmp_path):
    """hoard(VARIABLE=…) is the bundle of a recorded run, whose output is that of an unrecorded one."""
    script = written(tmp_path / "hoard.py", HOARD)

    def run(**variables):
        alone = plain(interpreter, script, env=environment)
        run = preload(interpreter, script, env={**environment, **variables})
        assert (run.exit_code, run.stdout) == (alone.exit_code, alone.stdout) == (0, "refused\n")
        return oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())

    return run


@own_heap
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_objects_are_on_their_lines(hoard, version, mode):
    floats, texts = sizes(version)
    shown = hoard(OOMREC_MODE=mode)
    rows = shown["holders"]
    floats += 800_000 * 8  # blocks are multiples of 16
    assert bytes_in(rows, "floats", "python") == pytest.approx(floats, rel=0.15)
    assert bytes_in(rows, "texts", "python") == pytest.approx(texts, rel=0.15)
    assert bytes_in(rows, "large", "python") == pytest.approx(LARGE, rel=0.01)
    assert bytes_in(rows, "bytes", "python") < 2_000_000  # what was freed
    # The pool and its objects are the space's total, within what the last look missed.
    held = sum(row["bytes"] for row in rows if row["space"] in ("map", "python"))
    total = shown["spaces"]["map"]["live_bytes"]
    assert held == pytest.approx(total, rel=0.08)
    assert 0.95 < total / (floats + texts + LARGE) < 1.7
    [heap] = [row for row in rows if row["stack"][0]["function"] == HEAP]
    assert heap["space"] == "map"
    assert any("a heap of its own" in note for note in shown["notes"])


@free_threaded
def test_each_object_is_a_block_of_the_heap(oomrec, plain, interpreter, version, tmp_path):
    """--python-objects asks other interpreters to use malloc, and this one would end if it were asked."""
    script = written(tmp_path / "hoard.py", HOARD)
    floats, texts = sizes(version)
    asked = plain(interpreter, "-c", "1", env={"PYTHONMALLOC": "malloc"})
    assert asked.exit_code == 1 and "unknown allocator" in asked.stderr  # the control
    run = oomrec("run", "--mode", "exact", "--python-objects", "--", interpreter, script)
    assert (run.exit_code, run.stdout) == (0, "refused\n"), str(run)
    shown = oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())
    rows = shown["holders"]
    assert bytes_in(rows, "floats", "heap") == pytest.approx(floats, rel=0.05)
    assert bytes_in(rows, "texts", "heap") == pytest.approx(texts, rel=0.05)
    assert bytes_in(rows, "large", "heap") == pytest.approx(LARGE, rel=1e-4)
    held = sum(row["bytes"] for row in rows if row["space"] == "heap")
    assert held == pytest.approx(shown["spaces"]["heap"]["live_bytes"], rel=0.02)
    run = oomrec("run", "--python-objects", "--", interpreter, script)  # sampled
    assert (run.exit_code, run.stdout) == (0, "refused\n"), str(run)


@own_heap
@pytest.mark.parametrize("piece", ["bytearray(4 << 20)", "bytes(3000)", "(len(kept),) * 50"])
def test_a_limit_holds(oomrec, interpreter, environment, tmp_path, piece):
    script = tmp_path / "grow.py"
    script.write_text(
        f"kept = []\ntry:\n    while True:\n        kept.append({piece})\n"
        "except MemoryError:\n    kept.clear()\n    print('refused')\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
    )
    run = oomrec("run", "--limit", "200M", "--", interpreter, script, env=environment)
    refused, most_kib = run.stdout.split()
    assert run.exit_code == 0 and refused == "refused", str(run)
    # bytearray's pages are touched only in part.
    assert int(most_kib) < 300 * 1024
    if "bytearray" not in piece:
        assert int(most_kib) > 150 * 1024
    assert metadata(run.only_bundle())["reason"] == "soft_limit"


@own_heap
def test_a_limit_of_the_system(oomrec, preload, interpreter, environment, tmp_path):
    """The heap's reservation of a GiB is refused, which it handles; an object later is not."""
    grow = written(tmp_path / "grow.py", "kept = []\nwhile True:\n    kept.append(bytes(3000))\n")
    limited = ["bash", "-c", 'ulimit -v 600000; exec "$@"', "bash", interpreter]
    run = preload(*limited, "-c", "print(1)", env=environment)
    assert (run.exit_code, run.stdout, run.stderr) == (0, "1\n", ""), str(run)
    assert run.bundles() == []
    run = preload(*limited, grow, env=environment)
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "address_space_limit"
    lines = [frame for frame in shown["request"]["stack"] if frame["kind"] == "python"]
    assert lines[0]["file"] == str(grow) and lines[0]["line"] == 3
    [first, *_] = oomrec.json("show", "--top", "1", run.only_bundle())["holders"]
    assert any(frame["line"] == 3 for frame in first["stack"]), first


@own_heap
def test_a_program_that_frees_what_it_takes_is_not_refused(oomrec, interpreter, environment):
    """What the heap keeps for reuse does not count twice."""
    code = "for i in range(300):\n    x = bytearray(100 << 20); del x\n    y = [str(j) for j in range(20000)]"
    run = oomrec("run", "--limit", "180M", "--", interpreter, "-c", code, env=environment)
    assert (run.exit_code, run.stderr) == (0, ""), str(run)


@free_threaded
@pytest.mark.parametrize("words", [["-X", "dev"], []])
def test_the_interpreters_own_checks_stay(preload, plain, interpreter, words):
    """Debug hooks of the interpreter are put in front of its heap after ours."""
    code = "import json; kept = [json.loads('[1, 2, {}]') for _ in range(100000)]; print(len(kept))"
    for environment in ({}, {"PYTHONMALLOC": "debug"}):
        alone = plain(interpreter, *words, "-c", code, env=environment)
        run = preload(interpreter, *words, "-c", code, env=environment)
        assert (run.exit_code, run.stdout, run.stderr) == (0, alone.stdout, alone.stderr), str(run)


@free_threaded
def test_a_forks_child_has_what_its_parent_had(oomrec, preload, interpreter, environment, tmp_path):
    script = tmp_path / "forks.py"
    script.write_text(
        "import os\ndef hold():\n    return [i * 1.5 for i in range(400_000)]\nkept = hold()\n"
        "pid = os.fork()\nif pid == 0:\n    more = [bytes(900) for _ in range(20000)]\n"
        "    for _ in range(30):\n        gone = [str(i) for i in range(30000)]\n"
        "    try:\n        bytearray(1 << 60)\n    except MemoryError:\n        os._exit(0)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    run = preload(interpreter, script, env=environment)
    assert (run.exit_code, run.stdout) == (0, "0\n"), str(run)
    shown = oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())
    total = shown["spaces"]["map"]["live_bytes"]
    assert 25_000_000 < total < 60_000_000
    assert bytes_in(shown["holders"], "hold", "python") > 5_000_000


@free_threaded
@pytest.mark.parametrize(
    "module", ["test_json", "test_list", "test_threading", "test_dict", "test_bytes"]
)
def test_the_interpreters_own_tests_pass(preload, plain, interpreter, environment, module):
    found = subprocess.run([interpreter, "-c", f"import test.{module}"], capture_output=True)
    if found.returncode != 0:
        pytest.skip("it is installed without its tests")
    words = [interpreter, "-m", "unittest", "-q", f"test.{module}"]
    alone = plain(*words, env=environment)
    for mode in ("sampled", "exact"):
        run = preload(*words, env={**environment, "OOMREC_MODE": mode})
        assert run.exit_code == alone.exit_code, str(run)


def test_an_interpreter_that_ignores_its_environment_has_no_such_heap(oomrec, preload, python):
    """-I: objects come from pymalloc and malloc, whatever the variable says."""
    code = "kept = [bytes(3000) for _ in range(20000)]\ntry: bytearray(1 << 60)\nexcept MemoryError: pass"
    run = preload(python("3.13"), "-I", "-c", code, env={"PYTHONMALLOC": "mimalloc"})
    shown = oomrec.json("show", "--top", "1000000", "--at", "end", run.only_bundle())
    assert shown["spaces"]["heap"]["live_bytes"] > 60_000_000
    assert not any("a heap of its own" in note for note in shown["notes"])


@own_heap
def test_the_peak_has_objects_at_once(oomrec, preload, interpreter, environment, tmp_path):
    """It had nothing of 38 MiB right after they were made: only the next look at the heap's pages counted them."""
    script = tmp_path / "holds.py"
    script.write_text(
        "import sys\n"
        "def hold(n): return [bytes(367) for _ in range(n)]\n"
        "kept = hold(100_000)\n"
        "print('made', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = preload.start(interpreter, script, env=environment, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"made\n"
    bundle = oomrec.json("dump", process.pid)["bundle"]
    live = bytes_in(oomrec.json("show", bundle)["holders"], "hold", "python")
    peak = bytes_in(oomrec.json("show", bundle, "--at", "peak")["holders"], "hold", "python")
    assert live > 25_000_000 and peak > 0.7 * live, (live, peak)
    process.communicate()
