"""The commands with GPUs, on the drivers of tests/fake_gpu: two devices of 1 GiB each.

`oomrec stress` or a Python program that calls the driver by ctypes fills them.
"""

import json

import pytest
from conftest import written
from python_programs import CUDA
from schemas import check
from watching import Watch, wait_for

MIB = 1 << 20

# Holds 300 MiB on the second device and 600 MiB, on two lines, on the first; then requests too much.
TWO_DEVICES = f"""{CUDA}
def second_device():
    use(1)
    allocate(300)
def first_device():
    use(0)
    allocate(100)
    allocate(500)
    return allocate(700)
second_device()
sys.exit(first_device())
"""


@pytest.fixture
def on_fakes(oomrec, build_dir):
    """The command with the fake drivers and without any real GPU."""
    oomrec.environment["LD_LIBRARY_PATH"] = str(build_dir / "tests" / "fake_gpu")
    return oomrec


def follows(schema: str, value: dict) -> dict:
    check(schema, value)
    return value


def functions(holder: dict) -> list[str]:
    return [frame["function"] for frame in holder["stack"]]


@pytest.fixture
def two_devices(on_fakes, tmp_path):
    """A program on both devices with a failure on the first, where other processes have memory, too."""
    script = written(tmp_path / "train.py", TWO_DEVICES)
    others = "0:used=950M,pid=1/300M,pid=2;1:used=300M"
    run = on_fakes("run", "--", "python3", script, env={"FAKE_NVML": others})
    assert run.exit_code == 2, str(run)
    return run.only_bundle()


def test_devices_are_kept_apart(on_fakes, two_devices):
    shown = follows("show", on_fakes.json("show", two_devices))
    request = shown["request"]
    assert (request["api"], request["space"], request["device"], request["error"]) == (
        "cuMemAlloc",
        "cuda",
        "cuda:0",
        "CUDA_ERROR_OUT_OF_MEMORY",
    )
    second, first = shown["devices"]  # in the order of their first use
    assert (first["device"], second["device"]) == ("cuda:0", "cuda:1")
    assert (first["held_bytes"], second["held_bytes"]) == (600 * MIB, 300 * MIB)
    assert (first["total_bytes"], first["free_bytes"]) == (1024 * MIB, 424 * MIB)
    assert first["others_bytes"] == 0 and first["uuid"] != second["uuid"]
    assert [(row["bytes"], row["count"]) for row in second["holders"]] == [(300 * MIB, 1)]
    assert "second_device" in functions(second["holders"][0])
    assert [row["bytes"] for row in first["holders"]] == [500 * MIB, 100 * MIB]
    assert shown["spaces"]["cuda"]["live_bytes"] == 900 * MIB
    shares = [row["share"] for row in shown["holders"] if row["space"] == "cuda"]
    assert 0.9 < sum(shares) <= 1


def test_the_page_names_the_device_and_its_other_processes(on_fakes, two_devices):
    page = on_fakes("show", two_devices).stdout
    assert "from cuMemAlloc on cuda:0: CUDA_ERROR_OUT_OF_MEMORY" in page
    assert "holders on cuda:1" in page and "  cuda:0  Fake CUDA GPU (GPU-" in page
    devices = page.split("\ndevices\n")[1].split("\nholders on")[0]
    first = devices[devices.index("cuda:0") :]
    lines = [line.strip() for line in first.splitlines() if "also used by" in line]
    assert [line.split(" (pid ")[1] for line in lines] == ["1): 300.0 MiB", "2)"]
    assert "also used by" not in devices[: devices.index("cuda:0")]
    for command in ("show", "stats", "ls"):
        words = [] if command == "ls" else [two_devices]
        wide = [line for line in on_fakes(command, *words).stdout.splitlines() if len(line) > 100]
        assert wide == []
    (first, _) = sorted(
        on_fakes.json("show", two_devices)["devices"], key=lambda row: row["device"]
    )
    assert [(row["pid"], row["bytes"]) for row in first["processes"]] == [
        (1, 300 * MIB),
        (2, None),
    ]


def test_a_watcher_lists_the_devices_other_processes(on_fakes, preload, tmp_path):
    script = written(tmp_path / "train.py", TWO_DEVICES)
    watch = Watch(on_fakes, FAKE_NVML="0:used=950M,pid=1/300M", MEMORY_PRESSURE_WATCH="/dev/null")
    run = preload("python3", script, env=on_fakes.environment)
    asked = run.only_bundle() / "gpu_processes.json"
    wait_for(asked.exists)
    check("gpu_processes", json.loads(asked.read_text()))
    watch.stop()
    (first,) = (
        row for row in on_fakes.json("show", run.only_bundle())["devices"] if row["ordinal"] == 0
    )
    assert [(row["pid"], row["bytes"]) for row in first["processes"]] == [(1, 300 * MIB)]


def test_statistics_include_the_drivers_figures(on_fakes, two_devices):
    stats = follows("stats", on_fakes.json("stats", two_devices))
    assert stats["apis"]["cuMemAlloc"] == {"count": 3, "bytes": 900 * MIB}
    assert stats["spaces"]["cuda"]["allocated_bytes"] == 900 * MIB
    assert [row["held_bytes"] for row in stats["devices"]] == [300 * MIB, 600 * MIB]
    assert 900 * MIB < stats["live_bytes"] < 1000 * MIB
    printed = on_fakes("stats", two_devices).stdout
    assert "  not included: 3 allocations of GPU memory, 900.0 MiB\n" in printed
    tree = on_fakes.json("tree", "--space", "cuda", two_devices)
    assert tree["root"]["bytes"] == 900 * MIB
    tree = on_fakes.json("tree", "--device", "cuda:1", two_devices)
    assert tree["root"]["bytes"] == 300 * MIB
    assert on_fakes.json("tree", "--device", "cuda:1", "--space", "cuda", two_devices) == {
        **tree,
        "space": "cuda",
    }
    everything = on_fakes.json("tree", two_devices)
    assert everything["root"]["bytes"] >= 900 * MIB


@pytest.mark.parametrize(
    "words, what",
    [
        (["--device", "cuda:7"], "the recording has no device cuda:7"),
        (["--device", "cuda:0", "--at", "peak"], "there is no peak by device"),
        (["--device", "cuda:0", "--space", "heap"], "the space heap is not on cuda:0"),
        (["--device", "cuda:0", "--space", "hip"], "the space hip is not on cuda:0"),
    ],
)
def test_an_invalid_device_for_a_tree(on_fakes, two_devices, words, what):
    run = on_fakes("tree", *words, two_devices)
    assert run.exit_code == 2 and what in run.stderr.splitlines()[0]


@pytest.mark.parametrize(
    "space, error", [("cuda", "CUDA_ERROR_OUT_OF_MEMORY"), ("hip", "hipErrorOutOfMemory")]
)
def test_stress_fills_a_device(on_fakes, space, error):
    words = ["--space", space, "--device", "1", "--max", "2G", "--step", "256M"]
    run = on_fakes("stress", *words)
    assert run.exit_code == 3, str(run)
    *steps, last = run.stdout.splitlines()
    assert len(steps) == 4 and last == f"refused at 1.0 GiB: {error}"
    shown = follows("show", on_fakes.json("show", run.only_bundle()))
    assert shown["verdict"]["code"] == "device_out_of_memory"
    assert (shown["request"]["device"], shown["request"]["error"]) == (f"{space}:1", error)
    (device,) = shown["devices"]
    assert (device["ordinal"], device["held_bytes"]) == (1, 1 << 30)


def test_stress_stops_at_the_device_limit(on_fakes):
    words = ["--space", "cuda", "--limit", "500M", "--max", "1G", "--step", "100M"]
    run = on_fakes("stress", *words)
    assert run.exit_code == 3
    assert run.stdout.splitlines()[-1] == "refused at 500.0 MiB: CUDA_ERROR_OUT_OF_MEMORY"
    shown = on_fakes.json("show", run.only_bundle())
    assert (shown["verdict"]["code"], shown["limit"]["kind"]) == ("device_limit", "device")
    (device,) = shown["devices"]
    assert (device["limit_bytes"], device["held_bytes"]) == (500 * MIB, 500 * MIB)


def test_stress_within_the_given_size_gets_everything(on_fakes):
    run = on_fakes("stress", "--space", "cuda", "--max", "200M", "--step", "64M")
    assert run.exit_code == 0 and run.bundles() == []
    assert run.stdout.splitlines()[-1] == "200.0 MiB of 200.0 MiB"


@pytest.mark.parametrize(
    "words, environment, what",
    [
        (["--space", "cuda"], {}, "--max is missing"),
        (["--space", "cuda", "--max", "1G", "--device", "7"], {}, "there is no device 7"),
        (["--max", "1G", "--device", "1"], {}, "--space heap is not on a device"),
        (["--space", "cuda", "--max", "1G"], {"LD_LIBRARY_PATH": None}, "no CUDA driver here"),
        (["--space", "hip", "--max", "1G"], {"LD_LIBRARY_PATH": None}, "no HIP driver here"),
        (["--space", "cuda", "--max", "1G"], {"FAKE_GPU_DEVICES": "0"}, "does not work"),
    ],
)
def test_the_reason_why_no_device_can_be_filled(on_fakes, words, environment, what):
    run = on_fakes("stress", *words, env=environment)
    if environment.get("LD_LIBRARY_PATH", "") is None and run.exit_code != 2:
        pytest.skip("this machine has such a driver")
    assert run.exit_code == 2 and what in run.stderr.splitlines()[0]
    assert len(run.stderr.splitlines()) == 2 and run.stdout == ""


@pytest.mark.parametrize("value", ["much", "1G@", "1G@x", "1G,2G@", "@0", "", "1G,2G"])
def test_an_invalid_device_limit(on_fakes, value):
    run = on_fakes("run", "--limit-gpu", value, "--", "true")
    what, advice = run.stderr.splitlines()
    assert run.exit_code == 125 and "--limit-gpu" in what and "8G@0,4G@1" in advice


def test_limits_per_device(on_fakes, tmp_path):
    script = written(tmp_path / "train.py", TWO_DEVICES)
    run = on_fakes("run", "--limit-gpu", "4G,400M@cuda:0,1M@hip:0", "--", "python3", script)
    shown = on_fakes.json("show", run.bundles()[0])
    limits = {row["device"]: row["limit_bytes"] for row in shown["devices"]}
    assert limits == {"cuda:0": 400 * MIB, "cuda:1": 4 << 30}
    assert (shown["request"]["size"], shown["verdict"]["code"]) == (500 * MIB, "device_limit")


@pytest.mark.parametrize("kind", ["device_out_of_memory", "device_limit", "device_fragmentation"])
def test_a_simulation_needs_no_driver(oomrec, kind):
    made = oomrec.json("simulate", kind)
    shown = follows("show", oomrec.json("show", made["bundle"]))
    assert (shown["trigger"], shown["verdict"]["code"]) == ("simulated", kind)
    (device,) = shown["devices"]
    assert (device["name"], device["total_bytes"]) == ("simulated device", 1 << 30)
