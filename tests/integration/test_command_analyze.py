"""oomrec analyze: leaks, patterns and hidden memory in telemetry, rows and recordings; plots."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from schemas import check

MIB = 1 << 20
LEAK = """\
import sys, time
kept = []
def forget(): kept.append(bytearray(512 << 10))
def borrow(): bytearray(4 << 20)
for _ in range(300):
    forget()
    borrow()
    time.sleep(0.01)
bytearray(1 << 46)
"""


def event(at: float, allocated: float, **more) -> dict:
    """A minimal event of version 1."""
    return {"timestamp": 1_700_000_000 + at, "memory_allocated": int(allocated), **more}


def version_2(at: float, allocated: float, reserved: float, used: float, rank: int) -> dict:
    return {
        "schema_version": 2, "timestamp_ns": int((1_700_000_000 + at) * 1e9),
        "event_type": "sample", "collector": "test", "sampling_interval_ms": 100,
        "pid": 100 + rank, "host": "node", "device_id": 0,
        "allocator_allocated_bytes": int(allocated), "allocator_reserved_bytes": int(reserved),
        "allocator_active_bytes": None, "allocator_inactive_bytes": None,
        "allocator_change_bytes": 0, "device_used_bytes": int(used), "device_free_bytes": None,
        "device_total_bytes": 10_000 * MIB, "context": None, "metadata": {},
        "rank": rank, "local_rank": rank, "world_size": 2,
    }  # fmt: skip


@pytest.fixture
def analyze(oomrec, tmp_path):
    """analyze(events, words…) is the JSON of `oomrec analyze` for these events."""

    def run(events, *words) -> dict:
        (tmp_path / "events.json").write_text(json.dumps(events))
        found = oomrec.json("analyze", "events.json", *words)
        check("analyze", found)
        return found

    return run


def patterns(found: dict) -> dict[str, dict]:
    (stream,) = found["streams"]
    return {pattern["kind"]: pattern for pattern in stream["patterns"]}


def signs(found: dict) -> list[str]:
    return [sign["sign"] for sign in found["streams"][0]["leak_signs"]]


def test_a_rising_series_is_a_leak(analyze):
    found = analyze([event(i / 10, (100 + 4 * i) * MIB) for i in range(100)])
    leak = found["leak_detection"]
    assert leak["detected"] and leak["severity"] == "high"
    assert leak["memory_increase_mb"] == 380  # between means of five
    assert leak["time_window_seconds"] == pytest.approx(9.9)
    assert leak["suggestions"] and signs(found) == ["rising", "not_freed"]
    trend = patterns(found)["trend"]
    assert trend["severity"] == "high"
    assert trend["figures"]["bytes_per_second"] == pytest.approx(40 * MIB)


def test_shapes_are_distinguished(analyze):
    flat = [event(i / 10, 100 * MIB) for i in range(60)]
    quiet = analyze(flat)
    assert patterns(quiet) == {} and not quiet["leak_detection"]["detected"]
    assert quiet["suggestions"] == []
    spiky = [event(i / 10, (400 if i in (7, 29) else 100) * MIB) for i in range(60)]
    spikes = patterns(analyze(spiky))
    assert list(spikes) == ["spikes"] and spikes["spikes"]["figures"]["count"] == 2
    assert spikes["spikes"]["figures"]["highest_at_seconds"] == pytest.approx(0.7)
    wave = [event(i / 10, (100 + 15 * math.sin(i * math.tau / 20)) * MIB) for i in range(200)]
    ((kind, period),) = patterns(analyze(wave)).items()
    assert kind == "periodic" and period["figures"]["period_seconds"] == pytest.approx(2, abs=0.15)
    saw = [event(i / 10, (100 + 40 * (i % 3)) * MIB) for i in range(60)]
    assert "steps" in patterns(analyze(saw))


def test_ranks_are_separate_and_the_first_to_fail_is_named(analyze):
    def held(rank: int, i: int) -> float:
        return (500 + (20 * max(0, i - 20 - 30 * rank))) * MIB

    events = [version_2(i / 10, held(rank, i), held(rank, i), 4000 * MIB + held(rank, i), rank)
              for i in range(100) for rank in (0, 1)]  # fmt: skip
    found = analyze(events)
    assert [stream["rank"] for stream in found["streams"]] == [0, 1]
    assert found["first_rank"]["rank"] == 0
    assert found["first_rank"]["at_seconds"] == pytest.approx(2)
    assert found["streams"][0]["utilization_ratio"] == pytest.approx(0.608)


def test_a_process_outside_a_job_is_named_by_its_number(analyze):
    """Its events have rank 0 of 1; those of a job's only known rank, rank 0 of 2."""
    alone = [version_2(i / 10, i * MIB, i * MIB, i * MIB, 0) for i in range(20)]
    found = analyze([{**event, "world_size": 1} for event in alone])
    assert [stream["rank"] for stream in found["streams"]] == [None] and found["first_rank"] is None
    assert [stream["rank"] for stream in analyze(alone)["streams"]] == [0]


def test_fragmentation_and_the_hidden_gap(analyze):
    events = [version_2(i, 400 * MIB, 1000 * MIB, (2000 + 50 * i) * MIB, 0) for i in range(30)]
    (stream,) = analyze(events)["streams"]
    assert stream["fragmentation"] == {
        "mean_share": pytest.approx(0.6), "highest_share": pytest.approx(0.6),
        "severity": "critical",
    }  # fmt: skip
    gap = stream["hidden_memory"]
    assert gap["highest_bytes"] == (1000 + 50 * 29) * MIB
    assert gap["highest_share"] == pytest.approx(0.245)
    assert gap["bytes_per_second"] == pytest.approx(50 * MIB)
    found = {finding["sign"]: finding["severity"] for finding in gap["findings"]}
    assert found == {"persistent_drift": "critical", "fragmentation_like": "medium"}


def test_functions_that_leak_over_their_calls(oomrec, tmp_path):
    def call(name, number, grows_mb):
        return {"name": name, "start_time": number, "end_time": number + 1, "duration": 1,
                "memory_start_mb": 10, "memory_end_mb": 10 + grows_mb, "memory_peak_mb": 90}  # fmt: skip

    calls = [call("load", i, 40) for i in range(4)] + [call("step", i, 0) for i in range(50)]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    found = oomrec.json("analyze", "calls.json")
    check("analyze", found)
    (leak,) = found["function_leaks"]
    assert (leak["name"], leak["severity"], leak["memory_increase_mb"]) == ("load", "high", 160)
    assert found["leak_detection"]["detected"] and len(found["function_calls"]) == 54


def test_parts_that_were_not_requested_are_null(analyze):
    events = [event(i, i * MIB) for i in range(20)]
    leaks = analyze(events, "--detect-leaks")
    assert leaks["suggestions"] is None and leaks["streams"][0]["patterns"] is None
    assert leaks["leak_detection"]["detected"]
    optimized = analyze(events, "--optimize")
    assert optimized["leak_detection"] is None and optimized["suggestions"]
    both = analyze(events, "--optimize", "--detect-leaks")
    assert both["leak_detection"] and both["suggestions"]


@pytest.fixture
def leaking(preload, tmp_path):
    (tmp_path / "leaking.py").write_text(LEAK)
    return preload("python3", "leaking.py", env={"OOMREC_MODE": "exact"})


def test_a_recording_names_the_leaking_function(oomrec, leaking, tmp_path):
    bundle = leaking.only_bundle()
    found = oomrec.json("analyze", bundle)
    check("analyze", found)
    assert found["source"] == {"path": str(bundle), "kind": "recording"}
    assert "forget" in found["function_leaks"][0]["name"]
    assert found["function_leaks"][0]["memory_increase_mb"] > 50
    assert not any("borrow" in leak["name"] for leak in found["function_leaks"])
    calls = {row["name"]: row for row in found["function_calls"]}
    (kept,) = [row for name, row in calls.items() if "forget" in name]
    assert 149 <= kept["memory_end_mb"] <= 151 and kept["memory_peak_mb"] >= kept["memory_end_mb"]
    assert (
        kept["duration"] == pytest.approx(kept["end_time"] - kept["start_time"])
        and kept["duration"] > 1
    )
    page = oomrec("analyze", bundle).stdout
    assert page.splitlines()[2].startswith("leak: ") and "forget" in page
    assert all(len(line) <= 100 for line in page.splitlines()[1:])
    # The export of the same recording has the same series.
    oomrec("export", "--format", "telemetry", "-o", "t.jsonl", bundle, exits=0)
    again = oomrec.json("analyze", "t.jsonl")
    peaks = [stream["peak_bytes"] for stream in again["streams"]]
    assert peaks == [stream["peak_bytes"] for stream in found["streams"]]


def test_output_files(oomrec, tmp_path):
    (tmp_path / "events.json").write_text(json.dumps([event(i, i * MIB) for i in range(20)]))
    run = oomrec("analyze", "events.json", "--output", "found.json", "--report", "found.txt")
    assert run.exit_code == 0 and run.stdout == "", str(run)
    check("analyze", json.loads((tmp_path / "found.json").read_text()))
    page = oomrec("analyze", "events.json").stdout
    assert (tmp_path / "found.txt").read_text() == page
    oomrec("analyze", "events.json", "--output", "page", "--format", "txt")
    assert (tmp_path / "page").read_text() == page


@pytest.mark.parametrize(
    "text, exit_code, problem",
    [
        ("[]", 1, "there is nothing to analyze in events.json"),
        ("", 1, "there is nothing to analyze"),
        ("words", 2, "it is neither JSON nor a table"),
        ("[1]", 2, "record 1: it is not an object"),
        ('[{"timestamp": 1}, {"host": "x"}]', 2, "record 2: timestamp is missing"),
        ('[{"timestamp": 1, "schema_version": 7}]', 2, "record 1: Unsupported schema_version: 7"),
        ('{"timestamps": [1], "allocated": [], "reserved": []}', 2, "not equally long"),
    ],
)
def test_input_that_is_not_telemetry_is_rejected(oomrec, tmp_path, text, exit_code, problem):
    (tmp_path / "events.json").write_text(text)
    run = oomrec("analyze", "events.json")
    assert run.exit_code == exit_code and run.stdout == "" and problem in run.stderr, str(run)


# --- plots ----------------------------------------------------------------------------------------


@pytest.fixture
def drawn(oomrec, tmp_path, leaking):
    def run(*words, path: str | None = None):
        env = {"PATH": path} if path is not None else {}
        bundle = leaking.only_bundle()
        return oomrec("analyze", bundle, "--visualize", "--plot-dir", "pictures", *words, env=env)

    return run


def without(module_names: str, tmp_path) -> str:
    """A PATH with a python3 that has none of these modules."""
    folder = tmp_path / "bin"
    folder.mkdir()
    hide = f"sys.modules.update(dict.fromkeys({module_names!r}.split()))"
    (folder / "sitecustomize.py").write_text(f"import sys; {hide}\n")
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_pages_need_no_package_and_pngs_name_the_missing_one(drawn, tmp_path):
    run = drawn(path=without("matplotlib", tmp_path))
    assert run.exit_code == 2, str(run)
    assert "no PNG: matplotlib is not installed" in run.stderr
    assert "pip install 'oomrec[plot]'" in run.stderr
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["functions.html", "heatmap.html", "timeline.html"]
    for name in names:
        page = (tmp_path / "pictures" / name).read_text()
        assert "<svg" in page and "http" not in page.replace("http://www.w3.org", "")
    assert "forget" in (tmp_path / "pictures" / "functions.html").read_text()
    timeline = (tmp_path / "pictures" / "timeline.html").read_text()
    assert "polyline" in timeline
    assert re.search(r"<title>\d+\.\d s\n[^<]+: \d+\.\d MiB\n?", timeline), (
        "no value under the mouse"
    )
    assert f"drawn: {tmp_path}/pictures/timeline.html" in run.stderr


@pytest.mark.needs_module("matplotlib")
def test_pngs_are_drawn_by_matplotlib(drawn, tmp_path):
    run = drawn("--visualization")
    assert run.exit_code == 0, str(run)
    pictures = sorted((tmp_path / "pictures").glob("*.png"))
    assert [path.stem for path in pictures] == ["functions", "heatmap", "timeline"]
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") and path.stat().st_size > 5000


def test_without_python_nothing_is_drawn(drawn, tmp_path):
    run = drawn(path=str(tmp_path))
    assert run.exit_code == 2 and "there is no python3" in run.stderr
    assert not (tmp_path / "pictures").exists()


def test_a_directory_that_cannot_be_created_is_reported(drawn, tmp_path):
    (tmp_path / "pictures").write_text("a file")
    run = drawn()
    assert run.exit_code == 2 and "could not draw into" in run.stderr


def test_names_in_a_page_are_escaped(tmp_path):
    script = (
        Path(__file__).resolve().parents[2] / "tools" / "python" / "oomrec" / "_impl" / "draw.py"
    )
    name = '<script>alert(1)</script>&"'
    row = {"name": name, "seconds": [0, 1], "bytes": [1, 2]}
    data = {"title": name, "heat": [row],
            "timelines": [{"name": name, "seconds": [0, 1], "curves": [{"name": name, "bytes": [1, 2]}]}],
            "functions": [{"name": name, "peak_bytes": 2, "end_bytes": 1}]}  # fmt: skip
    path = without("matplotlib", tmp_path).split(":")[0]
    run = subprocess.run([f"{path}/python3", script, tmp_path / "out"], input=json.dumps(data),
                         text=True, capture_output=True, check=True)  # fmt: skip
    assert json.loads(run.stdout)["files"] == ["timeline.html", "heatmap.html", "functions.html"]
    for page in (tmp_path / "out").iterdir():
        assert "<script>alert" not in page.read_text() and "&lt;script&gt;" in page.read_text()
