"""Threads, processes and mappings that fail: which limit was the cause."""

import contextlib
import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from conftest import built


def verdict_of(oomrec, run):
    shown = oomrec.json("show", *run.bundles()[-1:])
    return shown["verdict"], shown["limit"]


@pytest.fixture
def pids_cgroup():
    """pids_cgroup(N) makes a cgroup for N tasks and returns the preexec_fn that enters it."""
    made = []

    def make(tasks: int):
        for parent in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
            group = parent / f"oomrec_test_{os.getpid()}_{tasks}"
            with contextlib.suppress(OSError):
                group.mkdir()
                made.append(group)
                (group / "pids.max").write_text(str(tasks))
                return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        pytest.skip("no cgroup with a limit of tasks can be made here")

    yield make
    for group in made:
        until = time.monotonic() + 10
        while (group / "cgroup.procs").read_text() and time.monotonic() < until:
            time.sleep(0.02)
        group.rmdir()


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize(
    "what, code", [("thread", "thread_creation_failed"), ("fork", "fork_failed")]
)
def test_the_task_limit_of_a_cgroup(oomrec, preload, victim, pids_cgroup, what, code):
    run = preload(victim("tasks"), what, preexec_fn=pids_cgroup(8))
    assert run.stdout == "7 EAGAIN\n", str(run)
    verdict, limit = verdict_of(oomrec, run)
    assert verdict["code"] == code
    assert "(pids.max) of 8 is reached (tasks 8)" in verdict["summary"]
    assert "tasks 8 + request 1 > the cgroup's limit of tasks (pids.max) 8" in verdict["evidence"]
    assert limit == {"kind": "pids", "bytes": None, "used": None}  # no bytes
    page = oomrec("show", run.bundles()[-1]).stdout
    assert "\nlimit\n  pids: 8 of 8 in use\n" in page


def test_python_cannot_start_a_thread(oomrec, preload, victim, python, tmp_path):
    tmp_path.chmod(0o777)
    run = preload(python(), victim("python/thread_start_failure.py"))
    assert run.stdout == "can't start new thread\n", str(run)
    shown = oomrec.json("show")
    assert shown["verdict"]["code"] == "thread_creation_failed"
    assert shown["limit"]["kind"] == "rlimit_nproc"
    lines = [
        f["line"]
        for f in shown["request"]["stack"]
        if f["file"] and "thread_start_failure.py" in f["file"]
    ]
    assert lines == [11]


def test_a_thread_stack_larger_than_the_address_space(oomrec, preload, victim):
    verdict, _ = verdict_of(oomrec, preload(victim("refusals"), "thread"))
    assert verdict["code"] == "thread_creation_failed"
    assert "no address space is that large" in verdict["summary"]


def test_a_thread_beyond_the_address_space_limit(oomrec, preload, python):
    script = (
        "import resource, threading\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20), -1))\n"
        "threading.stack_size(64 << 20)\n"
        "try: threading.Thread(target=print).start()\n"
        "except RuntimeError as error: print(error)\n"
    )
    run = preload(python(), "-c", script)
    assert run.stdout == "can't start new thread\n", str(run)
    verdict, limit = verdict_of(oomrec, run)
    assert (verdict["code"], limit["kind"]) == ("thread_creation_failed", "rlimit_as")


def mapped_mib(start, *command) -> float:
    pages = int(start(*command).stdout.split()[0])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


@pytest.mark.parametrize("mode, native, of_python", [("sampled", 5.8, 6.7), ("exact", 6.3, 7.8)])
def test_address_space_of_the_recorder(preload, plain, python, mode, native, of_python):
    """Of a limit of 64 MiB about a tenth. How many stacks are sampled decides about the last step of 512 KiB."""
    script = [python(), "-c", "print(open('/proc/self/statm').read())"]
    for command, bound in ((["cat", "/proc/self/statm"], native), (script, of_python)):
        with_recorder = mapped_mib(partial(preload, env={"OOMREC_MODE": mode}), *command)
        assert 3 < with_recorder - mapped_mib(plain, *command) <= bound


def test_a_process_that_has_grown_to_its_limit_since_an_earlier_failure(oomrec, preload, tmp_path):
    """Within 100 ms, as a collector does that asks for less and less: it is near its limit only now."""
    program = built(
        tmp_path,
        "asks_for_less",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n"
        "#include <sys/resource.h>\n"
        "static void* map(size_t mib) { return mmap((void*)0x600000000000, mib << 20,\n"
        "  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }\n"
        'int main() { size_t pages; FILE* file = fopen("/proc/self/statm", "r");\n'
        'if (fscanf(file, "%zu", &pages) != 1) return 2;\n'
        "struct rlimit limit = {pages * 4096 + (64 << 20), RLIM_INFINITY};\n"
        "setrlimit(RLIMIT_AS, &limit);\n"
        "if (map(100) != MAP_FAILED || map(48) == MAP_FAILED) return 2;\n"
        "if (map(32) != MAP_FAILED) return 2;\n"
        "exit(1); }\n",
    )
    run = preload(program, exits=1)
    verdict, limit = verdict_of(oomrec, run)
    assert verdict["code"] == "address_space_limit" and limit["kind"] == "rlimit_as", verdict


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_the_recording_grows_below_an_address_space_limit(oomrec, preload, python, mode):
    """It needs many times the memory that it has mapped when the program sets the limit."""
    script = (
        "import resource\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), -1))\n"
        "kept = []\n"
        "def keep(depth, size):\n"
        "    kept.append(bytearray(size)) if depth == 0 else keep(depth - 1, size)\n"
        "try:\n"
        "    while True:\n"
        "        for depth in range(60): keep(depth, 20_000)\n"
        "except MemoryError: print(len(kept))\n"
    )
    run = preload(python(), "-c", script, env={"OOMREC_MODE": mode})
    assert int(run.stdout) > 3000, str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "address_space_limit"
    assert any(frame["function"] == "keep" for frame in shown["request"]["stack"])
    assert sum(holder["bytes"] for holder in shown["holders"]) > 50 << 20


@pytest.fixture
def few_mappings():
    """vm.max_map_count, if it is the usual 65,530, which a program reaches quickly."""
    most = int(Path("/proc/sys/vm/max_map_count").read_text())
    if most > 100_000:
        pytest.skip(f"vm.max_map_count is {most}: too many to make")
    return most


def test_one_mapping_too_many(oomrec, preload, victim, few_mappings):
    run = preload(victim("many_mappings"), few_mappings + 10)
    assert run.stdout == "ENOMEM\nmalloc refused\n", str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["request"]["api"], shown["verdict"]["code"]) == ("mmap", "mapping_failed")
    assert shown["limit"]["kind"] == "max_map_count"
    assert f"(vm.max_map_count) of {few_mappings:,} is reached" in shown["verdict"]["summary"]
    assert shown["request"]["aftershocks"]["count"] > 0  # malloc


def test_below_the_limit_nothing_fails(preload, victim):
    run = preload(victim("many_mappings"), 1000)
    assert run.stdout == "room for more\nmalloc granted\n" and run.bundles() == []


def test_a_library_that_does_not_fit_the_address_space(oomrec, preload, victim):
    run = preload(victim("dlopen_failure"), victim("wide_plugin.so"))
    verdict, limit = verdict_of(oomrec, run)
    assert (verdict["code"], limit["kind"]) == ("mapping_failed", "rlimit_as")
    assert "(RLIMIT_AS) of 512.0 MiB is the only one that explains it" in verdict["summary"]


def test_a_library_where_nothing_may_be_executed(preload, victim, tmp_path):
    """The loader fails to map it; the address space, which has a limit, is not the reason."""
    options = {"capture_output": True, "text": True}
    place = tmp_path / "mounted"
    place.mkdir()
    script = (
        f"mount -t tmpfs -o noexec none {place} && cp {victim('deep_plugin.so')} {place}/p.so"
        f" && exec {victim('dlopen_failure')} {place}/p.so"
    )
    words = ["unshare", "--mount", "sh", "-c", script]
    if subprocess.run(["unshare", "--mount", "true"], **options).returncode != 0:
        pytest.skip("no mount namespace may be made here")
    run = preload(*words)
    assert "failed to map segment" in run.stdout, str(run)
    assert run.bundles() == []


@pytest.mark.parametrize(
    "with_swap, limit_with_swap, current, most",
    [
        (1_500_000, 5_000_000, 500_000, 1_000_000),
        (1_000_000, 4_000_000, 0, 0),
        (999_000, (1 << 63) - 4096, 0, "unlimited"),  # read a moment later than the other
        (None, None, None, None),
    ],
)
def test_swap_of_a_cgroup_of_version_1(
    preload, python, tmp_path, with_swap, limit_with_swap, current, most
):
    """Its files count memory and swap together."""
    if ":memory:" not in Path("/proc/self/cgroup").read_text():
        pytest.skip("the memory cgroup here is of version 2")
    files = {
        "usage_in_bytes": 1_000_000,
        "limit_in_bytes": 4_000_000,
        "memsw.usage_in_bytes": with_swap,
        "memsw.limit_in_bytes": limit_with_swap,
    }
    group = tmp_path / "cgroup" / "memory"
    group.mkdir(parents=True)
    for name, value in files.items():
        if value is not None:
            (group / f"memory.{name}").write_text(f"{value}\n")
    run = preload(
        python(), "-c", "bytearray(1 << 62)", env={"OOMREC_CGROUP_ROOT": str(tmp_path / "cgroup")}
    )
    found = json.loads((run.only_bundle() / "environment.json").read_text())["cgroup"]
    assert (found["current_bytes"], found["max_bytes"]) == (1_000_000, 4_000_000)
    assert (found["swap_current_bytes"], found["swap_max_bytes"]) == (current, most)
