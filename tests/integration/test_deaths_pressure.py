"""The slow death: a program that waits for its memory to come back from the disk."""

import sys
from pathlib import Path

import pytest

# A program that allocates for seconds and turns its own machine's figures worse while it runs.
SCRIPT = """
import sys, time
root = sys.argv[1]
steps = [tuple(map(int, step.split(":"))) for step in sys.argv[2:]]  # full avg10, major faults
for full, faults in steps:
    with open(root + "/pressure/memory", "w") as file:
        file.write(f"some avg10={full}.00 avg60=0 avg300=0 total=1\\n"
                   f"full avg10={full}.00 avg60=0 avg300=0 total=1\\n")
    with open(root + "/self/stat", "w") as file:
        file.write(f"1 (python) S 1 1 1 0 -1 4194304 3094 55 {faults} 9 4 2 0 0 20 0 1\\n")
    until = time.monotonic() + 2  # it looks once a second
    while time.monotonic() < until:
        bytearray(1 << 17)
        time.sleep(0.01)
print("done")
"""


@pytest.fixture
def machine(tmp_path) -> Path:
    """A /proc with figures of its own, and what else is needed of the real one."""
    proc = tmp_path / "proc"
    (proc / "pressure").mkdir(parents=True)
    (proc / "self").mkdir()
    for name in ("self/status", "self/statm", "self/maps", "self/cgroup", "meminfo", "vmstat"):
        (proc / name).write_bytes((Path("/proc") / name).read_bytes())
    return proc


@pytest.mark.parametrize(
    "steps, expected",
    [
        (["0:10", "45:2000"], 1),
        (["45:2000", "50:9000"], 1),  # one time of need
        (["45:20", "45:40"], 0),  # others wait, this program does not
        (["5:10", "5:9000"], 0),  # it reads its files
        (["0:0", "45:9000", "1:9100", "60:20000"], 2),
    ],
)
def test_thrashing_is_told_once_per_time_of_need(preload, oomrec, machine, steps, expected):
    run = preload(
        sys.executable, "-c", SCRIPT, machine, *steps, env={"OOMREC_PROC_ROOT": str(machine)}
    )
    assert run.stdout == "done\n", str(run)
    found = run.bundles_for("pressure")
    assert len(found) == len(run.bundles()) == expected, str(run)
    for bundle in found:
        shown = oomrec.json("show", bundle)
        assert shown["verdict"]["code"] == "memory_pressure"
        assert "wait for memory" in shown["verdict"]["summary"]
        assert any("major faults" in line for line in shown["verdict"]["evidence"])
