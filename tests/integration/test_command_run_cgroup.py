"""`oomrec run --cgroup SIZE`: the program is paused at the limit while its bundle is written."""

import os
import signal
import sys
from pathlib import Path

import pytest
from watching import has_ended, wait_for

MIB = 1 << 20


def own_cgroups() -> list[Path]:
    return [
        path
        for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"))
        for path in root.glob("oomrec-*")
    ]


@pytest.fixture(autouse=True)
def no_cgroup_stays():
    before = own_cgroups()
    yield
    wait_for(lambda: own_cgroups() == before)


@pytest.mark.needs_cgroup_write
def test_a_bundle_is_written_before_the_kill(oomrec, victim):
    """The launcher writes it while the program is stalled. The program's own warning is off."""
    run = oomrec(
        "run", "--warn", "0", "--cgroup", "150M", "--",
        sys.executable, victim("python/grow_objects.py"),
    )  # fmt: skip
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    assert "reached its cgroup's limit of 150.0 MiB" in run.stderr
    (bundle,) = run.bundles_for("near_limit")
    shown = oomrec.json("show", bundle)
    assert shown["verdict"]["code"] == "near_limit" and shown["limit"]["kind"] == "cgroup"
    assert shown["limit"]["bytes"] == 150 * MIB and shown["limit"]["used"] >= 130 * MIB
    held = shown["holders"][0]
    assert any(frame["function"] == "grow" for frame in held["stack"])
    assert held["bytes"] >= 100 * MIB


@pytest.mark.needs_cgroup_write
def test_below_the_limit_nothing_happens(oomrec, victim):
    run = oomrec("run", "--cgroup", "300M", "--", victim("touched_late"), "20")
    assert (run.exit_code, run.stdout, run.stderr) == (0, "allocated\n", "")
    assert run.bundles() == []


LIMITS_OF_SWAP = """
from pathlib import Path
for line in Path("/proc/self/cgroup").read_text().splitlines():
    _, controllers, path = line.split(":", 2)
    if controllers in ("", "memory"):
        root = Path("/sys/fs/cgroup", controllers, path.lstrip("/"))
        for limit in (*root.glob("memory.memsw.limit_in_bytes"), *root.glob("memory.swap.max")):
            print(limit.name, limit.read_text(), end="")
"""


@pytest.mark.needs_cgroup_write
def test_it_does_not_swap(oomrec):
    run = oomrec("run", "--cgroup", "300M", "--", sys.executable, "-c", LIMITS_OF_SWAP)
    if run.stdout == "" and run.exit_code == 0:
        pytest.skip("this kernel does not account for swap")
    limits = (f"memory.memsw.limit_in_bytes {300 * MIB}\n", "memory.swap.max 0\n")
    assert run.stdout in limits, str(run)


@pytest.mark.needs_cgroup_write
def test_the_limit_holds_without_the_recorder(oomrec, victim):
    run = oomrec("run", "--mode", "off", "--cgroup", "50M", "--", victim("touched_late"), "200")
    assert run.exit_code == 128 + signal.SIGKILL and run.bundles() == []


@pytest.mark.needs_cgroup_write
def test_a_program_is_not_left_stalled_when_the_launcher_dies(oomrec, victim, tmp_path):
    """Its guard releases the program, and the kernel decides."""
    script = "import sys, time; held = b'x' * (20 << 20); print('up', flush=True); sys.stdin.readline(); held *= 20"
    process = oomrec.start(
        "run", "--cgroup", "100M", "--warn", "0", "--", sys.executable, "-c", script,
        stdin=(reader := os.pipe())[0],
    )  # fmt: skip
    children = process.once("up").children()
    program = next(pid for pid in children if b"-c" in cmdline(pid))
    process.kill()
    process.wait()
    os.write(reader[1], b"go\n")
    wait_for(lambda: has_ended(program), 10)
    for path in own_cgroups():
        if path.name == f"oomrec-{process.pid}":
            path.rmdir()


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("size", ["2GB", "0", "lots"])
def test_an_invalid_size_is_rejected(oomrec, size):
    run = oomrec("run", "--cgroup", size, "--", "true")
    assert run.exit_code == 125 and "invalid value" in run.stderr


def test_a_cgroup_that_cannot_be_created_gets_advice(oomrec, tmp_path):
    (tmp_path / "cgroup").write_text("")
    run = oomrec(
        "run", "--cgroup", "1G", "--", "true", env={"OOMREC_CGROUP_ROOT": str(tmp_path / "cgroup")}
    )
    assert run.exit_code == 125 and "--limit SIZE" in run.stderr, str(run)
