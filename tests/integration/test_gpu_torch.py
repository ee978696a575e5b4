"""PyTorch's blocks and failures: a stand-in on the fake driver, and the real PyTorch on the CPU.

Eight batches of 30 MiB fit on the stand-in's device (tests/fake_torch/allocator.cpp).
"""

import json
import os
import sys

import pytest
from conftest import full

MIB = 1 << 20


@pytest.fixture
def on_gpu(build_dir, victim):
    """on_gpu(preload, VERSION, SCENARIO) is a run with that VERSION of PyTorch's memory reporter."""
    folders = [build_dir / "tests" / name for name in ("fake_gpu", "fake_torch")]

    def run(runner, version, scenario, **env):
        env = {
            "FAKE_GPU_BYTES": "256M",
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)),
            **env,
        }
        return runner(sys.executable, victim("python/torch_on_gpu.py"), version, scenario, env=env)

    return run


def read(bundle, name="metadata"):
    return json.loads((bundle / f"{name}.json").read_text())


def python_functions(stack):
    return [frame["function"] for frame in stack if frame["kind"] == "python"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_totals_match_pytorchs(on_gpu, preload, plain, oomrec, version, mode):
    alone = on_gpu(plain, version, "totals")
    run = on_gpu(preload, version, "totals", OOMREC_MODE=mode)
    assert (run.exit_code, run.stdout) == (alone.exit_code, alone.stdout), str(run)
    result = run.json()
    assert result["memory_reports"] == 55 and 0 < result["allocated"] < result["reserved"]

    shown = oomrec.json("show", run.bundle_at("totals"))
    torch = shown["spaces"]["torch"]
    assert torch["live_bytes"] == result["allocated"]
    assert (torch["allocated_count"], torch["live_count"]) == (41, 27)
    assert shown["spaces"]["cuda"]["live_bytes"] == result["reserved"]
    events = [e for e in read(run.bundle_at("totals"), "events") if e["space"] == "torch"]
    changes = [e["memory_change"] for e in events]
    if mode == "exact":
        assert len(changes) == 55 and sum(changes) == result["allocated"]
    else:  # all, except perhaps the small one
        assert len(changes) >= 53
    assert {e["device_id"] for e in events} == {0}


def test_a_failure_that_a_retry_overcomes_is_recovered(on_gpu, preload, plain):
    run = on_gpu(preload, 2, "recovered", OOMREC_ON_OOM="exit=7")
    assert (run.exit_code, run.stdout) == (0, on_gpu(plain, 2, "recovered").stdout), str(run)
    metadata = read(run.only_bundle())
    assert metadata["outcome"] == "recovered"
    assert (metadata["request"]["space"], metadata["request"]["size"]) == ("cuda", 200 * MIB)
    assert "make_weights" in python_functions(metadata["request"]["stack"])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_final_failure_is_reported_once(on_gpu, preload, plain, version):
    run, alone = on_gpu(preload, version, "refused"), on_gpu(plain, version, "refused")
    assert (run.exit_code, run.stdout) == (1, alone.stdout), str(run)
    assert run.json()["failure_reports"] == 1
    metadata = read(run.only_bundle())
    assert metadata["outcome"] == "exited 1"
    assert metadata["verdict"]["code"] == "device_out_of_memory"
    evidence = metadata["request"]["device_evidence"]
    assert evidence["torch_allocated_bytes"] == evidence["torch_reserved_bytes"] == 240 * MIB
    assert evidence["torch_largest_free_bytes"] == 0
    assert "make_weights" in python_functions(metadata["request"]["stack"])


def test_on_oom_acts_on_a_final_failure(on_gpu, preload):
    assert on_gpu(preload, 2, "refused", OOMREC_ON_OOM="exit=7").exit_code == 7


def test_a_harmless_failure_followed_by_a_final_one(on_gpu, preload):
    run = on_gpu(preload, 2, "both")
    assert run.exit_code == 1
    assert [read(b)["outcome"] for b in run.bundles()] == ["recovered", "exited 1"]
    assert [read(b)["request"]["size"] // MIB for b in run.bundles()] == [200, 400]


def test_fragmented_free_memory(on_gpu, preload):
    run = on_gpu(preload, 2, "fragmented", FAKE_GPU_BYTES="200M")
    metadata = read(run.only_bundle())
    assert metadata["verdict"]["code"] == "device_fragmentation", str(run)
    evidence = metadata["request"]["device_evidence"]
    assert evidence["torch_reserved_bytes"] == 160 * MIB
    assert evidence["torch_allocated_bytes"] == 96 * MIB
    assert evidence["torch_largest_free_bytes"] == 8 * MIB


def test_pytorchs_own_limit(on_gpu, preload):
    run = on_gpu(preload, 2, "fraction")
    assert run.exit_code == 1
    request = read(run.only_bundle())["request"]
    assert (request["space"], request["size"]) == ("torch", 80 * MIB)
    assert request["device_evidence"]["torch_reserved_bytes"] == 50 * MIB


@pytest.mark.needs_torch
@pytest.mark.parametrize("option, counted", [(["--torch-cpu"], 4), full([], 0)], ids=["on", "off"])
def test_the_profiler_output_is_unchanged(oomrec, victim, option, counted):
    words = ["--max-dumps", "0", "--", sys.executable, victim("python/torch_on_cpu.py")]
    run = oomrec("run", *option, *words)
    # What PyTorch alone says of these tensors.
    seen = {"without": [], "with": [4_000_000, 4_000_000, -4_000_000, 2800, 1_200_000]}
    assert run.json() == seen

    spaces = [oomrec.json("show", bundle)["spaces"]["torch"] for bundle in run.bundles()]
    assert len(spaces) == 4
    # Before and after, while it did not profile memory, and while it did.
    for before, after in (spaces[:2], spaces[2:]):
        assert after["live_bytes"] - before["live_bytes"] == (sum(seen["with"]) if counted else 0)
        assert after["allocated_count"] - before["allocated_count"] == counted
