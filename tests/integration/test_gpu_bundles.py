"""The bundle of a failed GPU allocation, on the fake drivers: verdict, figures, outcome."""

import json
import sys

import pytest
from schemas import check

MIB = 1 << 20
BATCH = 200 * MIB


@pytest.fixture
def on_gpu(preload, victim, build_dir):
    """on_gpu("exhaust", OOMREC_FAIL="…") is a run on two devices of 1 GiB."""

    def run(*args, **env):
        env = {"FAKE_GPU_BYTES": "1G", "LD_LIBRARY_PATH": build_dir / "tests" / "fake_gpu", **env}
        return preload(sys.executable, victim("python/gpu_failures.py"), *args, env=env)

    return run


def read(bundle, name):
    return json.loads((bundle / f"{name}.json").read_text())


def test_a_full_device(on_gpu):
    run = on_gpu("exhaust")
    assert (run.exit_code, run.stdout) == (3, "refused 2 5\n"), str(run)
    bundle = run.only_bundle()
    assert bundle.name.startswith("oom_cuda_")
    for name in ("manifest", "metadata", "events", "environment", "symbols", "processes"):
        check(name, read(bundle, name))

    metadata = read(bundle, "metadata")
    assert metadata["backend"] == "cuda" and metadata["outcome"] == "exited 3"
    assert metadata["verdict"]["code"] == "device_out_of_memory"
    summary = metadata["verdict"]["summary"]
    asked, refused = summary.split(" and was refused: ")
    assert f"{asked} at gpu_failures.py:20 Cuda.allocate and was refused: {refused}" in run.stderr
    assert "asked cuMemAlloc for 200.0 MiB on cuda:0 (Fake CUDA GPU) and was refused: " in summary
    assert "24.0 MiB of 1.0 GiB were free; this process holds 1000.0 MiB, others" in summary
    assert "largest holder: 1000.0 MiB in 5 blocks, gpu_failures.py:" in run.stderr
    request = metadata["request"]
    assert (request["error"], request["size"]) == ("CUDA_ERROR_OUT_OF_MEMORY", BATCH)
    assert (request["device"]["kind"], request["device"]["id"]) == ("cuda", 0)
    evidence = request["device_evidence"]
    assert evidence["used_bytes"] == evidence["counted_bytes"] == 5 * BATCH
    assert any(frame["function"] == "make_batch" for frame in request["stack"])

    events = [e for e in read(bundle, "events") if e["backend"] == "cuda"]
    assert [e["memory_allocated"] for e in events] == [BATCH * i for i in (1, 2, 3, 4, 5, 5)]
    assert {(e["device_id"], e["api"]) for e in events} == {(0, "cuMemAlloc")}
    assert events[-1]["result"] == "CUDA_ERROR_OUT_OF_MEMORY"
    environment = read(bundle, "environment")
    (gpu,) = environment["gpus"]
    assert (gpu["uuid"], gpu["peak_bytes"]) == (request["device"]["uuid"], 5 * BATCH)
    assert environment["versions"]["driver"] == f"CUDA {gpu['driver_version']}"
    assert gpu["driver_path"].endswith("/libcuda.so.1")


def test_the_users_limit(on_gpu):
    run = on_gpu("exhaust", OOMREC_LIMIT_GPU="500M")
    assert run.stdout == "refused 2 2\n", str(run)
    metadata = read(run.only_bundle(), "metadata")
    check("metadata", metadata)
    assert metadata["verdict"]["code"] == "device_limit"
    assert metadata["limit"] == {"kind": "device", "bytes": 500 * MIB, "used": 2 * BATCH}
    assert metadata["request"]["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
    # The device's current state, whatever caused the failure.
    assert metadata["request"]["device_evidence"]["free_bytes"] == 1024 * MIB - 2 * BATCH
    assert "oomrec: cuda:0 (Fake CUDA GPU): 624.0 MiB of 1.0 GiB were free" in run.stderr


def test_a_device_of_another_vendor(on_gpu):
    run = on_gpu("exhaust", "hip")
    assert run.exit_code == 3, str(run)
    bundle = run.only_bundle()
    assert bundle.name.startswith("oom_rocm_")
    request = read(bundle, "metadata")["request"]
    assert (request["api"], request["error"]) == ("hipMalloc", "hipErrorOutOfMemory")
    assert (request["device"]["kind"], request["device"]["id"]) == ("hip", 1)


def test_a_successful_retry_is_a_recovery(on_gpu):
    """The program exits with 3 for an unknown reason, which is not this failure."""
    run = on_gpu("recover")
    assert (run.exit_code, run.stdout) == (3, "served 0\n"), str(run)
    assert read(run.only_bundle(), "metadata")["outcome"] == "recovered"


def test_a_crash_on_the_host_does_not_follow_from_a_device_failure(on_gpu, oomrec):
    """No address on the host comes from a device pointer."""
    run = on_gpu("use_null")
    assert run.exit_code == 128 + 11, str(run)
    oomrec("recover")
    written = [read(bundle, "metadata") for bundle in run.bundles()]
    for metadata in written:
        check("metadata", metadata)
    ends = {metadata["verdict"]["code"]: metadata["outcome"] for metadata in written}
    assert ends == {"device_out_of_memory": "recovered", "crashed": "signal 11"}


@pytest.mark.parametrize(
    "env, what",
    [
        ({}, "cuda:0 (Fake CUDA GPU) is at 97 % of its 1.0 GiB (in use 1000.0 MiB"),
        ({"OOMREC_LIMIT_GPU": "1001M"}, "is at 99 % of --limit-gpu of 1001.0 MiB on cuda:0"),
    ],
)
def test_a_requested_warning_comes_once_per_approach(on_gpu, env, what):
    run = on_gpu("approach", OOMREC_WARN="90", OOMREC_MAX_DUMPS="0", **env)
    assert run.stdout == "held 5\n", str(run)
    found = run.bundles_for("near_limit")
    assert len(found) == 2 and run.bundles() == found, str(run)
    for bundle in found:
        metadata = read(bundle, "metadata")
        assert metadata["verdict"]["code"] == "near_limit"
        assert what in metadata["verdict"]["summary"]
        assert (metadata["backend"], metadata["limit"]["kind"]) == ("cuda", "device")
        assert metadata["limit"]["used"] == 5 * BATCH


def test_a_failure_needs_no_warning(on_gpu):
    assert on_gpu("approach").bundles() == []


@pytest.mark.parametrize(
    "rule, api, exit_code",
    [("cuMemAlloc:nth=3", "cuMemAlloc", 3), ("cuDevicePrimaryCtxRetain", None, 1)],
)
def test_an_injected_failure(on_gpu, rule, api, exit_code):
    run = on_gpu("exhaust", OOMREC_FAIL=rule)
    assert run.exit_code == exit_code, str(run)
    metadata = read(run.only_bundle(), "metadata")
    assert metadata["verdict"]["code"] == "injected"
    assert f"the rule {rule} of --fail" in metadata["verdict"]["evidence"][0]
    if api is None:
        assert f"called {rule} on cuda:0" in metadata["verdict"]["summary"]
    else:
        assert run.stdout == "refused 2 2\n"


def test_memory_kept_by_pools(on_gpu):
    run = on_gpu("leave_pools")
    assert run.stdout == "refused 2\n", str(run)
    metadata = read(run.only_bundle(), "metadata")
    assert metadata["verdict"]["code"] == "device_fragmentation", metadata["verdict"]
    assert metadata["request"]["device_evidence"]["pool_reserved_bytes"] == 3 * BATCH
