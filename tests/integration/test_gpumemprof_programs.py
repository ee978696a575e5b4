"""Programs of GPU Memory Profiler's users with only the import changed: on the host, and on a fake
driver with numba instead of PyTorch; recorded from the start, and with the library loaded later."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import telemetry
from conftest import SOURCE, metadata, written
from oomrec.gpumemprof import load_telemetry_events
from python_programs import package_environment

PROGRAMS = SOURCE / "tests" / "integration" / "gpumemprof_programs"
NUMBA = pytest.mark.needs_module("numba")
WITHOUT_NUMBA = [("recorded", "cpu"), ("loaded later", "cpu")]


def each_device(*often):
    """These cases of runner and device each time, the others with --full: numba takes two seconds to import."""
    cases = [
        pytest.param(
            runner,
            device,
            marks=[NUMBA] * (device != "cpu")
            + [pytest.mark.full] * ((runner, device) not in often),
        )
        for runner in ("recorded", "loaded later")
        for device in ("cpu", "cuda:0")
    ]
    return pytest.mark.parametrize("runner, device", cases, indirect=["runner"])


def with_import_changed(text: str) -> str:
    """The program after the sed command of docs/migration.md."""
    page = (SOURCE / "docs" / "migration.md").read_text()
    command = re.search(r"(?ms)^    (sed -E) -i (.*?) train\.py$", page)
    words = shlex.split(f"{command[1]} {command[2]}")
    return subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize(
    "line",
    [
        "from gpumemprof import MemoryTracker",
        "from gpumemprof.tracker import MemoryTracker",
        "import gpumemprof\nMemoryTracker = gpumemprof.MemoryTracker",
        "import gpumemprof as other\nMemoryTracker = other.tracker.MemoryTracker",
        "import gpumemprof.tracker\nMemoryTracker = gpumemprof.tracker.MemoryTracker",
        "import gpumemprof.tracker as other\nMemoryTracker = other.MemoryTracker",
        "if True:\n    from tfmemprof import MemoryTracker",
        "from stormlog import MemoryTracker",
        "from stormlog.tracker import MemoryTracker",
        "import stormlog\nMemoryTracker = stormlog.MemoryTracker",
        "import stormlog as other\nMemoryTracker = other.tracker.MemoryTracker",
        "import stormlog.tracker\nMemoryTracker = stormlog.tracker.MemoryTracker",
        "import stormlog.tracker as other\nMemoryTracker = other.MemoryTracker",
        "from stormlog.tensorflow import MemoryTracker",
        "from stormlog.tensorflow.tracker import MemoryTracker",
        "import stormlog.tensorflow as other\nMemoryTracker = other.MemoryTracker",
    ],
)
def test_every_kind_of_import_is_changed(line):
    names = {}
    exec(with_import_changed(line), names)
    assert names["MemoryTracker"].__module__.startswith("oomrec.")


@pytest.fixture(params=["recorded", "loaded later"])
def runner(request, preload, plain):
    return preload if request.param == "recorded" else plain


@pytest.fixture
def program(tmp_path, build_dir, fake_gpu):
    """program(runner, "stress", "cpu", 64) runs a program with its import changed and returns its output."""

    def run(runner, name, *args, before=(), env=None):
        text = (PROGRAMS / f"{name}.py").read_text()
        changed = with_import_changed(text)
        assert changed != text or name == "analyze"
        script = written(tmp_path / f"{name}.py", changed)
        environment = {**package_environment(build_dir), **fake_gpu, "FAKE_GPU_BYTES": "256M"}
        ended = runner(*before, sys.executable, script, *args, env={**environment, **(env or {})})
        assert ended.exit_code == 0, str(ended)
        return dict(line.partition(": ")[::2] for line in ended.stdout.splitlines())

    return run


def analyzed(program, plain, device, bundle) -> dict:
    result = program(plain, "analyze", device, bundle)
    # CPython's own MemoryError has no message.
    assert result["message"] == str("MemoryError" not in result["exception"]), result
    for question in ("counts agree", "all files there", "in order"):
        assert result[question] == "True", result
    assert result["keys"] == "[]", result
    if device == "cpu":  # on a GPU these programs may hold nothing yet
        assert result["peak"] == "True True", result
    return result


@each_device(*WITHOUT_NUMBA, ("recorded", "cuda:0"))
def test_configure(runner, program, tmp_path, device):
    said = program(runner, "configure", device)
    backend = "cpu" if device == "cpu" else "cuda"
    assert said["tracked on"] == backend and said["backend"] == backend
    assert said["peak above 90 MiB"].startswith("True")
    assert said["allocations seen"] == said["cleanups"] == said["timeline"] == "True", said
    assert said["recorder"] == "True None"
    assert said["alerts"].startswith("True {") and "warning" in said["alerts"]
    assert said["events"] == "['start']"
    for form in ("csv", "json"):
        events = load_telemetry_events(tmp_path / f"events.{form}", permissive_legacy=False)
        assert events[0].event_type == "start"
        assert {event.collector for event in events} == {f"gpumemprof.{backend}_tracker"}
    assert not (
        tmp_path / "diagnostics"
    ).exists()  # no directory is created before there is a bundle


@each_device(*WITHOUT_NUMBA, ("recorded", "cuda:0"))
def test_capture(runner, program, plain, preload, tmp_path, device):
    said = program(runner, "capture", device)
    assert said["raised"] == said["exception"]
    assert said["exception"] == ("MemoryError" if device == "cpu" else "CudaAPIError")
    assert said["context"] == "training.forward_pass" and said["batch size"] == "128"
    bundle = Path(said["dump"])
    assert bundle.parent == tmp_path / "oom_dumps"
    bundle_metadata = metadata(bundle)
    own = bundle_metadata["custom_metadata"]
    assert own["model"] == "resnet50" and own["reason"] == "mine"
    assert (
        bundle_metadata["reason"] != "mine" and own["tracker"] != "mine"
    )  # our own keys are not overwritten
    if runner is preload:
        assert bundle_metadata["request"]["size"] - (128 << 40) in (
            0,
            1,
        )  # a bytearray has one more byte, a NUL
    analyzed(program, plain, device, bundle)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=[NUMBA, pytest.mark.full])])
def test_classify(plain, program, device, tmp_path):
    text = (PROGRAMS / "classify.py").read_text()
    assert text.count("Error(") == 7 + 1  # its cases and a class
    said = program(plain, "classify", device)
    assert list(said) == [
        "RuntimeError True True not tried",
        "MemoryError True True not tried",
        "ResourceExhaustedError True True not tried",
        "ValueError False False None",
        "RuntimeError False False None",
        "KeyError False False None",
    ]
    assert not (tmp_path / "oom_dumps").exists()


@each_device(*WITHOUT_NUMBA)
def test_simulate(runner, program, plain, device):
    said = program(runner, "simulate", device)
    assert said["is OOM"] == said["dump exists"] == "True"
    result = analyzed(program, plain, device, said["dump"])
    assert result["exception"] == "builtins RuntimeError" and result["context"] == "demo.simulated"
    assert result["reason"].startswith("exception")
    backend = "cpu" if device == "cpu" else "cuda"
    assert Path(said["dump"]).name.startswith(f"oom_{backend}_")
    assert metadata(Path(said["dump"]))["backend"] == backend
    own = metadata(Path(said["dump"]))["custom_metadata"]
    assert own["scenario_mode"] == "simulated" and own["backend"] == backend
    events = json.loads((Path(said["dump"]) / "events.json").read_text())
    assert {"start", "error"} <= {event["event_type"] for event in events}


def test_stress_on_the_host(oomrec, plain, program):
    limited = ["run", "--limit", "256M", "--"]
    said = program(oomrec, "stress", "cpu", 4096, before=limited)
    assert said["status"] == "PASS", said
    bundle_metadata = metadata(Path(said["dump"]))
    assert (
        bundle_metadata["reason"] == "soft_limit"
        and bundle_metadata["exception_type"] == "MemoryError"
    )
    assert (
        bundle_metadata["context"] == "demo.stress"
        and bundle_metadata["custom_metadata"]["cap_mb"] == 4096
    )
    analyzed(program, plain, "cpu", said["dump"])


@pytest.mark.needs_module("numba")
def test_stress_on_a_gpu(runner, plain, program):
    said = program(runner, "stress", "cuda:0", 4096)
    assert said["status"] == "PASS", said
    output = analyzed(program, plain, "cuda:0", said["dump"])
    assert output["exception"].endswith("CudaAPIError")


OF_THE_HOST = {
    "profiler": "CPUMemoryProfiler",
    "result": ["after", "before", "duration", "memory_diff", "name", "peak_rss"],
    "summary": [
        "baseline_rss", "memory_change_from_baseline", "mode", "peak_memory_usage",
        "snapshots_collected",
    ],
    "snapshot": ["cpu_percent", "rss", "timestamp", "vms"],
}  # fmt: skip
OF_A_GPU = {
    "profiler": "GPUMemoryProfiler",
    "result": [
        "call_count", "execution_time", "function_name", "memory_after", "memory_allocated",
        "memory_before", "memory_diff", "memory_freed", "memory_peak", "peak_memory_usage",
        "tensors_created", "tensors_deleted",
    ],
    "summary": [
        "baseline_memory_usage", "current_memory_usage", "device", "function_summaries",
        "memory_change_from_baseline", "monitoring_active", "net_memory_change",
        "peak_memory_usage", "snapshots_collected", "total_execution_time",
        "total_function_calls", "total_functions_profiled", "total_memory_allocated",
        "total_memory_freed",
    ],
    "snapshot": [
        "active_memory", "allocated_memory", "cpu_memory", "device_id", "inactive_memory",
        "max_memory_allocated", "max_memory_reserved", "operation", "reserved_memory",
        "stack_trace", "timestamp",
    ],
}  # fmt: skip


@each_device(("recorded", "cuda:0"), ("loaded later", "cpu"))
def test_profilers(runner, program, device):
    """Without a GPU the program continues on the host, as it does with gpumemprof."""
    no_driver = {"LD_LIBRARY_PATH": ""} if device == "cpu" else {}
    said = program(runner, "profilers", device, env=no_driver)
    expected = OF_THE_HOST if device == "cpu" else OF_A_GPU
    assert said == {
        **{key: str(value) for key, value in expected.items()},
        "raised": "'mine'",
        "named": "['load', 'block', 'failing']",
        **dict.fromkeys(("grown", "monitored", "peak", "change", "cleared"), "True"),
    }


@each_device(*WITHOUT_NUMBA, ("recorded", "cuda:0"))
def test_alerts(runner, program, device):
    said = program(runner, "alerts", device)
    assert said.pop("fields") == str(sorted({**telemetry.REQUIRED, **telemetry.OPTIONAL}))
    assert said == {
        "unknown": "Unknown threshold",
        "kinds": "['warning']",
        "large": "2",
        "last": "['stop']",
        "cleanups": "1",
        "rows": "True 2 stop",
        **dict.fromkeys(
            ("tracking", "percent", "heard of", "freed", "peak", "mean", "exported"), "True"
        ),
    }


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_recorder(runner, program, plain, tmp_path, device):
    said = program(runner, "recorder", device)
    assert said == {
        "dumps": "3 3",
        "left": "2 True",
        "kept": "[5, 6, 7, 8]",
        "named": "True 2",
        "files": "True",
        "exception": "builtins RuntimeError request 8",
        "message": "CUDA out of memory. Tried to allocate 2.00 GiB",
        "number": "8",
        "events": "[5, 6, 7, 8]",
        "system": "Linux False",
        "pid": "int True",
        "off": "None",
    }
    assert len(list((tmp_path / "flights").glob(f"oom_{device.partition(':')[0]}_*"))) == 2


def test_tensorflow_blocks(runner, program):
    """TensorFlow need not be installed: on the host it is not used."""
    said = program(runner, "tensorflow_blocks")
    assert said == {
        "returned": "32 16 evaluated",
        "still": "True False",
        "calls": "{'epoch': 1, 'evaluate': 1, 'load': 2, 'validation': 1}",
        "profile": str(
            ["calls", "peak_memory", "snapshots", "total_duration", "total_memory_used"]
        ),
        "fields": "True True 0.0",
        "alert": "['memory_mb', 'message', 'threshold_mb', 'timestamp'] True",
        "recent": "True True",
        "reset": "{}",
        "system": "cpu",
        **dict.fromkeys(("names", "in order", "samples"), "True"),
    }


def test_stress_below_its_cap(runner, program):
    assert program(runner, "stress", "cpu", 64) == {"status": "SKIP", "dump": "None"}
