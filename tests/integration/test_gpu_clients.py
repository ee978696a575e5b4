"""Third-party clients of the CUDA driver run out of memory on the fake driver.

They end as without the recorder. `show` names the line that failed and the lines that hold the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HELD = 5 * 200 << 20  # of the device's 1 GiB
EXIT_CODE = 3
CLIENTS = {
    "numba": ("cuMemAlloc", {"hold", "make_batch"}),
    "cuda_bindings": ("cuMemAlloc", {"make_batch"}),
    "cuda_core": ("cuMemAllocFromPoolAsync", {"make_batch"}),
}


def cases():
    for client in CLIENTS:
        module = client.replace("_", ".")
        yield pytest.param(client, marks=pytest.mark.needs_module(module))


@pytest.fixture
def environment(build_dir):
    return {"LD_LIBRARY_PATH": build_dir / "tests" / "fake_gpu", "FAKE_GPU_BYTES": "1G"}


def lines_of(stack: list[dict], script: str) -> dict[str, str]:
    """The script's functions in a stack, each with the text of its line."""
    text = Path(script).read_text().splitlines()
    return {
        frame["function"]: text[frame["line"] - 1].strip()
        for frame in stack
        if frame["kind"] == "python" and frame["file"] == script
    }


def driver_of(oomrec, run) -> dict:
    [driver] = oomrec.json("show", run.bundles()[-1])["process"]["drivers"]
    return driver


@pytest.mark.parametrize("client", cases())
def test_the_requester_and_the_holders_are_named(
    oomrec, plain, preload, victim, environment, client
):
    api, functions = CLIENTS[client]
    script = victim(f"python/gpu_{client}.py")
    without = plain(sys.executable, script, env=environment)
    assert without.exit_code == EXIT_CODE and "OUT_OF_MEMORY" in without.stdout, str(without)
    run = preload(sys.executable, script, env=environment)
    assert (run.stdout, run.exit_code) == (without.stdout, without.exit_code), str(run)

    bundle = run.bundles()[-1]  # numba tries twice
    shown = oomrec.json("show", bundle)
    request = shown["request"]
    assert (request["api"], request["size"], request["space"]) == (api, 200 << 20, "cuda")
    asked = lines_of(request["stack"], script)
    assert functions | {"<module>"} == set(asked) and asked["<module>"] == "make_batch()", asked

    largest = next(row for row in shown["holders"] if row["space"] == "cuda")
    assert (largest["bytes"], largest["count"]) == (HELD, 5)
    assert lines_of(largest["stack"], script) == asked
    name = Path(script).name
    assert oomrec("show", bundle).stdout.count(f"{name}:") >= 2 * len(asked)


@pytest.mark.needs_module("numba")
def test_numba_resolves_names_by_dlsym(oomrec, preload, victim, environment):
    run = preload(sys.executable, victim("python/gpu_numba.py"), env=environment)
    driver = driver_of(oomrec, run)
    assert driver["by_dlsym"] >= 4 and driver["by_resolver"] == driver["linked"] == 0, driver
    spaces = oomrec.json("show", run.bundles()[-1])["spaces"]
    assert spaces["cuda"]["live_bytes"] == HELD + (1 << 20), spaces["cuda"]
    assert spaces["cuda_host"]["live_bytes"] == 4 << 20, spaces["cuda_host"]


@pytest.mark.needs_module("cuda.bindings")
def test_cuda_bindings_resolves_names_through_the_driver(oomrec, preload, victim, environment):
    """For each kind of default stream."""
    script = victim("python/gpu_cuda_bindings.py")
    for per_thread in (None, "1"):
        env = {**environment, "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": per_thread}
        run = preload(sys.executable, script, env=env)
        driver = driver_of(oomrec, run)
        assert driver["by_dlsym"] == 1 and driver["linked"] == 0, driver
        assert driver["by_resolver"] > 80, driver
        spaces = oomrec.json("show", run.bundles()[-1])["spaces"]
        assert spaces["cuda"]["live_bytes"] == HELD and spaces["cuda"]["live_count"] == 5
        assert spaces["cuda_host"]["live_bytes"] == 4 << 20


@pytest.mark.parametrize("release", [12, 13])
def test_lookups_by_the_runtime_are_wrapped(
    oomrec, plain, preload, victim, build_dir, environment, release
):
    """Until the runtime gives up: the fake driver lacks other functions that it needs."""
    runtime = build_dir / "gpu-headers" / f"cuda-{release}" / f"libcudart.so.{release}"
    if not runtime.exists():
        pytest.skip(f"not here: {runtime} (scripts/gpu-headers)")
    program = (sys.executable, victim("python/gpu_cudart.py"), runtime)
    without = plain(*program, env=environment)
    assert (without.stdout, without.exit_code) == ("cudaErrorCallRequiresNewerDriver\n", 1)
    run = preload(*program, env=environment)
    assert (run.stdout, run.exit_code) == (without.stdout, without.exit_code), str(run)
    driver = driver_of(oomrec, run)
    assert driver["by_dlsym"] == 1 and driver["by_resolver"] >= 60, driver
