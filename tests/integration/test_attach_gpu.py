"""`oomrec attach` to programs that use a GPU: they have looked the driver's functions up before."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from array import array
from collections import Counter
from pathlib import Path

import pytest
from attach_targets import Told, live, needs_tracing, shown

pytestmark = needs_tracing

MIB = 1 << 20
PT_LOAD = 1
needs_pid_namespace = pytest.mark.skipif(
    os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC,
    reason="NVML's pids are those of the machine, and this is a container",
)
CLIENTS = ["torch", pytest.param("bindings", marks=pytest.mark.needs_module("cuda.bindings"))]


class OnGpu(Told):
    """A program that uses a GPU; it answers in JSON."""

    def __call__(self, line: str) -> dict:
        return json.loads(super().__call__(line))

    def looked_up(self, library: str) -> Counter[str]:
        """How many variables of each module have an address in this library's code."""
        maps = [line.split() for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines()]
        code = [bounds(row) for row in maps if library in row[-1] and "x" in row[1]]
        least, most = min(code, default=(0, 0))[0], max(code, default=(0, 0))[1]
        found = Counter()
        name, end_of_module = "", 0
        with open(f"/proc/{self.pid}/mem", "rb", 0) as memory:
            for row in maps:
                start, end = bounds(row)
                if len(row) > 5 and row[5] != name:
                    name = row[5]
                    end_of_module = start + bytes_in_memory(name) if ".so" in name else 0
                end = min(end, end_of_module)  # others' memory may adjoin a module's zeros
                if "w" not in row[1] or start >= end or library in name:
                    continue
                memory.seek(start)
                words = array("Q", memory.read(end - start))
                near = [value for value in words if least <= value < most]
                for value in near:
                    if any(low <= value < high for low, high in code):
                        found[os.path.basename(name)] += 1
        return found


def bytes_in_memory(module: str) -> int:
    """From its first byte to the end of its last segment, by its ELF program headers."""
    with open(module, "rb") as file:
        header = file.read(64)
        [offset] = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        headers = [struct.unpack("<IIQQQQQQ", file.read(size)) for _ in range(count)]
    loaded = [row for row in headers if row[0] == PT_LOAD]
    return max(address + in_memory for _, _, _, address, _, _, in_memory, _ in loaded)


def bounds(row: list[str]) -> tuple[int, int]:
    start, end = row[0].split("-")
    return int(start, 16), int(end, 16)


@pytest.fixture
def told(plain, victim, build_dir):
    folders = [build_dir / "tests" / name for name in ("fake_gpu", "fake_torch")]
    env = {"LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)), "FAKE_GPU_BYTES": "1G"}

    def start(client: str) -> OnGpu:
        script = victim("python/attached_gpu.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return OnGpu(plain.start(sys.executable, script, client, env=env, **pipes))

    return start


def attach(oomrec, program, *options):
    run = oomrec("attach", *options, program.pid)
    assert run.exit_code == 0 and "not recorded" not in run.stderr, str(run)


def on_device(bundle: dict) -> list[dict]:
    return [row for row in bundle["holders"] if row["space"] == "cuda"]


def has_note(bundle: dict, text: str) -> bool:
    return any(text in note for note in bundle["notes"])


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@pytest.mark.parametrize("client", CLIENTS)
def test_calls_that_were_looked_up_before_are_recorded(oomrec, told, client, mode):
    program = told(client)
    program("use")
    assert program("allocate 40")["got"] and program("allocate 50")["got"]
    attach(oomrec, program, "--mode", mode)

    assert live(oomrec, program, "cuda") == 0
    for _ in range(3):
        assert program("allocate 30")["got"]
    assert live(oomrec, program, "cuda") == 90 * MIB
    bundle = shown(oomrec, program)
    [top] = on_device(bundle)
    assert has_note(bundle, "counts as used by others or by the runtime")
    assert top["bytes"] == 90 * MIB
    assert "make_batch" in {frame["function"] for frame in top["stack"]}


def test_blocks_from_before_are_freed_without_a_trace(oomrec, told):
    program = told("bindings") if has_bindings() else told("torch")
    program("use")
    program("allocate 40")
    attach(oomrec, program)
    program("allocate 30")
    program("free 0")
    assert live(oomrec, program, "cuda") == 30 * MIB
    program("free 0")
    assert live(oomrec, program, "cuda") in (0, 30 * MIB)  # the stand-in keeps it


def has_bindings() -> bool:
    return subprocess.run([sys.executable, "-c", "import cuda.bindings"]).returncode == 0


def test_pytorchs_own_blocks_are_recorded(oomrec, told):
    program = told("torch")
    program("use")
    program("allocate 40")
    attach(oomrec, program, "--mode", "exact")
    program("allocate 30")
    program("allocate 50")
    program("free 1")
    assert live(oomrec, program, "torch") == 50 * MIB
    assert live(oomrec, program, "cuda") == 80 * MIB, "its allocator keeps what was freed"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_driver_that_comes_after_the_attach(oomrec, told, client):
    program = told(client)
    program("wait")
    attach(oomrec, program)
    program("use")
    program("allocate 40")
    program("allocate 50")
    assert live(oomrec, program, "cuda") == 90 * MIB
    if client == "torch":
        assert live(oomrec, program, "torch") == 90 * MIB


@pytest.mark.parametrize("client", CLIENTS)
def test_a_detach_puts_every_word_back(oomrec, told, client):
    program = told(client)
    program("use")
    program("allocate 40")
    before = program.looked_up("libcuda.so")
    [module] = [name for name in before if name.startswith(("libc10", "driver"))]
    assert before[module] > 0, "the client keeps the driver's functions in variables"
    for _ in range(3):
        attach(oomrec, program)
        assert program("allocate 1")["got"]
        hooks = program.looked_up("liboomrec")[module]
        # It also has words that lead to the C library, and functions that the recorder does not wrap.
        assert 0 < before[module] - program.looked_up("libcuda.so")[module] <= hooks
        assert oomrec("attach", "--detach", program.pid).exit_code == 0
        assert program.looked_up("libcuda.so")[module] == before[module]
        assert program.looked_up("liboomrec")[module] == 0
        assert program("allocate 1")["got"] and program("free 0")["held"] > 0


def test_a_library_that_is_closed_while_it_is_recorded(oomrec, told):
    """Its variables are gone when the recording ends."""
    program = told("torch")
    program("use")
    program("allocate 40")
    attach(oomrec, program)
    program("allocate 30")
    program("close")
    assert "libc10_cuda" not in Path(f"/proc/{program.pid}/maps").read_text()
    assert oomrec("info", program.pid).exit_code == 0
    assert oomrec("attach", "--detach", program.pid).exit_code == 0
    program("use")
    assert program("allocate 5")["got"]


def nvml(pid: int, mib: int) -> dict[str, str]:
    """The environment in which NVML says that the process uses so much of the first device."""
    return {"FAKE_NVML": f"0:total=1G,used={mib + 100}M,pid={pid}/{mib}M,pid=1/100M"}


@pytest.fixture
def held_before(oomrec, told, fake_gpu):
    """held_before(120): a program that held blocks of 40 and 50 MiB, attached to while NVML said 120.
    Now it has one of 30 MiB more."""

    def start(nvml_mib: int) -> OnGpu:
        program = told("bindings")
        program("use")
        program("allocate 40")
        program("allocate 50")
        oomrec("attach", program.pid, env={**fake_gpu, **nvml(program.pid, nvml_mib)}, exits=0)
        program("allocate 30")
        return program

    return start


@pytest.mark.needs_module("cuda.bindings")
@needs_pid_namespace
def test_what_a_device_held_before_is_one_holder(oomrec, held_before):
    program = held_before(120)  # with its context
    assert live(oomrec, program, "cuda") == 150 * MIB
    bundle = shown(oomrec, program)
    assert has_note(bundle, "is what NVML said that the process used then, with its context")
    rows = on_device(bundle)
    assert [row["bytes"] for row in rows] == [120 * MIB, 30 * MIB]
    assert rows[0]["stack"][0]["function"] == "[before attaching]"
    program("free 0")
    assert live(oomrec, program, "cuda") == 110 * MIB
    program("free 1")  # of now
    program("free 0")
    [before] = on_device(shown(oomrec, program))
    assert before["bytes"] == live(oomrec, program, "cuda") == 30 * MIB, "what the context takes up"


@pytest.mark.needs_module("cuda.bindings")
@needs_pid_namespace
def test_more_is_freed_than_nvml_said(oomrec, held_before):
    program = held_before(70)
    program("free 0")
    program("free 0")
    assert live(oomrec, program, "cuda") == 30 * MIB
    # A second recording does not begin with what the first one left.
    assert oomrec("attach", "--detach", program.pid).exit_code == 0
    attach(oomrec, program)
    program("allocate 10")
    assert live(oomrec, program, "cuda") == 10 * MIB
