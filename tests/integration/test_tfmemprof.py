"""The TensorFlow half of GPU Memory Profiler's interface: on a fake TensorFlow and, with the marker
`full`, on the real one."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import ModuleType, SimpleNamespace

import pytest
import telemetry as rules
from conftest import metadata
from oomrec import tfmemprof
from oomrec.gpumemprof import ConfigurationError, load_telemetry_events
from oomrec.tfmemprof import MemoryTracker, MemoryWatchdog, TensorFlowProfiler, TFMemoryProfiler
from oomrec.tfmemprof.context_profiler import get_global_profiler, set_global_profiler
from python_programs import programs
from watching import wait_for

MIB = 1 << 20


class Tensor:
    """Like tf.Tensor: four floats."""

    shape = SimpleNamespace(num_elements=lambda: 4)
    dtype = SimpleNamespace(size=4)


def fake_tensorflow(gpus: int) -> ModuleType:
    """A module that answers like TensorFlow. `memory` is the bytes in use on each GPU."""
    module = ModuleType("tensorflow")
    module.__version__ = "2.21.0"
    module.Tensor = Tensor
    module.memory = {"current": 100 * MIB, "peak": 150 * MIB}
    module.calls = []
    module.config = SimpleNamespace(
        list_physical_devices=lambda kind: [f"{kind}:{number}" for number in range(gpus)],
        experimental=SimpleNamespace(
            get_memory_info=lambda device: dict(module.memory),
            reset_memory_stats=lambda device: module.calls.append(("reset", device)),
        ),
    )
    module.sysconfig = SimpleNamespace(
        get_build_info=lambda: {"is_cuda_build": gpus > 0, "cuda_version": "13.0"}
    )
    module.keras = SimpleNamespace(
        backend=SimpleNamespace(clear_session=lambda: module.calls.append(("clear", None)))
    )
    return module


@pytest.fixture(params=[0, 2], ids=["no GPU", "2 GPUs"])
def tensorflow(request, monkeypatch):
    module = fake_tensorflow(request.param)
    module.gpus = request.param
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    set_global_profiler(None)
    yield module
    set_global_profiler(None)


@pytest.fixture
def no_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # importing it fails


def test_devices(tensorflow):
    assert TFMemoryProfiler().device == ("/GPU:0" if tensorflow.gpus else "/CPU:0")
    assert TFMemoryProfiler(device="/CPU:0").device == "/CPU:0"
    assert MemoryTracker(device="CPU").device == "/CPU:0"
    for device in ("/GPU:1", "GPU:1", "/device:GPU:1", "cuda:1"):
        if tensorflow.gpus:
            assert MemoryTracker(device=device).device == "/GPU:1"
        else:
            with pytest.raises(ConfigurationError, match='no GPU; use device="/CPU:0"'):
                MemoryTracker(device=device)
    with pytest.raises(ConfigurationError, match="/CPU:0|GPUs 0 to 1"):
        MemoryTracker(device="/GPU:2")
    with pytest.raises(ConfigurationError):
        MemoryTracker(device="mps")
    with pytest.raises(ConfigurationError, match="is not a device"):
        MemoryTracker(device="/TPU:0")


def test_without_tensorflow_the_device_is_the_process(no_tensorflow):
    assert MemoryTracker().backend == "cpu"
    with TFMemoryProfiler().profile_context("work"):
        pass
    with pytest.raises(ConfigurationError, match='needs TensorFlow.*device="/CPU:0"'):
        MemoryTracker(device="/GPU:0")
    info = tfmemprof.get_system_info()
    assert info["gpu"]["available"] is False and info["tf_build_cuda"] is None


def test_system_information(tensorflow):
    info = tfmemprof.get_system_info()
    assert set(info) == set(
        """platform python_version tensorflow_version cpu_count total_memory_gb available_memory_gb
        memory_percent_used gpu backend tf_build_cuda tf_cuda_version tf_cudnn_version""".split()
    )
    assert info["tensorflow_version"] == "2.21.0" and info["tf_build_cuda"] is (tensorflow.gpus > 0)
    assert info["gpu"]["count"] == len(info["gpu"]["devices"]) == tensorflow.gpus
    assert info["backend"]["runtime_backend"] == ("cuda" if tensorflow.gpus else "cpu")


class Model:
    """Like a Keras model: each step and each call holds 10 MiB more."""

    def __init__(self, module, holds):
        self.module, self.holds, self.batches = module, holds, []

    def _take(self, batch):
        self.batches.append(batch)
        self.module.memory["current"] += 10 * MIB
        self.module.memory["peak"] = self.module.memory["current"] + 5 * MIB

    def __call__(self, batch, training):
        assert training is False
        self._take(batch)


class TrainOnBatch(Model):
    def train_on_batch(self, x, y):
        self._take((x, y))


class TrainStep(Model):
    def train_step(self, batch):
        self._take(batch)


@pytest.mark.parametrize("kind", [TrainOnBatch, TrainStep])
def test_training(tensorflow, kind):
    model = kind(tensorflow, [])
    profiler = TensorFlowProfiler()
    profiler.profile_training(model, [(n, -n) for n in range(5)], epochs=2, steps_per_epoch=3)
    assert model.batches == [(0, 0), (1, -1), (2, -2)] * 2
    results = profiler.get_results()
    calls = {name: profile["calls"] for name, profile in results.function_profiles.items()}
    assert calls == {
        "training": 1, "epoch_0": 1, "epoch_1": 1, "step_0": 2, "step_1": 2, "step_2": 2,
    }  # fmt: skip
    if tensorflow.gpus:
        assert results.function_profiles["training"]["total_memory_used"] == 60
        assert results.peak_memory_mb == 165
        assert ("reset", "GPU:0") in tensorflow.calls
    assert results.duration >= 0 and results.min_memory_mb <= results.average_memory_mb
    profiler.reset()
    assert profiler.get_results().function_profiles == {}


def test_a_model_with_neither_method_is_trained_by_its_loss(tensorflow):
    steps = []

    class Tape(ExitStack):
        def gradient(self, loss, variables):
            return [f"d{loss}/d{variable}" for variable in variables]

    class Custom:
        trainable_variables = ["w"]
        optimizer = SimpleNamespace(apply_gradients=lambda pairs: steps.append(list(pairs)))

        def compiled_loss(self, target, predicted):
            return f"{predicted}-{target}"

        def __call__(self, batch, training):
            return f"f({batch})"

    tensorflow.GradientTape = Tape
    TensorFlowProfiler().profile_training(Custom(), [("x", "y")])
    assert steps == [[("df(x)-y/dw", "w")]]


def test_inference(tensorflow):
    model = Model(tensorflow, [])
    profiler = TensorFlowProfiler()
    profiler.profile_inference(model, list(range(70)), batch_size=32)
    assert [len(batch) for batch in model.batches] == [32, 32, 6]
    assert set(profiler.get_results().function_profiles) == {
        "inference", "inference_batch_0", "inference_batch_1", "inference_batch_2",
    }  # fmt: skip
    dataset = SimpleNamespace(batch=lambda size: [("rows", "labels")] * size)
    profiler.profile_inference(model, dataset, batch_size=2)
    assert model.batches[3:] == ["rows", "rows"]
    with pytest.raises(ValueError, match="batch_size"):
        profiler.profile_inference(model, [1], batch_size=0)


def test_blocks_and_decorators(tensorflow):
    profiler = TensorFlowProfiler()
    with pytest.raises(KeyError), profiler.profile_context("fails"):
        raise KeyError

    @tfmemprof.profile_function
    def work(value):
        return value + 1

    @tfmemprof.profile_function(name="named")
    def other():
        return 7

    assert (work(1), other()) == (2, 7)
    with tfmemprof.profile_context("block") as used:
        assert used is get_global_profiler() is profiler.profiler
    assert set(profiler.get_results().function_profiles) == {"fails", "work", "named", "block"}


def test_snapshots_count_the_tensors(tensorflow):
    held = [Tensor() for _ in range(3)]
    profiler = TFMemoryProfiler()
    snapshot = profiler.capture_snapshot("now")
    assert snapshot.num_tensors == len(held) and snapshot.tensor_sizes["total_mb"] == 48 / MIB
    assert snapshot.cpu_memory_mb > 1
    assert TFMemoryProfiler(enable_tensor_tracking=False).capture_snapshot().num_tensors == 0
    with profiler:
        pass
    assert [each.name for each in profiler.snapshots] == ["now", "context_start", "context_end"]


def test_continuous_profiling(tensorflow):
    profiler = TFMemoryProfiler(enable_tensor_tracking=False)
    profiler.start_continuous_profiling(0.01)
    wait_for(lambda: len(profiler.snapshots) >= 4)
    assert profiler.profiling_active
    profiler.stop_continuous_profiling()
    assert len(profiler.snapshots) >= 4 and not profiler.profiling_active
    with profiler:
        profiler.start_continuous_profiling(0.01)
    assert not profiler.profiling_active


def test_empty_results():
    results = TFMemoryProfiler(device="/CPU:0").get_results()
    assert (results.peak_memory_mb, results.duration, results.memory_growth_rate) == (0, 0, 0)


def test_the_tracker(tensorflow, tmp_path):
    alerts = []
    tracker = MemoryTracker(sampling_interval=0.01, alert_threshold_mb=1, enable_logging=False)
    tracker.add_alert_callback(alerts.append)
    tracker.start_tracking()
    wait_for(lambda: len(tracker.memory_usage) >= 4 and alerts)
    assert tracker.tracking and tracker.check_alerts()
    result = tracker.stop_tracking()
    assert not tracker.tracking
    assert len(result.memory_usage) == len(result.timestamps) == len(result.events) >= 4
    for record, size in zip(result.events, result.memory_usage):
        assert rules.problems(record) == [] and record["event_type"] == "sample"
        assert record["allocator_allocated_bytes"] == int(size * MIB)
        assert [record[key] for key in ("job_id", "rank", "world_size")] == [None, 0, 1]
    assert result.min_memory <= result.average_memory <= result.peak_memory
    if tensorflow.gpus:
        assert result.peak_memory == tracker.get_current_memory() == 100
    [alert] = result.alerts_triggered  # once a second
    assert set(alert) == {"timestamp", "memory_mb", "threshold_mb", "message"}
    assert alerts == [alert] and alert["threshold_mb"] == 1
    tracker.export_events(tmp_path / "e.json", "json")
    events = load_telemetry_events(tmp_path / "e.json")
    assert {event.collector for event in events} == {"tfmemprof.memory_tracker"}
    assert events[0].device_id == (0 if tensorflow.gpus else -1)
    tracker.start_tracking()  # starts over, with its alerts
    wait_for(lambda: tracker.alerts)
    first = tracker.alerts[0]["timestamp"]  # a second later if the old alert counted
    assert sum(moment < first for moment in tracker.timestamps) < 20
    tracker.stop_tracking()
    tracker.set_alert_threshold(None)
    tracker.start_tracking()
    assert tracker.stop_tracking().alerts_triggered == []


def test_the_watchdog(tensorflow):
    called = []
    watchdog = MemoryWatchdog(cleanup_threshold_mb=1, check_interval=0.01)
    watchdog.add_cleanup_callback(lambda: called.append(1))
    watchdog.start()
    wait_for(lambda: len(called) >= 2)
    assert watchdog.active
    watchdog.stop()
    assert len(called) >= 2 and ("clear", None) in tensorflow.calls and not watchdog.active


def test_the_tracker_has_a_flight_recorder(preload, build_dir):
    run = programs(preload, build_dir)("""
        from oomrec.tfmemprof import MemoryTracker

        class ResourceExhaustedError(Exception):
            pass

        tracker = MemoryTracker(device="/CPU:0", enable_oom_flight_recorder=True, oom_dump_dir="tf")
        with tracker.capture_oom("fit", {"batch": 8}):
            raise ResourceExhaustedError("OOM when allocating tensor with shape[1024]")
    """)
    assert "ResourceExhaustedError" in run.stderr and run.exit_code == 1, str(run)
    [bundle] = (run.dump_dir.parent / "tf").glob("oom_*")
    bundle_metadata = metadata(bundle)
    assert bundle_metadata["context"] == "fit" and bundle_metadata["custom_metadata"]["batch"] == 8
    assert bundle_metadata["custom_metadata"]["oom_reason"] == "tensorflow.ResourceExhaustedError"
    assert bundle_metadata["custom_metadata"]["tracker"]["collector"] == "tfmemprof.memory_tracker"


@pytest.mark.full
@pytest.mark.needs_module("tensorflow")
def test_real_tensorflow(preload, build_dir):
    """A Keras model is trained and called, and a failed tensor has a bundle."""
    run = programs(preload, build_dir)(
        """
        import numpy as np
        import tensorflow as tf
        from oomrec.tfmemprof import MemoryTracker, TensorFlowProfiler, get_system_info

        model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        x, y = np.ones((96, 16), "float32"), np.ones((96, 1), "float32")
        profiler = TensorFlowProfiler(device="/CPU:0")
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
        profiler.profile_training(model, data, epochs=2)
        profiler.profile_inference(model, x, batch_size=48)
        calls = {name: each["calls"] for name, each in profiler.get_results().function_profiles.items()}
        print(calls["training"], calls["step_2"], calls["inference_batch_1"])
        print(profiler.get_results().snapshots[-1].num_tensors > 0)
        print(get_system_info()["tensorflow_version"] == tf.__version__)

        tracker = MemoryTracker(sampling_interval=0.05, enable_oom_flight_recorder=True, oom_dump_dir="tf")
        with tracker, tracker.capture_oom("too much"):
            tf.ones((1 << 20, 1 << 20))
        """,
        timeout=180,
    )
    assert run.stdout == "1 2 1\nTrue\nTrue\n", str(run)
    assert "ResourceExhaustedError" in run.stderr
    [bundle] = (run.dump_dir.parent / "tf").glob("oom_*")
    assert metadata(bundle)["exception_type"] == "ResourceExhaustedError"
