"""scripts/check-gpu on fake drivers: it reports what passes and what fails."""

import shutil
import sys

import pytest
from attach_targets import needs_tracing
from conftest import SOURCE

# The check's own programs on the drivers. Those of the frameworks need real devices.
DRIVERS = ["--check", "CUDA: ", "--check", "HIP: ", "--check", "linked"]
# Not on simulated devices, or only on request.
SKIPPED = {
    "CUDA: a kernel",
    "CUDA: a refused context",
    "CUDA: other processes on the device",
    "HIP: a kernel",
    "HIP: a context that ends",
    "HIP: a refused context",
    "HIP: other processes on the device",
}


@needs_tracing
@pytest.mark.needs_module("cuda.bindings")
def test_the_check_of_attach_passes_on_simulated_devices(check_gpu):
    run = check_gpu("--check", "attach: cuda-bindings", FAKE_GPU_BYTES="4G")
    assert run.exit_code == 0 and results(run)["PASS"] == ["attach"], str(run)
    assert "1.0 GiB at its line" in run.stdout


@pytest.fixture
def check_gpu(plain, build_dir):
    """check_gpu("--check", "HIP: ") is the Run; `results` reads its lines."""

    def run(*words, build=build_dir, **env):
        env = {
            "LD_LIBRARY_PATH": build_dir / "tests" / "fake_gpu",
            "TMPDIR": plain.directory,
            **env,
        }
        return plain(
            sys.executable, SOURCE / "scripts" / "check-gpu", build, *words, env=env, timeout=300
        )

    return run


def results(run) -> dict[str, list[str]]:
    """The checks' names by PASS, FAIL and SKIP."""
    found = {"PASS": [], "FAIL": [], "SKIP": []}
    for line in run.stdout.splitlines():
        word, _, rest = line.partition("  ")
        if word in found:
            found[word].append(
                ": ".join(rest.split(": ")[: 2 if rest[:3] in ("CUD", "HIP") else 1])
            )
    return found


def test_every_check_passes_on_simulated_devices(check_gpu):
    run = check_gpu(*DRIVERS)
    found = results(run)
    assert run.exit_code == 0 and not found["FAIL"], str(run)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    linked = set() if compiler else {"a program linked with the driver"}
    assert set(found["SKIP"]) == SKIPPED | linked, str(run)
    assert len(found["PASS"]) >= 27, str(run)
    assert run.stdout.splitlines()[0].startswith("oomrec ")
    assert "cuda:1  Fake CUDA GPU, 1.0 GiB of 1.0 GiB free" in run.stdout
    assert "simulated devices" in run.stdout


@pytest.mark.full  # they run in test_gpumemprof_programs.py
@pytest.mark.needs_module("numba")
def test_programs_of_gpumemprofs_users_run_on_a_simulated_device(check_gpu):
    run = check_gpu("--check", "programs of gpumemprof", FAKE_GPU_BYTES="256M")
    assert run.exit_code == 0 and len(results(run)["PASS"]) == 1, str(run)


def test_checks_with_more_requirements_run_where_these_are_met(check_gpu):
    run = check_gpu(
        "--check", "CUDA: a refused context", "--check", "CUDA: other processes",
        FAKE_GPU_FAIL="cuCtxCreate_v2=2", FAKE_NVML="0:pid=1/500M",
    )  # fmt: skip
    assert run.exit_code == 0 and len(results(run)["PASS"]) == 2, str(run)


def test_a_recorder_without_hooks_fails_the_checks(check_gpu, build_dir, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "oomrec").symlink_to(build_dir / "oomrec")
    (broken / "liboomrec.so").symlink_to(build_dir / "tests" / "fake_gpu" / "libnvidia-ml.so.1")
    run = check_gpu("--check", "CUDA: ", build=broken)
    found = results(run)
    assert run.exit_code == 1, str(run)
    passed = {"CUDA: names", "CUDA: same results as without the recorder", "CUDA: cost"}
    assert set(found["PASS"]) == passed and len(found["FAIL"]) >= 12, str(run)


def test_checks_are_skipped_after_the_time_limit(check_gpu):
    run = check_gpu("--seconds", "0", "--check", "CUDA: ")
    found = results(run)
    assert run.exit_code == 0 and not found["PASS"] and not found["FAIL"], str(run)
    assert run.stdout.count(": no time is left\n") == len(found["SKIP"]) >= 12


def test_a_program_that_exceeds_the_time_limit_is_skipped(check_gpu):
    slow = "cuMemAlloc_v2=100000000"
    run = check_gpu("--seconds", "1", "--check", "CUDA: fill", FAKE_GPU_DELAY_US=slow)
    assert run.exit_code == 0 and "no time is left" in run.stdout, str(run)
    assert not results(run)["FAIL"] and not results(run)["PASS"]


def test_an_unknown_check(check_gpu):
    run = check_gpu("--check", "CUDA: names", "--check", "nosuch")
    assert run.exit_code == 2 and run.stdout == ""
    what, *names = run.stderr.splitlines()
    assert what == "scripts/check-gpu: no check here has 'nosuch'; there are"
    assert {"  CUDA: names", "  HIP: cost", "  numba: fill"} <= set(names)


def test_nothing_is_written_beside_the_check_programs(check_gpu, tmp_path):
    run = check_gpu("--check", "HIP: eight threads", PYTHONPYCACHEPREFIX=tmp_path)
    assert run.exit_code == 0 and list(tmp_path.rglob("*gpu_check*")) == [], str(run)


@pytest.mark.needs_gpu
def test_every_check_passes_on_this_machines_devices(plain, build_dir):
    plain(sys.executable, SOURCE / "scripts" / "check-gpu", build_dir, timeout=400, exits=0)


def test_a_missing_build_is_reported(check_gpu, tmp_path):
    run = check_gpu(build=tmp_path)
    assert run.exit_code == 2
    assert run.stderr.splitlines() == [f"scripts/check-gpu: no liboomrec.so in {tmp_path}"]
