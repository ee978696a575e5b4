"""Trackers without a recorder: events, statistics, exports, the clock.

They run in the test process. test_gpumemprof_recorder.py covers what the recorder adds.
"""

from __future__ import annotations

import csv
import json
import os
import threading
import time
from pathlib import Path

import pytest
from oomrec._impl.thread import _callbacks
from oomrec.gpumemprof import (
    ConfigurationError,
    CPUMemoryTracker,
    MemoryTracker,
    load_telemetry_events,
)
from oomrec.gpumemprof.oom_flight_recorder import OOMFlightRecorder, OOMFlightRecorderConfig
from oomrec.tfmemprof import TensorFlowMemoryTracker
from python_programs import in_a_child
from scripted_tracker import MIB, kinds, tick, tracker_of
from watching import wait_for

RANK = ("job_id", "rank", "local_rank", "world_size")


def test_a_change_between_two_samples_is_an_event():
    tracker = tracker_of((100, 100, 100), (150, 160, 200), (120, 160, 200), (120, 160, 200))
    tick(tracker, 3)
    tracker.stop_tracking()
    assert kinds(tracker) == ["start", "peak", "allocation", "deallocation", "stop"]
    [allocation] = tracker.get_events("allocation")
    assert allocation.to_dict() == {
        "timestamp": allocation.timestamp,
        "event_type": "allocation",
        "memory_allocated": 150 * MIB,
        "memory_reserved": 160 * MIB,
        "memory_change": 50 * MIB,
        "device_id": 0,
        "context": "Memory allocated: 50.00 MB",
        "job_id": None,
        "rank": 0,
        "local_rank": 0,
        "world_size": 1,
        "metadata": None,
        "active_memory": 150 * MIB,
        "inactive_memory": 0,
        "device_used": 200 * MIB,
        "device_free": 800 * MIB,
        "device_total": 1000 * MIB,
        "backend": "cuda",
    }
    assert tracker.get_events("deallocation")[0].memory_change == -30 * MIB


def test_statistics_have_every_field():
    tracker = tracker_of((100, 100, 100), (150, 160, 200), (120, 160, 250))
    tick(tracker, 2)
    stats = tracker.get_statistics()
    assert set(stats) == set(
        """peak_memory total_allocations total_deallocations total_allocation_bytes
        total_deallocation_bytes alert_count tracking_start_time total_events events_last_hour
        current_memory_allocated current_memory_reserved memory_utilization_percent
        average_allocation_size average_deallocation_size tracking_duration_seconds
        allocations_per_second bytes_allocated_per_second backend oom_flight_recorder_enabled
        last_oom_dump_path last_memory_check""".split()
    )
    assert stats["peak_memory"] == 150 * MIB
    assert (stats["total_allocations"], stats["total_allocation_bytes"]) == (1, 50 * MIB)
    assert (stats["total_deallocations"], stats["average_deallocation_size"]) == (1, 30 * MIB)
    assert stats["memory_utilization_percent"] == 25.0
    assert stats["total_events"] == stats["events_last_hour"] == 4
    assert stats["backend"] == "cuda" and stats["last_oom_dump_path"] is None
    tracker.clear_events()
    assert tracker.get_statistics()["total_allocations"] == 0 and tracker.events == []


def test_stats_are_counted_as_they_happen():
    """Programs read `tracker.stats[…]` without get_statistics()."""
    before = time.time()
    tracker = tracker_of((100, 100, 100), (150, 160, 200), (120, 160, 990), max_events=3)
    stats = tracker.stats
    assert set(stats) == set(
        """peak_memory total_allocations total_deallocations total_allocation_bytes
        total_deallocation_bytes alert_count total_events tracking_start_time
        last_memory_check""".split()
    )
    assert (stats["total_events"], stats["last_memory_check"]) == (1, 0)
    assert stats["tracking_start_time"] >= before
    tick(tracker, 2)
    assert kinds(tracker) == ["allocation", "deallocation", "critical"]
    # start, peak, allocation, deallocation, critical: two more than are kept
    assert (stats["total_events"], stats["alert_count"]) == (5, 1)
    assert tracker.get_statistics()["total_events"] == 3
    assert before <= stats["last_memory_check"] <= time.time()
    assert (stats["peak_memory"], stats["total_deallocation_bytes"]) == (150 * MIB, 30 * MIB)
    tracker.clear_events()
    assert stats is tracker.stats and stats["total_events"] == stats["peak_memory"] == 0
    assert stats["last_memory_check"] >= before and stats["tracking_start_time"] >= before


def test_a_failed_sample_is_no_check():
    tracker = tracker_of((100, 100, 100), RuntimeError("driver"))
    tick(tracker)
    assert kinds(tracker)[-1] == "error" and tracker.stats["last_memory_check"] == 0


def test_a_failed_sample_is_an_event_and_sampling_resumes(monkeypatch):
    now = [1000.0]
    tracker = tracker_of((100, 100, 100), RuntimeError("driver"), (120, 120, 120))
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    tick(tracker)
    assert kinds(tracker)[-1] == "error"
    tick(tracker)
    assert "allocation" not in kinds(tracker)
    now[0] += 1.5
    tick(tracker)
    assert "allocation" in kinds(tracker)


def test_events_can_be_filtered_and_the_ring_keeps_the_last():
    tracker = tracker_of((100, 100, 100), max_events=4)
    for number in range(10):
        tracker._add_event("allocation", number, str(number))
    events = tracker.get_events()
    assert [event.context for event in events] == ["6", "7", "8", "9"]
    assert [event.context for event in tracker.get_events(last_n=2)] == ["8", "9"]
    assert tracker.get_events(last_n=0) == []
    assert tracker.get_events(since=events[2].timestamp)[0].context in ("6", "7", "8")
    assert tracker.get_events("peak") == []


def test_a_timeline():
    tracker = tracker_of((100, 110, 100))
    start = tracker.events[0].timestamp
    for offset, size in ((0.4, 150), (0.6, 170), (3.2, 120)):
        tracker.collector.samples = [(size, size + 10, size)]
        tracker._add_event("allocation", 0, None)
        tracker._events[-1].timestamp = start + offset
    line = tracker.get_memory_timeline(1.0)
    assert [each - start for each in line["timestamps"]] == pytest.approx([0, 1, 2, 3])
    assert line["allocated"] == [170 * MIB, 170 * MIB, 170 * MIB, 120 * MIB]
    assert line["reserved"] == [180 * MIB, 180 * MIB, 180 * MIB, 130 * MIB]
    with pytest.raises(ValueError, match="interval"):
        tracker.get_memory_timeline(0)
    tracker.clear_events()
    assert tracker.get_memory_timeline() == {"timestamps": [], "allocated": [], "reserved": []}


@pytest.mark.parametrize("form", ["json", "csv"])
def test_export_is_telemetry(tmp_path, monkeypatch, form):
    for name, value in (("RANK", "1"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    tracker = tracker_of((100, 110, 120), (150, 160, 200), job_id="j")
    tick(tracker)
    path = tmp_path / f"events.{form}"
    tracker.export_events(path, form)
    events = load_telemetry_events(path, permissive_legacy=False)
    assert [event.event_type for event in events] == ["start", "peak", "allocation"]
    last = events[-1]
    assert last.collector == "gpumemprof.cuda_tracker" and last.pid == os.getpid()
    assert (last.job_id, last.rank, last.local_rank, last.world_size) == ("j", 1, 0, 2)
    assert last.sampling_interval_ms == 3_600_000 and last.allocator_change_bytes == 50 * MIB
    assert (last.device_used_bytes, last.device_total_bytes) == (200 * MIB, 1000 * MIB)
    assert last.metadata["backend"] == "cuda" and "telemetry_collector" not in last.metadata


def test_an_unknown_export_format(tmp_path):
    with pytest.raises(ValueError, match="Unsupported format: xml"):
        tracker_of((1, 1, 1)).export_events(tmp_path / "x", "xml")


@pytest.mark.parametrize(
    "options", [{"sampling_interval": 0}, {"sampling_interval": -1}, {"max_events": 0}]
)
def test_invalid_tracker_options(options):
    with pytest.raises(ConfigurationError, match=next(iter(options))) as error:
        MemoryTracker(device="cpu", **options)
    assert isinstance(error.value, ValueError)  # as programs written for gpumemprof expect


# With a sampling thread


@pytest.mark.parametrize(
    "made",
    [lambda: MemoryTracker(device="cpu", sampling_interval=0.02), lambda: CPUMemoryTracker(0.02)],
    ids=["MemoryTracker", "CPUMemoryTracker"],
)
def test_this_process_is_tracked(made, tmp_path):
    with made() as tracker:
        assert tracker.is_tracking and tracker.backend == "cpu"
        held = bytearray(b"x" * (48 * MIB))
        wait_for(lambda: tracker.get_events("allocation"))
        del held
    assert not tracker.is_tracking
    assert sum(event.memory_change for event in tracker.get_events("allocation")) >= 40 * MIB
    assert kinds(tracker)[0] == "start" and kinds(tracker)[-1] == "stop"
    assert {event.device_id for event in tracker.events} == {-1}
    assert tracker.get_statistics()["tracking_duration_seconds"] < 600
    tracker.export_events(tmp_path / "e.json", "json")
    assert load_telemetry_events(tmp_path / "e.json")[0].collector == "gpumemprof.cpu_tracker"


def test_a_tracker_can_be_restarted():
    tracker = MemoryTracker(device="cpu", sampling_interval=10)
    tracker.stop_tracking()
    for _ in range(2):
        tracker.start_tracking()
        tracker.start_tracking()
        tracker.stop_tracking()
        tracker.stop_tracking()
    assert kinds(tracker) == ["start", "stop"] * 2


def test_the_thread_ends_with_the_last_tracker():
    before = set(threading.enumerate())
    trackers = [MemoryTracker(device="cpu", sampling_interval=0.05) for _ in range(3)]
    for tracker in trackers:
        tracker.start_tracking()
    assert len(set(threading.enumerate()) - before) <= 1  # one thread for all
    for tracker in trackers:
        tracker.stop_tracking()
    wait_for(lambda: set(threading.enumerate()) <= before)


def test_a_forked_child_does_not_track():
    """The parent's trackers are stopped in the child, whatever lock another thread held at the fork."""
    tracker = MemoryTracker(device="cpu", sampling_interval=0.005)

    def work():
        assert not tracker.is_tracking
        tracker.events, tracker.get_statistics(), tracker.stop_tracking()

    tracker.start_tracking()
    try:
        for _ in range(5):
            assert in_a_child(work) == 0
    finally:
        tracker.stop_tracking()


def test_a_forked_child_that_tracks_has_one_thread():
    """The parent's sampling does not continue in the child beside its own."""
    tracker = MemoryTracker(device="cpu", sampling_interval=0.01)
    tracker.start_tracking()

    subscribed = len(_callbacks._subscriptions)

    def work():
        with tracker:
            assert len(_callbacks._subscriptions) == subscribed
        assert len(_callbacks._subscriptions) == subscribed - 1

    assert in_a_child(work) == 0
    tracker.stop_tracking()


def test_a_sample_in_progress_at_the_end_adds_nothing():
    tracker = tracker_of((100, 100, 100), (300, 600, 990))
    take = tracker.sample

    def sample_and_stop():
        tracker.sample = take
        sample = take()
        tracker.stop_tracking()
        return sample

    tracker.sample = sample_and_stop
    tick(tracker)
    assert kinds(tracker) == ["start", "stop"]


def test_tracking_does_not_start_without_a_thread(monkeypatch):
    tracker = MemoryTracker(device="cpu")

    def no_thread(self):
        raise RuntimeError("can't start new thread")

    before = _callbacks._subscriptions
    with monkeypatch.context() as patched:
        patched.setattr(_callbacks, "_thread", None)  # the thread of other tests
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            tracker.start_tracking()
    assert not tracker.is_tracking and _callbacks._subscriptions == before
    with tracker:
        assert tracker.is_tracking


@pytest.mark.parametrize("made", [MemoryTracker, CPUMemoryTracker, TensorFlowMemoryTracker])
def test_every_tracker_has_its_rank(made, tmp_path):
    given = {"job_id": "j", "rank": 1, "local_rank": 0, "world_size": 2}
    with made(**given) as tracker:
        pass
    tracker.export_events(tmp_path / "e.json", "json")
    event = load_telemetry_events(tmp_path / "e.json")[0]
    assert {key: getattr(event, key) for key in given} == given
    assert tracker.distributed_identity == given
    assert {key: getattr(tracker.events[0], key) for key in given} == given


@pytest.mark.parametrize("made", [MemoryTracker, CPUMemoryTracker, TensorFlowMemoryTracker])
def test_outside_a_job_the_rank_is_0_of_1(made, tmp_path, monkeypatch):
    for name in (
        "RANK",
        "OMPI_COMM_WORLD_RANK",
        "SLURM_PROCID",
        "TORCHELASTIC_RUN_ID",
        "SLURM_JOB_ID",
    ):
        monkeypatch.delenv(name, raising=False)
    with made() as tracker:
        pass
    tracker.export_events(tmp_path / "e.json", "json")
    tracker.export_events(tmp_path / "e.csv", "csv")
    [first, *_] = json.loads((tmp_path / "e.json").read_text())
    assert [first[key] for key in RANK] == [None, 0, 0, 1]
    [first, *_] = csv.DictReader((tmp_path / "e.csv").open(newline=""))
    assert [first[key] for key in RANK] == ["", "0", "0", "1"]


@pytest.mark.parametrize("made", [MemoryTracker, CPUMemoryTracker, TensorFlowMemoryTracker])
def test_a_rank_beyond_its_world_is_rejected(made):
    with pytest.raises(ValueError, match="rank must be < world_size: 2 of 2"):
        made(rank=2, world_size=2)


def test_the_cpu_trackers_file_name_has_the_time(tmp_path):
    with CPUMemoryTracker() as tracker:
        pass
    path = tracker.export_events_with_timestamp(str(tmp_path), "json")
    assert os.path.basename(path).startswith("cpu_tracker_") and path.endswith(".json")
    assert json.loads(Path(path).read_text())[0]["event_type"] == "start"
    assert tracker.get_statistics()["mode"] == "cpu"


def test_the_ring_of_a_recorder_keeps_the_last_events():
    recorder = OOMFlightRecorder(OOMFlightRecorderConfig(buffer_size=3))
    for number in range(5):
        recorder.record_event({"i": number})
    assert [event["i"] for event in recorder.snapshot_events()] == [2, 3, 4]
    recorder.snapshot_events()[0]["i"] = 7
    assert recorder.snapshot_events()[0]["i"] == 2


@pytest.mark.parametrize(("size", "kept"), [(None, 40), (0, 40), (-1, 40), (7, 7)])
def test_the_default_buffer_size_is_the_trackers(size, kept):
    tracker = MemoryTracker(device="cpu", max_events=40, oom_buffer_size=size)
    for _ in range(60):
        tracker._add_event("allocation", 1, None)
    assert len(tracker._oom_flight_recorder.snapshot_events()) == tracker.oom_buffer_size == kept


def test_a_recorder_that_is_off_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tracker = MemoryTracker(device="cpu")
    error = RuntimeError("CUDA out of memory")
    assert tracker.handle_exception(error) is None and tracker.last_oom_dump_path is None
    with pytest.raises(RuntimeError) as raised, tracker.capture_oom():
        raise error
    assert raised.value is error
    assert [event.event_type for event in tracker.events] == ["error", "error"]
    assert list(tmp_path.iterdir()) == []
