"""oomrec track: events, alerts and bundles of another process, from outside."""

from __future__ import annotations

import csv
import json
import signal
import time
from contextlib import suppress

import pytest
import telemetry
from python_programs import CUDA
from schemas import check
from watched_program import Program
from watching import eventually, part_of_core, wait_for

MIB = 1 << 20
RANK = {"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "night"}
RANK_KEYS = ("job_id", "rank", "local_rank", "world_size")


def events_of(path) -> list[dict]:
    events = json.loads(path.read_text())
    check("telemetry", events)
    for event in events:
        assert telemetry.problems(event) == [], event
    return events


def types(events) -> list[str]:
    return [event["event_type"] for event in events]


class Track:
    """A running `oomrec track` that has sampled its process at least once."""

    def __init__(self, oomrec, tmp_path, *words, **options):
        self.oomrec = oomrec
        self.file = tmp_path / "events.json"
        words = ["track", "--interval", "0.02", "--output", self.file, *words]
        self.process = oomrec.start(*words, **options)
        self.until("start")

    def events(self) -> list[dict]:
        return events_of(self.file) if self.file.exists() else []

    def until(self, event_type: str) -> dict:
        def found():
            return [event for event in self.events() if event["event_type"] == event_type]

        return wait_for(found, 20)[-1]

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.oomrec.finish(self.process)


def test_events_alerts_and_a_bundle_of_a_process_that_nears_its_limit(oomrec, preload, tmp_path):
    program = Program(preload.start, env={"OOMREC_LIMIT": "400M", **RANK})
    words = ["--oom-flight-recorder", "--oom-dump-dir", "flights", "--oom-buffer-size", "7"]
    track = Track(oomrec, tmp_path, program.pid, *words)
    program.do(60)
    track.until("allocation")
    program.do(90, 90, 90)
    warning = track.until("warning")
    program.do(60)
    critical = track.until("critical")
    wait_for(lambda: list(tmp_path.glob("flights/oom_*/telemetry.json")))
    program.do("free")
    track.until("deallocation")
    run = track.stop()
    assert run.exit_code == 0, str(run)

    events = track.events()
    assert types(events)[0] == "start" and types(events)[-1] == "stop"
    assert {"peak", "allocation", "sample"} <= set(types(events))
    assert warning["metadata"]["limit"] == "soft"
    assert warning["metadata"]["limit_bytes"] == 400 * MIB
    assert 80 <= warning["metadata"]["limit_percent"] < 95 <= critical["metadata"]["limit_percent"]
    for event in events:
        assert event["pid"] == program.pid and event["device_id"] == -1
        assert (event["rank"], event["world_size"], event["job_id"]) == (2, 4, "night")
    peak = next(event for event in events if event["event_type"] == "peak")
    assert peak["allocator_allocated_bytes"] <= 400 * MIB
    highest = max(event["allocator_allocated_bytes"] for event in events)
    assert 390 * MIB <= highest <= 400 * MIB
    changes = sum(event["allocator_change_bytes"] for event in events if event["event_type"] != "peak"
                  and event["event_type"] not in ("warning", "critical"))  # fmt: skip
    last = events[-1]["allocator_allocated_bytes"]
    assert changes == last - events[0]["allocator_allocated_bytes"]

    (bundle,) = tmp_path.glob("flights/oom_*")
    assert f" bundle: {bundle}\n" in run.stdout and " critical: 9" in run.stdout
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert sorted(manifest["files"]) == sorted(path.name for path in bundle.iterdir())
    seen = events_of(bundle / "telemetry.json")
    assert len(seen) == 7 and seen[-1] == critical
    shown = oomrec.json("show", bundle)
    assert shown["context"].startswith("critical: 9") and "(soft)" in shown["context"]
    assert shown["resident_memory"] is not None, "a look from outside"
    assert not preload.dump_dir.exists(), "the process itself wrote none"


def test_retention_keeps_the_requested_number_of_bundles(oomrec, preload, tmp_path):
    program = Program(preload.start, env={"OOMREC_LIMIT": "200M"})
    for _ in range(2):
        assert oomrec("dump", "--to", "flights", program.pid).exit_code == 0
    words = ["--oom-flight-recorder", "--oom-dump-dir", "flights", "--oom-max-dumps", "1"]
    track = Track(oomrec, tmp_path, program.pid, *words)
    program.do(189)
    track.until("critical")
    wait_for(lambda: list(tmp_path.glob("flights/oom_*/telemetry.json")))
    wait_for(
        lambda: len(list(tmp_path.glob("flights/oom_*"))) == 1
    )  # it is written, then others go
    track.stop()


def test_a_watchdog_names_the_largest_holder(oomrec, preload, tmp_path):
    program = Program(preload.start, env={"OOMREC_LIMIT": "200M"})
    track = Track(oomrec, tmp_path, program.pid, "--watchdog", "--critical-threshold", "99")
    program.do(180)
    track.until("warning")
    out = track.process.stdout
    lines = []
    while not any("largest holders:" in line for line in lines):
        lines.append(out.readline().decode())
        assert lines[-1], lines
    assert "180.0 MiB" in (line := out.readline().decode()) and "hoard" in line
    track.stop()


def test_failures_are_error_events(oomrec, preload, tmp_path):
    program = Program(preload.start)
    track = Track(oomrec, tmp_path, program.pid)
    program.do("refuse")
    error = track.until("error")
    assert error["context"] == "memory was refused: 1 allocation"
    run = track.stop(signal.SIGTERM)
    assert " error: memory was refused: 1 allocation\n" in run.stdout
    assert track.events()[-1]["context"] == "stopped by a signal"


def test_events_after_the_last_sample_are_reported(oomrec, preload, tmp_path):
    """The program takes 200 MiB, frees them, has a failed allocation, and ends."""
    program = Program(preload.start)
    track = Track(oomrec, tmp_path, program.pid, "--interval", "30")
    program.do(200, "free", "refuse")
    program.end()
    run = oomrec.finish(track.process)
    events = track.events()
    assert types(events) == ["start", "error", "peak", "stop"], run.stdout
    assert events[1]["context"] == "memory was refused: 1 allocation"
    assert events[1]["timestamp_ns"] > events[0]["timestamp_ns"]
    assert " error: memory was refused: 1 allocation\n" in run.stdout
    assert "  memory was refused: 1 allocation\n" in run.stdout
    assert events[2]["context"].startswith("peak 20") and "peak 20" in run.stdout


def test_a_failure_before_an_exec_is_reported(oomrec, preload, tmp_path):
    program = Program(preload.start)
    track = Track(oomrec, tmp_path, program.pid, "--interval", "0.3")
    program.send("become")
    assert track.until("error")["context"] == "memory was refused: 1 allocation"
    program.send("cat runs")
    assert program.process.stdout.readline() == b"cat runs\n"
    runs_since = time.time_ns()  # a sample before the exec may have had the failure
    with suppress(AssertionError):  # the sample before this moment may have had all that is new
        wait_for(lambda: track.events()[-1]["timestamp_ns"] > runs_since, within_s=3)
    program.end()
    assert "memory was refused: 1 allocation\n  it exited" in oomrec.finish(track.process).stdout


def test_a_peak_before_the_first_sample_is_ignored(oomrec, preload, tmp_path):
    program = Program(preload.start)
    program.do(200, "free")
    time.sleep(0.3)  # the time line has a point ten times a second, …
    program.do(1)  # … which an event adds
    track = Track(oomrec, tmp_path, program.pid, "--interval", "30")
    program.end()
    oomrec.finish(track.process)
    assert types(track.events()) == ["start", "stop"], track.events()


def test_it_ends_with_its_process(oomrec, preload, tmp_path):
    program = Program(preload.start)
    track = Track(oomrec, tmp_path, program.pid, "--interval", "600")
    program.end()
    run = oomrec.finish(track.process)  # notified of its end: the next sample would come too late
    assert run.exit_code == 0
    assert track.events()[-1]["context"] == "it exited with code 0"
    assert "  it exited with code 0\n" in run.stdout


@pytest.mark.needs_pid_namespace
def test_the_default_is_the_youngest_recorded_process(apart, tmp_path):
    run = apart(
        "recorded sleep 100; recorded sleep 200; sleep 300 &\n"
        "oomrec track --duration 0.2 --output events.csv --format csv"
    )
    assert run.exit_code == 0, str(run)
    with (tmp_path / "events.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[0] == "schema_version"
    assert f"sleep 200 ({rows[0]['pid']}) on " in run.stdout
    assert json.loads(rows[0]["metadata"])["limit"]


def test_a_process_that_is_not_recorded_has_resident_memory(oomrec, plain, tmp_path):
    program = Program(plain.start)
    track = Track(oomrec, tmp_path, program.pid, "--interval", "1")
    program.do(120)
    growth = track.until("warning")
    assert growth["context"].startswith("grew by 1") and growth["context"].endswith(
        "between two samples"
    )
    track.stop()
    event = track.events()[-1]
    assert event["allocator_allocated_bytes"] == event["device_used_bytes"] > 120 * MIB
    for option in ("--oom-flight-recorder", "--watchdog"):
        run = oomrec("track", option, program.pid)
        assert run.exit_code == 2 and f"{option} needs a recorded process" in run.stderr
        assert "oomrec run -- PROGRAM" in run.stderr


@pytest.mark.needs_pid_namespace
def test_tracking_the_machine_leaves_out_recording_fields(apart):
    """A script that always requests both, and starts before anything is recorded."""
    run = apart("oomrec track --oom-flight-recorder --watchdog --device cpu --duration 0.2")
    assert run.exit_code == 0 and run.stdout.startswith("memory of the machine: "), str(run)
    for option in ("--oom-flight-recorder", "--watchdog"):
        assert f"oomrec track: {option} needs a recorded process" in run.stderr
    assert run.stderr.count("continuing without it\n") == 2


ON_TWO_GPUS = f"""{CUDA}
for ordinal, mib in ((0, 300), (1, 100)):
    use(ordinal)
    allocate(mib)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_gpus_events_combine_the_recording_and_nvml(oomrec, preload, fake_gpu, tmp_path):
    """The recording has the process' own memory, NVML that of all processes."""
    program = preload.start("python3", "-c", ON_TWO_GPUS, env=fake_gpu, stdin=-1).once("ready")
    env = {**fake_gpu, "FAKE_NVML": "0:total=1G,used=900M,pid=1/600M;1:total=1G,used=150M"}
    words = ["track", program.pid, "--duration", "0.2", "--output", "events.json"]
    run = oomrec(*words, env=env, exits=0)
    events = events_of(tmp_path / "events.json")
    first = events[0]
    assert first["device_id"] == 0 and first["allocator_allocated_bytes"] == 300 * MIB
    assert first["device_used_bytes"] == 900 * MIB and first["device_free_bytes"] == 124 * MIB
    assert types(events)[1] == "warning" and events[1]["metadata"]["limit"] == "device"
    oomrec(*words, "--device", "1", env=env)
    assert events_of(tmp_path / "events.json")[0]["device_used_bytes"] == 150 * MIB
    oomrec(*words, "--device", "cpu", env=env)
    assert events_of(tmp_path / "events.json")[0]["device_id"] == -1
    run = oomrec(*words, "--device", "2", env=env)
    assert run.exit_code == 2 and "It has used cuda:0, cuda:1" in run.stderr


@pytest.mark.parametrize(
    "words, problem",
    [
        (["--rank", "1"], "there is no rank 1 of 1"),
        (["--rank", "4", "--world-size", "4"], "there is no rank 4 of 4"),
        (["--world-size", "0"], "there is no world size 0"),
        (["--warning-threshold", "96"], "--warning-threshold 96 is above --critical-threshold 95"),
        (["--format", "xml"], "invalid value 'xml' for --format"),
    ],
)
def test_contradictory_options_are_rejected(oomrec, plain, words, problem):
    process = plain.start("sleep", "600")  # it has no rank
    run = oomrec("track", process.pid, "--device", "cpu", "--duration", "0.1", *words)
    assert run.exit_code == 2 and problem in run.stderr, str(run)


def test_rank_options_override_the_processs_rank(oomrec, preload, tmp_path):
    program = Program(preload.start, env=RANK)
    track = Track(oomrec, tmp_path, program.pid, "--rank", "3", "--job-id", "day")
    track.stop()
    event = track.events()[0]
    assert (event["rank"], event["local_rank"], event["job_id"]) == (3, 0, "day")


def test_outside_a_job_the_rank_is_0_of_1(oomrec, plain, tmp_path):
    process = plain.start("sleep", "600")
    run = oomrec(
        "track", process.pid, "--device", "cpu", "--duration", "0.1", "--output", "alone.json"
    )
    assert run.exit_code == 0, str(run)
    for event in events_of(tmp_path / "alone.json"):
        assert [event[key] for key in RANK_KEYS] == [None, 0, 0, 1]


def test_it_costs_little(oomrec, preload, tmp_path):
    """Ten samples a second use at most 3 % of a core, even on a busy machine."""
    program = Program(preload.start)
    track = Track(oomrec, tmp_path, program.pid, "--interval", "0.1")

    @eventually  # others may keep the machine busy for a while
    def costs_little():
        assert part_of_core(track.process.pid, 2) <= 0.03

    track.stop()
