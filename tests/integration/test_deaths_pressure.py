"""Thrashing: a program that waits for its memory to come back from the disk."""

import sys
from pathlib import Path

import pytest

# A program that allocates for seconds, and meanwhile worsens the figures in its fake /proc.
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
    until = time.monotonic() + 2  # the recorder checks once a second
    while time.monotonic() < until:
        bytearray(1 << 17)
        time.sleep(0.01)
print("done")
"""


@pytest.fixture
def machine(tmp_path) -> Path:
    """A fake /proc with chosen pressure figures and copies of what else is needed."""
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
        (["45:2000", "50:9000"], 1),  # one episode
        (["45:20", "45:40"], 0),  # other processes wait, this one does not
        (["5:10", "5:9000"], 0),  # its faults are file reads
        (["0:0", "45:9000", "1:9100", "60:20000"], 2),
    ],
)
def test_thrashing_is_reported_once_per_episode(preload, oomrec, machine, steps, expected):
    run = preload(
        sys.executable, "-c", SCRIPT, machine, *steps, env={"OOMREC_PROC_ROOT": str(machine)}
    )
    assert run.stdout == "done\n", str(run)
    found = run.bundles_for("pressure")
    assert len(found) == len(run.bundles()) == expected, str(run)
    for bundle in found:
        shown = oomrec.json("show", bundle)
        assert shown["verdict"]["code"] == "memory_pressure"
        assert "it waits for memory instead of working" in shown["verdict"]["summary"]
        assert any("major faults" in line for line in shown["verdict"]["evidence"])
