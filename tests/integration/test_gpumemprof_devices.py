"""Devices and their figures, from modules that answer like PyTorch, numba and cuda-python."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import pytest
from framework_modules import GIB, MIB, fake_torch
from oomrec import gpumemprof
from oomrec.gpumemprof import (
    ConfigurationError,
    DeviceMemorySample,
    GPUMemoryProfiler,
    MemoryTracker,
    ProfilerError,
    _proc,
    build_device_memory_collector,
    detect_torch_runtime_backend,
    device_collectors,
)
from oomrec.gpumemprof._devices import Device, parse_device


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
def test_devices_can_be_given_in_many_ways(device, expected):
    assert parse_device(device) == expected


@pytest.mark.parametrize("device", ["cuda:", "cuda:x", "tpu", "", -1, True, 1.0, [], "cuda:-1"])
def test_an_invalid_device_is_rejected(device):
    with pytest.raises(ConfigurationError, match="is not a device"):
        parse_device(device)


@pytest.mark.parametrize("device", ["mps", "mps:0", SimpleNamespace(type="mps", index=0)])
@pytest.mark.parametrize("made", [MemoryTracker, GPUMemoryProfiler, build_device_memory_collector])
def test_metal_is_rejected_on_linux(made, device):
    with pytest.raises(RuntimeError, match='device="cpu"') as error:
        made(device=device)
    for expected in (ConfigurationError, ProfilerError, ValueError):
        assert isinstance(error.value, expected)


@pytest.mark.parametrize("device", [0, "cuda", "cuda:0", SimpleNamespace(type="cuda", index=0)])
@pytest.mark.parametrize("made", [MemoryTracker, GPUMemoryProfiler, build_device_memory_collector])
def test_an_unknown_gpu_is_rejected_with_advice(no_frameworks, made, device):
    with pytest.raises(ConfigurationError, match='no GPU is known.*device="cpu"'):
        made(device=device)


def test_without_a_gpu_the_device_is_the_process(no_frameworks):
    assert MemoryTracker().backend == "cpu"
    assert str(MemoryTracker(device="cpu").device) == "cpu"
    assert detect_torch_runtime_backend() == "cpu"
    assert gpumemprof.get_system_info()["detected_backend"] in ("cpu", "cuda", "rocm")
    assert "error" in gpumemprof.get_gpu_info()


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


def test_a_rocm_gpu(no_frameworks, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", fake_torch(hip="6.4"))
    assert build_device_memory_collector().capabilities()["telemetry_collector"] == (
        "gpumemprof.rocm_tracker"
    )
    info = gpumemprof.get_system_info()
    assert (info["detected_backend"], info["rocm_available"], info["rocm_version"]) == (
        "rocm", True, "6.4",
    )  # fmt: skip


def test_system_information(torch):
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
    cuda = ModuleType("numba.cuda")
    cuda.is_available = lambda: False  # there is no CUDA toolkit
    cuda.gpus = [nullcontext(), nullcontext()]
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
    assert ("cuDevicePrimaryCtxRetain" in pushed) == bool(is_active)  # it creates no context
    assert pushed.count("cuCtxPushCurrent") == pushed.count("cuCtxPopCurrent") == is_active
    with pytest.raises(ConfigurationError):
        build_device_memory_collector(1)


@pytest.mark.parametrize(
    ("membership", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "1000"}, 1000),  # in a container's namespace
        ("0::/\n", {"memory.max": "max"}, None),
        ("0::/a/b\n", {"a/memory.max": "500", "a/b/memory.max": "700"}, 500),
        ("0::/a/b\n", {"a/memory.max": "max", "a/b/memory.max": "700"}, 700),
        ("0::/elsewhere\n", {"memory.max": "900"}, 900),  # a path on the host
        (
            "4:cpu:/\n3:memory:/a\n0::/\n",
            {"memory/a/memory.limit_in_bytes": "300", "memory.max": "max"},
            300,
        ),
        ("0::/\n", {}, None),
    ],
)
def test_the_limit_of_a_cgroup(tmp_path, monkeypatch, membership, limits, expected):
    for name, text in limits.items():
        (tmp_path / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroup" / name).write_text(text + "\n")
    (tmp_path / "membership").write_text(membership)
    monkeypatch.setattr(_proc, "_CGROUPS", str(tmp_path / "cgroup"))
    monkeypatch.setattr(_proc, "_MEMBERSHIP", str(tmp_path / "membership"))
    assert _proc.cgroup_limit_bytes() == expected
    assert _proc.host_limit_bytes() == expected or expected is None


def test_frameworks_are_not_imported_for_the_program(plain):
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
