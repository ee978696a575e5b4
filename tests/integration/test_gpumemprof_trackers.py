"""Trackers, profilers and collectors under GPU Memory Profiler's names, without a recorder.

In this process; devices that are not here are modules that answer as PyTorch, numba and cuda-python
do. What the recorder adds is in test_gpumemprof_recorder.py.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from oomrec import gpumemprof
from oomrec.gpumemprof import (
    ConfigurationError,
    CPUMemoryProfiler,
    CPUMemoryTracker,
    DeviceMemorySample,
    GPUMemoryProfiler,
    MemoryTracker,
    MemoryWatchdog,
    ProfilerError,
    build_device_memory_collector,
    context_profiler,
    detect_torch_runtime_backend,
    device_collectors,
    load_telemetry_events,
)
from oomrec.gpumemprof._devices import Device, parse_device
from oomrec.gpumemprof._proc import resident_bytes
from oomrec.gpumemprof._tracking import Tracker
from oomrec.gpumemprof.oom_flight_recorder import OOMFlightRecorder, OOMFlightRecorderConfig

MIB = 1 << 20
GIB = 1 << 30


# Devices


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (None, Device("")),
        (0, Device("gpu", 0)),
        (3, Device("gpu", 3)),
        ("0", Device("gpu", 0)),
        ("cuda", Device("gpu")),
        ("cuda:2", Device("gpu", 2)),
        ("CUDA:2", Device("gpu", 2)),
        ("hip:1", Device("gpu", 1)),
        ("/GPU:1", Device("gpu", 1)),
        ("/device:GPU:1", Device("gpu", 1)),
        ("cpu", Device("cpu")),
        ("cpu:0", Device("cpu")),
        ("/CPU:0", Device("cpu")),
        (SimpleNamespace(type="cuda", index=1), Device("gpu", 1)),
        (SimpleNamespace(type="cuda", index=None), Device("gpu")),
        (SimpleNamespace(type="cpu", index=None), Device("cpu")),
    ],
)
def test_devices_are_told_in_many_ways(device, expected):
    assert parse_device(device) == expected


@pytest.mark.parametrize("device", ["cuda:", "cuda:x", "tpu", "", -1, True, 1.0, [], "cuda:-1"])
def test_what_is_no_device_is_refused(device):
    with pytest.raises(ConfigurationError, match="is no device"):
        parse_device(device)


@pytest.mark.parametrize("device", ["mps", "mps:0", SimpleNamespace(type="mps", index=0)])
@pytest.mark.parametrize("made", [MemoryTracker, GPUMemoryProfiler, build_device_memory_collector])
def test_there_is_no_metal_on_linux(made, device):
    with pytest.raises(RuntimeError, match='device="cpu"') as error:
        made(device=device)
    assert isinstance(error.value, ConfigurationError) and isinstance(error.value, ProfilerError)


@pytest.fixture
def no_frameworks(monkeypatch):
    """Nothing that knows a GPU is imported, nor can be."""
    for name in ("torch", "numba.cuda", "cuda.cuda", "cuda.bindings.driver"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("oomrec.gpumemprof._devices.importlib.import_module", _no_module)


def _no_module(name):
    raise ImportError(name)


@pytest.mark.parametrize("device", [0, "cuda", "cuda:0", SimpleNamespace(type="cuda", index=0)])
@pytest.mark.parametrize("made", [MemoryTracker, GPUMemoryProfiler, build_device_memory_collector])
def test_a_gpu_that_nobody_knows_is_refused_and_what_to_use_is_said(no_frameworks, made, device):
    with pytest.raises(ConfigurationError, match='no GPU is known.*device="cpu"'):
        made(device=device)


def test_without_a_gpu_the_process_is_what_there_is(no_frameworks):
    assert MemoryTracker().backend == "cpu"
    assert str(MemoryTracker(device="cpu").device) == "cpu"
    assert detect_torch_runtime_backend() == "cpu"
    assert gpumemprof.get_system_info()["detected_backend"] in ("cpu", "cuda", "rocm")
    assert "error" in gpumemprof.get_gpu_info()


def fake_torch(allocated=300 * MIB, reserved=500 * MIB, free=GIB, total=4 * GIB, hip=None):
    """A module that answers as PyTorch with two GPUs does; `state` is what it holds."""
    torch = ModuleType("torch")
    state = torch.state = {
        "allocated_bytes.all.current": allocated,
        "reserved_bytes.all.current": reserved,
        "active_bytes.all.current": allocated + 1,
        "inactive_split_bytes.all.current": 7,
        "allocated_bytes.all.peak": allocated,
        "reserved_bytes.all.peak": reserved,
        "num_alloc_retries": 2,
        "num_ooms": 1,
    }
    calls = torch.calls = []
    torch.Tensor = type("Tensor", (), {})
    torch.device = lambda name: SimpleNamespace(
        type=name.partition(":")[0], index=int(name[5:]) if ":" in name else None, __str__=name
    )
    torch.__version__ = "2.0"
    torch.version = SimpleNamespace(cuda=None if hip else "13.0", hip=hip)
    torch.backends = SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 91000))
    torch.cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 2,
        current_device=lambda: 1,
        memory_stats=lambda device: dict(state),
        mem_get_info=lambda device: (free, total),
        max_memory_allocated=lambda device: state["allocated_bytes.all.peak"],
        max_memory_reserved=lambda device: state["reserved_bytes.all.peak"],
        reset_peak_memory_stats=lambda device: calls.append(("reset", device)),
        synchronize=lambda device=None: calls.append(("synchronize", device)),
        empty_cache=lambda: calls.append(("empty_cache", None)),
        get_device_properties=lambda device: SimpleNamespace(
            name="Fake 4000", major=9, minor=0, multi_processor_count=132, total_memory=total
        ),
    )
    return torch


@pytest.fixture
def torch(no_frameworks, monkeypatch):
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_a_gpu_as_pytorch_sees_it(torch):
    collector = build_device_memory_collector("cuda:0")
    assert collector.sample() == DeviceMemorySample(
        300 * MIB, 500 * MIB, 3 * GIB, GIB, 4 * GIB, 300 * MIB + 1, 7, 0
    )
    assert collector.is_available()
    assert collector.capabilities() == {
        "backend": "cuda",
        "supports_device_total": True,
        "supports_device_free": True,
        "sampling_source": "torch.cuda.memory_stats, mem_get_info",
        "telemetry_collector": "gpumemprof.cuda_tracker",
    }
    assert build_device_memory_collector().device_id == 1  # the current one
    with pytest.raises(ConfigurationError, match="GPUs 0 to 1"):
        build_device_memory_collector(2)
    assert detect_torch_runtime_backend() == "cuda"


def test_a_gpu_of_rocm(no_frameworks, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", fake_torch(hip="6.4"))
    assert build_device_memory_collector().capabilities()["telemetry_collector"] == (
        "gpumemprof.rocm_tracker"
    )
    info = gpumemprof.get_system_info()
    assert (info["detected_backend"], info["rocm_available"], info["rocm_version"]) == (
        "rocm", True, "6.4",
    )  # fmt: skip


def test_what_the_machine_is(torch):
    info = gpumemprof.get_system_info()
    wanted = """detected_backend rocm_available rocm_version mps_built mps_available platform
        architecture python_version torch_available cuda_available cuda_version cudnn_version
        cuda_device_count current_device cpu_count cpu_count_logical memory_total memory_available
        memory_percent""".split()
    assert set(wanted) <= set(info)
    assert info["detected_backend"] == "cuda" and info["cuda_device_count"] == 2
    assert info["cuda_version"] == "13.0" and info["cudnn_version"] == 91000
    assert 0 < info["memory_available"] < info["memory_total"]
    gpu = gpumemprof.get_gpu_info(0)
    assert gpu["device_name"] == "Fake 4000" and gpu["total_memory"] == 4 * GIB
    assert gpu["memory_stats"]["num_ooms"] == 1


def test_a_gpu_as_numba_sees_it(no_frameworks, monkeypatch):
    class Gpu:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            return None

    cuda = ModuleType("numba.cuda")
    cuda.is_available = lambda: True
    cuda.gpus = [Gpu(), Gpu()]
    cuda.get_current_device = lambda: SimpleNamespace(id=1)
    cuda.current_context = lambda: SimpleNamespace(get_memory_info=lambda: (3 * GIB, 4 * GIB))
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    collector = build_device_memory_collector()
    assert isinstance(collector, device_collectors.NumbaDeviceCollector)
    assert collector.sample() == DeviceMemorySample(GIB, GIB, GIB, 3 * GIB, 4 * GIB, None, None, 1)
    with pytest.raises(ConfigurationError, match="GPUs 0 to 1"):
        build_device_memory_collector(2)


@pytest.mark.parametrize("is_active", [0, 1])
def test_a_gpu_as_cuda_python_sees_it(no_frameworks, monkeypatch, is_active):
    pushed = []
    driver = ModuleType("cuda.bindings.driver")
    answers = {
        "cuInit": (),
        "cuDeviceGetCount": (1,),
        "cuDeviceGet": (0,),
        "cuDevicePrimaryCtxGetState": (0, is_active),
        "cuDeviceTotalMem": (4 * GIB,),
        "cuDevicePrimaryCtxRetain": ("context",),
        "cuDevicePrimaryCtxRelease": (),
        "cuCtxPushCurrent": (),
        "cuCtxPopCurrent": ("context",),
        "cuMemGetInfo": (GIB, 4 * GIB),
    }

    def function(name):
        return lambda *arguments: (pushed.append(name), (0, *answers[name]))[1]

    for name in answers:
        setattr(driver, name, function(name))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    sample = build_device_memory_collector(0).sample()
    assert (sample.used_bytes, sample.total_bytes) == (3 * GIB * is_active, 4 * GIB)
    assert ("cuDevicePrimaryCtxRetain" in pushed) == bool(is_active)  # it makes no context
    assert pushed.count("cuCtxPushCurrent") == pushed.count("cuCtxPopCurrent") == is_active
    with pytest.raises(ConfigurationError):
        build_device_memory_collector(1)


def test_nothing_is_imported_that_the_program_has_not_imported(plain):
    run = plain(
        sys.executable,
        "-c",
        "import sys; import oomrec.gpumemprof as g, oomrec.tfmemprof as t\n"
        "g.MemoryTracker(); g.get_system_info(); t.get_system_info(); t.MemoryTracker()\n"
        "print({'torch', 'tensorflow', 'numba', 'psutil', 'pandas', 'numpy'} & set(sys.modules))",
        env={"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.dirname(gpumemprof.__file__)))},
    )
    assert run.stdout == "set()\n", str(run)
    assert run.stderr == ""


# Trackers


class Scripted(device_collectors.DeviceMemoryCollector):
    """A device whose samples are given: (allocated, reserved, used) in MiB, of 1,000."""

    device_id = 0

    def __init__(self, *samples):
        self.samples = list(samples)
        self.calls = []

    def name(self):
        return "cuda"

    def is_available(self):
        return True

    def sample(self):
        sample = self.samples[0]
        if isinstance(sample, Exception):
            raise sample
        allocated, reserved, used = (each * MIB for each in sample)
        return DeviceMemorySample(
            allocated, reserved, used, 1000 * MIB - used, 1000 * MIB, allocated, 0, 0
        )

    def empty_cache(self):
        self.calls.append("empty_cache")

    def synchronize(self):
        self.calls.append("synchronize")


def tracker_of(*samples, max_events=100, **options) -> Tracker:
    """A tracker that has begun and is ticked by hand: tick() takes the next sample."""
    tracker = Tracker(
        Scripted(*samples), 3600, max_events, True, OOMFlightRecorderConfig(), options
    )
    tracker.start_tracking()
    return tracker


def tick(tracker, times=1):
    for _ in range(times):
        if len(tracker.collector.samples) > 1:
            del tracker.collector.samples[0]
        tracker._tick()


def kinds(tracker) -> list:
    return [event.event_type for event in tracker.get_events()]


def test_what_happens_between_two_samples_is_an_event():
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
        last_oom_dump_path""".split()
    )
    assert stats["peak_memory"] == 150 * MIB
    assert (stats["total_allocations"], stats["total_allocation_bytes"]) == (1, 50 * MIB)
    assert (stats["total_deallocations"], stats["average_deallocation_size"]) == (1, 30 * MIB)
    assert stats["memory_utilization_percent"] == 25.0
    assert stats["total_events"] == stats["events_last_hour"] == 4
    assert stats["backend"] == "cuda" and stats["last_oom_dump_path"] is None
    tracker.clear_events()
    assert tracker.get_statistics()["total_allocations"] == 0 and tracker.events == []


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ((100, 100, 799), []),
        ((100, 100, 800), ["warning"]),
        ((100, 100, 949), ["warning"]),
        ((100, 100, 950), ["critical"]),
        ((100, 142, 200), []),
        ((100, 143, 200), ["warning"]),
    ],
)
def test_thresholds(sample, expected):
    tracker = tracker_of((100, 100, 100), sample)
    seen = []
    tracker.add_alert_callback(seen.append)
    tick(tracker)
    assert [event.event_type for event in tracker.get_alerts()] == expected
    assert [event.event_type for event in seen] == expected
    assert tracker.stats["alert_count"] == len(expected)


def test_much_memory_in_one_tick_is_an_alert():
    tracker = tracker_of((100, 100, 100), (200, 200, 200), (301, 301, 301))
    tick(tracker)
    assert tracker.get_alerts() == []
    tick(tracker)
    [alert] = tracker.get_alerts()
    assert alert.metadata == {"large_allocation": True}


def test_an_alert_that_lasts_comes_once_a_second(monkeypatch):
    now = [1000.0]
    tracker = tracker_of((100, 100, 960))
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for _ in range(25):
        tick(tracker)
        now[0] += 0.1
    assert kinds(tracker).count("critical") == 3


def test_thresholds_can_be_set_and_unknown_ones_are_refused():
    tracker = tracker_of((100, 100, 100), (100, 100, 550))
    tracker.set_threshold("memory_warning_percent", 50)
    tick(tracker)
    assert kinds(tracker)[-1] == "warning"
    with pytest.raises(ValueError, match="Unknown threshold: percent; there are memory_warning"):
        tracker.set_threshold("percent", 1)


def test_alerts_can_be_switched_off():
    tracker = tracker_of((100, 100, 990))
    tracker.enable_alerts = False
    tick(tracker)
    assert tracker.get_alerts() == []


def test_a_callback_that_fails_hurts_nobody():
    tracker = tracker_of((100, 100, 990))
    seen = []

    def fails(event):
        raise KeyError("mine")

    tracker.add_alert_callback(fails)
    tracker.add_alert_callback(seen.append)
    tick(tracker)
    assert len(seen) == 1
    tracker.remove_alert_callback(fails)
    tracker.remove_alert_callback(fails)


def test_a_sample_that_fails_is_an_event_and_sampling_goes_on_later(monkeypatch):
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


def test_events_are_filtered_and_the_ring_keeps_the_last():
    tracker = tracker_of((100, 100, 100), max_events=4)
    for number in range(10):
        tracker._add_event("allocation", number, str(number))
    events = tracker.get_events()
    assert [event.context for event in events] == ["6", "7", "8", "9"]
    assert [event.context for event in tracker.get_events(last_n=2)] == ["8", "9"]
    assert tracker.get_events(last_n=0) == []
    assert tracker.get_events(since=events[2].timestamp)[0].context in ("6", "7", "8")
    assert tracker.get_events("peak") == []


def test_a_time_line():
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


def test_a_format_that_is_none(tmp_path):
    with pytest.raises(ValueError, match="Unsupported format: xml"):
        tracker_of((1, 1, 1)).export_events(tmp_path / "x", "xml")


@pytest.mark.parametrize(
    "options", [{"sampling_interval": 0}, {"sampling_interval": -1}, {"max_events": 0}]
)
def test_options_that_make_no_sense(options):
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        MemoryTracker(device="cpu", **options)


def test_the_watchdog_cleans_at_most_every_30_seconds(monkeypatch):
    tracker = tracker_of((100, 100, 880))
    watchdog = MemoryWatchdog(tracker)
    tick(tracker)
    assert watchdog.get_cleanup_stats()["cleanup_count"] == 0  # 88 % < 90 %
    tracker._pace.forget()
    tracker.collector.samples = [(100, 100, 910)]
    tick(tracker)
    assert tracker.collector.calls == ["empty_cache"]
    tracker._pace.forget()
    tracker.collector.samples = [(100, 100, 990)]
    tick(tracker)
    assert watchdog.cleanup_count == 1
    watchdog.last_cleanup_time -= 31
    tracker._pace.forget()
    tick(tracker)
    assert watchdog.cleanup_count == 2
    assert tracker.collector.calls == ["empty_cache", "synchronize", "empty_cache"]
    watchdog.force_cleanup()
    assert kinds(tracker).count("cleanup") == 3
    assert watchdog.get_cleanup_stats() == {
        "cleanup_count": 3,
        "last_cleanup_time": watchdog.last_cleanup_time,
        "auto_cleanup_enabled": True,
        "cleanup_threshold": 0.9,
        "aggressive_cleanup_threshold": 0.95,
    }


def test_a_watchdog_that_only_watches():
    tracker = tracker_of((100, 100, 990))
    watchdog = MemoryWatchdog(tracker, auto_cleanup=False)
    tick(tracker)
    assert watchdog.cleanup_count == 0


def test_an_aggressive_cleanup_gives_the_free_memory_of_the_heap_back():
    tracker = tracker_of((100, 100, 100))
    watchdog = MemoryWatchdog(tracker)
    blocks = [bytes(100_000) for _ in range(1000)]
    del blocks[:-1]  # what is above keeps the heap from shrinking by itself
    before = resident_bytes()
    watchdog.force_cleanup()
    kept = resident_bytes()
    watchdog.force_cleanup(aggressive=True)
    assert kept > before - 10 * MIB and resident_bytes() < before - 50 * MIB


def test_a_cleanup_that_fails_is_an_event():
    tracker = tracker_of((100, 100, 100))
    tracker.collector.empty_cache = lambda: 1 / 0
    MemoryWatchdog(tracker).force_cleanup()
    assert kinds(tracker)[-1] == "error"


# On a clock


@pytest.mark.parametrize(
    "made",
    [lambda: MemoryTracker(device="cpu", sampling_interval=0.02), lambda: CPUMemoryTracker(0.02)],
    ids=["MemoryTracker", "CPUMemoryTracker"],
)
def test_this_process_is_followed(made, tmp_path):
    with made() as tracker:
        assert tracker.is_tracking and tracker.backend == "cpu"
        held = bytearray(b"x" * (48 * MIB))
        until = time.monotonic() + 5
        while not tracker.get_events("allocation") and time.monotonic() < until:
            time.sleep(0.02)
        del held
    assert not tracker.is_tracking
    assert sum(event.memory_change for event in tracker.get_events("allocation")) >= 40 * MIB
    assert kinds(tracker)[0] == "start" and kinds(tracker)[-1] == "stop"
    assert {event.device_id for event in tracker.events} == {-1}
    assert tracker.get_statistics()["tracking_duration_seconds"] < 6
    tracker.export_events(tmp_path / "e.json", "json")
    assert load_telemetry_events(tmp_path / "e.json")[0].collector == "gpumemprof.cpu_tracker"


def test_a_tracker_starts_and_stops_once_and_again():
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
    until = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.02)
    assert set(threading.enumerate()) <= before


def test_a_forked_child_does_not_track():
    """Its parent's trackers are stopped in it, whatever lock another thread held at the fork."""
    tracker = MemoryTracker(device="cpu", sampling_interval=0.005)
    tracker.start_tracking()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    assert not tracker.is_tracking
                    tracker.events, tracker.get_statistics(), tracker.stop_tracking()
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        tracker.stop_tracking()


def test_the_cpu_tracker_names_its_file_by_the_time(tmp_path):
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
def test_a_buffer_of_none_is_as_large_as_the_tracker(size, kept):
    tracker = MemoryTracker(device="cpu", max_events=40, oom_buffer_size=size)
    for _ in range(60):
        tracker._add_event("allocation", 1, None)
    assert len(tracker._oom_flight_recorder.snapshot_events()) == kept


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


# Profilers


def test_a_function_on_a_gpu(torch):
    profiler = GPUMemoryProfiler(device=0, collect_stack_traces=True)

    def step(size, *, factor):
        torch.state["allocated_bytes.all.peak"] = (
            torch.state["allocated_bytes.all.current"] + 2 * size
        )
        torch.state["allocated_bytes.all.current"] += size
        kept.append(torch.Tensor())
        return size * factor

    kept = []
    result = profiler.profile_function(step, 64 * MIB, factor=2)
    assert (result.function_name, result.call_count) == ("step", 1)
    assert (result.memory_allocated, result.memory_freed) == (64 * MIB, 0)
    assert result.memory_diff() == 64 * MIB
    assert result.peak_memory_usage() == result.memory_peak.allocated_memory == 428 * MIB
    assert (result.tensors_created, result.tensors_deleted) == (1, 0)
    assert result.memory_before.operation == "before_step"
    assert "test_a_function_on_a_gpu" in result.memory_before.stack_trace
    assert ("reset", 0) in torch.calls and ("synchronize", 0) in torch.calls
    assert set(result.to_dict()) >= {"memory_diff", "peak_memory_usage", "memory_before"}


def test_a_function_that_fails_has_a_result_all_the_same(torch):
    profiler = GPUMemoryProfiler(device="cuda:0")
    with pytest.raises(ZeroDivisionError):
        profiler.profile_function(lambda: 1 / 0)
    assert len(profiler.results) == 1


def test_a_summary_has_every_field(torch):
    profiler = GPUMemoryProfiler(device=0, track_tensors=False)
    for _ in range(2):
        with profiler.profile_context("block"):
            torch.state["allocated_bytes.all.current"] += 10 * MIB
    with profiler.profile_context("freeing"):
        torch.state["allocated_bytes.all.current"] -= 5 * MIB
    summary = profiler.get_summary()
    assert set(summary) == set(
        """device total_functions_profiled total_function_calls total_execution_time
        total_memory_allocated total_memory_freed net_memory_change peak_memory_usage
        current_memory_usage baseline_memory_usage memory_change_from_baseline function_summaries
        monitoring_active snapshots_collected""".split()
    )
    assert (summary["total_functions_profiled"], summary["total_function_calls"]) == (2, 3)
    assert summary["net_memory_change"] == summary["memory_change_from_baseline"] == 15 * MIB
    assert summary["total_memory_freed"] == 5 * MIB
    block = summary["function_summaries"]["block"]
    assert set(block) == set(
        "call_count total_time avg_time total_memory_allocated avg_memory_allocated peak_memory".split()
    )
    assert (block["call_count"], block["avg_memory_allocated"]) == (2, 10 * MIB)
    profiler.clear_results()
    assert profiler.get_summary()["total_function_calls"] == 0


def test_monitoring():
    profiler = GPUMemoryProfiler(device="cpu")
    profiler.start_monitoring(0.01)
    profiler.start_monitoring()
    assert profiler.get_summary()["monitoring_active"]
    until = time.monotonic() + 5
    while len(profiler.snapshots) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    profiler.stop_monitoring()
    assert len(profiler.snapshots) >= 3
    assert profiler.snapshots[0].cpu_memory == profiler.snapshots[0].allocated_memory > 0
    assert not profiler.get_summary()["monitoring_active"]


def test_decorators_and_blocks_share_a_profiler(no_frameworks):
    @gpumemprof.profile_function
    def plain(value):
        """Says what it does."""
        return value + 1

    @gpumemprof.profile_function(name="named", device="cpu")
    def other():
        return "result"

    context_profiler.clear_results()
    assert plain(1) == 2 and other() == "result"
    assert plain.__doc__ == "Says what it does." and plain.__name__ == "plain"
    with gpumemprof.profile_context("block") as profiler:
        assert profiler is context_profiler.get_global_profiler()
    names = [result.function_name for result in context_profiler.get_profile_results()]
    assert names == ["plain", "named", "block"]
    assert len(context_profiler.get_profile_results(limit=1)) == 1


def test_the_host_profiler_sees_what_a_block_took_for_a_moment():
    gc.collect()
    profiler = CPUMemoryProfiler()

    def moment():
        return len(bytearray(b"x" * (300 * MIB)))

    result = profiler.profile_function(moment)
    assert result.name == "moment" and result.duration > 0
    assert result.memory_diff() < 100 * MIB  # it is free again
    assert result.peak_rss >= result.snapshot_before.rss
    assert profiler.get_summary()["mode"] == "cpu"
    assert set(result.to_dict()) == {
        "name", "duration", "memory_diff", "peak_rss", "before", "after",
    }  # fmt: skip
    with pytest.raises(KeyError), profiler.profile_context("fails"):
        raise KeyError
    assert [each.name for each in profiler.results] == ["moment", "fails"]
    profiler.clear_results()
    assert profiler.results == []


# Words


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1, "1.00 B"), (1536, "1.50 KB"), (5 * GIB, "5.00 GB"), (-2048, "-2.00 KB"), (1 << 60, "1024.00 PB")],
)  # fmt: skip
def test_sizes_as_text(size, text):
    assert gpumemprof.format_bytes(size) == gpumemprof.format_memory(size) == text


def test_more_of_sizes():
    assert gpumemprof.format_memory(None) == "N/A"
    assert gpumemprof.format_bytes(1536, precision=0) == "2 KB"
    assert gpumemprof.convert_bytes(1, "GB", "MB") == 1024
    assert gpumemprof.convert_bytes(512, "MB", "GB") == 0.5
    with pytest.raises(ValueError, match="Invalid unit: XB"):
        gpumemprof.convert_bytes(1, "XB", "MB")


def test_every_name_is_there():
    names = """GPUMemoryProfiler MemorySnapshot ProfileResult profile_function profile_context
        MemoryTracker MemoryWatchdog CPUMemoryProfiler CPUMemoryTracker OOMFlightRecorder
        OOMFlightRecorderConfig OOMExceptionClassification classify_oom_exception
        DeviceMemoryCollector DeviceMemorySample build_device_memory_collector
        detect_torch_runtime_backend TelemetryEventV2 telemetry_event_from_record
        telemetry_event_to_dict validate_telemetry_record load_telemetry_events get_system_info
        get_gpu_info format_memory format_bytes convert_bytes ProfilerError ConfigurationError
        VisualizationError""".split()
    assert set(names) <= set(gpumemprof.__all__)
    assert all(hasattr(gpumemprof, name) for name in names)
