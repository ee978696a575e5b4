"""Thrashing: a program that waits for its memory to come back from the disk."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from consistency import contradictions
from watching import Watch, wait_for

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
    until = time.monotonic() + 4  # the recorder checks once a second, later on a busy machine
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
    # Without cgroups: one of version 2 has figures of its own, which count instead.
    roots = {"OOMREC_PROC_ROOT": str(machine), "OOMREC_CGROUP_ROOT": str(machine / "no cgroup")}
    run = preload(sys.executable, "-c", SCRIPT, machine, *steps, env=roots)
    assert run.stdout == "done\n", str(run)
    found = run.bundles_for("pressure")
    assert len(found) == len(run.bundles()) == expected, str(run)
    for bundle in found:
        shown = oomrec.json("show", bundle)
        assert shown["verdict"]["code"] == "memory_pressure"
        assert "it waits for memory instead of working" in shown["verdict"]["summary"]
        assert any("major faults" in line for line in shown["verdict"]["evidence"])


# --- Real pressure, in cgroups of their own -------------------------------------------------------


def verdict_of(oomrec, run) -> dict:
    shown = oomrec.json("show", run.only_bundle())
    assert contradictions(shown) == []
    return shown["verdict"]


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize(
    "number, code",
    [
        (signal.SIGKILL, "killed_near_limit"),
        (signal.SIGTERM, "terminated_under_pressure"),
    ],
)
def test_a_signal_to_a_process_that_thrashes(oomrec, start_thrashing, number, code):
    process = start_thrashing(oomrec, "run", "--")
    time.sleep(1.2)  # two samples from outside
    os.kill(process.child(), number)
    verdict = verdict_of(oomrec, oomrec.finish(process))
    assert (verdict["code"], verdict["certainty"]) == (code, "possible"), verdict
    waits = r"it had \d+ major faults in .* s, while its cgroup needed \d+ evicted pages again"
    assert any(re.fullmatch(waits, line) for line in verdict["evidence"]), verdict


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_while_another_cgroup_thrashes(oomrec, plain, victim, start_thrashing, number):
    start_thrashing(plain)
    process = oomrec.start("run", "--", victim("grows"), stdin=subprocess.PIPE).once("ready")
    time.sleep(1.2)
    os.kill(process.child(), number)
    verdict = verdict_of(oomrec, oomrec.finish(process))
    assert verdict["code"] == "killed_externally", verdict
    assert "not for lack of memory" in verdict["summary"]


@pytest.mark.needs_cgroup_write
def test_the_one_that_waits_is_named(oomrec, preload, victim, start_thrashing, tmp_path):
    """Not the largest, which sleeps."""
    trigger = tmp_path / "trigger"
    os.mkfifo(trigger)
    large = preload.start(
        sys.executable, "-c", "import time; held = bytearray(200 << 20); print('ready', flush=True);"
        " time.sleep(100)",
    )  # fmt: skip
    assert large.stdout.readline() == b"ready\n"
    watching = Watch(oomrec, MEMORY_PRESSURE_WATCH=trigger)
    wait_for(lambda: watching.sees(large.pid))
    time.sleep(1.2)
    with trigger.open("w") as fifo:
        fifo.write("x")
    time.sleep(0.5)
    assert list(preload.dump_dir.glob("oom_*/manifest.json")) == []  # nobody that we know waits
    thrashing = start_thrashing(preload)
    wait_for(lambda: watching.sees(thrashing.pid))
    time.sleep(10)  # until it may look again; it has sampled the new process meanwhile
    with trigger.open("w") as fifo:
        fifo.write("x")
    (manifest,) = wait_for(lambda: list(preload.dump_dir.glob("oom_*/manifest.json")))
    shown = oomrec.json("show", manifest.parent)
    assert shown["verdict"]["code"] == "memory_pressure"
    assert shown["process"]["pid"] == thrashing.pid
    assert shown["resident_memory"]["seconds_before_end"] < 1  # its pages as they are
    watching.stop()
