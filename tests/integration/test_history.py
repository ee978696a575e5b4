"""The history in a recording matches what the program did: checkpoints, marks, temporary blocks."""

from __future__ import annotations

import bisect
import json
import subprocess
import sys

import pytest

MIB = 1 << 20


@pytest.fixture
def read_history(build_dir):
    """read_history(file) is the history in a session or in a bundle's recording, as JSON."""
    program = build_dir / "tests" / "unit" / "tools" / "tools_recorded_history"

    def read(recording) -> dict:
        run = subprocess.run([program, recording], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    return read


def test_marks_from_signal_handlers_are_kept_or_counted(preload, oomrec, victim):
    run = preload(victim("marks_in_handlers"), env={"OOMREC_MODE": "exact"})
    timeline = oomrec.json("timeline", run.only_bundle())
    assert len(timeline["marks"]) + timeline["dropped_marks"] == int(run.stdout) >= 2000
    assert timeline["dropped_marks"] > 0 and {mark["text"] for mark in timeline["marks"]} == {
        "tick"
    }
    assert (
        "more marks that did not fit into the recording"
        in oomrec("timeline", run.only_bundle()).stdout
    )


def assert_true_to_marks(recording: dict) -> int:
    """Each checkpoint agrees with the marks around it. Returns the number of checkpoints.

    A checkpoint's time is from the coarse clock, some milliseconds late, and a mark comes before
    its step. So it may belong to any of three steps; on a busy machine its thread may wait between the
    time and the figures, while the others make one step more.
    """
    times = [mark["time_ns"] for mark in recording["marks"]]
    truth = [tuple(map(int, mark["text"].split())) for mark in recording["marks"]]
    compared = 0
    for checkpoint in recording["checkpoints"][:-1]:
        at = bisect.bisect(times, checkpoint["time_ns"])
        near = truth[max(0, at - 2) : at + 2]
        if (
            at == 0 or at == len(times) or len(near) < 3
        ):  # no mark says what was held after the last step
            continue
        held = checkpoint["held"]
        grown, sawn = (held.get(name, 0) / MIB for name in ("grow", "saw"))
        assert min(n for n, _ in near) - 0.1 <= grown <= max(n for n, _ in near) + 1.1, checkpoint
        counts = [n for _, n in near]
        emptied = counts != sorted(counts)
        assert (0 if emptied else min(counts) - 0.1) <= sawn <= max(counts) + 1.1, checkpoint
        compared += 1
    return compared


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_growing_list_and_a_sawtooth(preload, victim, read_history, mode):
    run = preload(sys.executable, victim("python/grows_and_saws.py"), env={"OOMREC_MODE": mode})
    assert run.exit_code == 128 + 9, str(run)
    child = int(run.stdout)

    bundle = read_history(run.bundle_at("end") / "recording.oomrec")
    assert len(bundle["marks"]) == 60
    assert assert_true_to_marks(bundle) >= 5
    assert len(bundle["checkpoints"]) >= 8
    at_end = bundle["checkpoints"][-1]["held"]
    assert 60 * MIB <= at_end["grow"] <= 60.1 * MIB
    [oldest] = {
        row["oldest_ns"]
        for row in bundle["holders"]
        if row["function"] == "grow" and row["live_bytes"] >= 60 * MIB
    }
    first = bundle["marks"][0]["time_ns"]
    assert first - 1_100_000_000 <= oldest <= first + 1_000_000_000

    sessions = {
        (session := read_history(path))["pid"]: session for path in preload.sessions_left(0)
    }
    assert assert_true_to_marks(sessions[run.pid]) >= 5

    born_later = sessions[child]
    assert {mark["text"] for mark in born_later["marks"]} == {"of the child"}
    assert born_later["checkpoints"][0]["time_ns"] >= bundle["marks"][-1]["time_ns"]
    functions = set().union(*(checkpoint["held"] for checkpoint in born_later["checkpoints"]))
    assert "grow_in_child" in functions
    assert born_later["checkpoints"][-1]["held"]["grow_in_child"] >= 9 * MIB


def test_blocks_freed_before_the_next_allocation_are_temporary(preload, victim, read_history):
    run = preload(
        sys.executable,
        victim("python/temporary_blocks.py"),
        env={"OOMREC_MODE": "exact", "OOMREC_PYTHON_SAMPLING": "0"},
    )
    rows = read_history(run.bundle_at("end") / "recording.oomrec")["holders"]

    def share(function: str) -> float:
        [row] = [row for row in rows if row["function"] == function and row["total_count"] >= 1000]
        return row["temporary_count"] / row["total_count"]

    assert share("at_once") > 0.99
    assert share("kept_for_a_while") < 0.01


def test_marks_from_c_and_from_a_signal_handler(preload, victim, read_history):
    run = preload(victim("api_in_c"), env={"OOMREC_MAX_DUMPS": 0})
    recording = read_history(run.bundle_at("asked in C") / "recording.oomrec")
    assert [mark["text"] for mark in recording["marks"]] == ["halfway", "in a handler", ""]
    assert all(
        recording["start_ns"] <= mark["time_ns"] <= recording["checkpoints"][-1]["time_ns"]
        for mark in recording["marks"]
    )
