"""Attribution to devices: stale driver figures, a child that opens the driver after fork, one line
that fills two devices."""

from __future__ import annotations

from python_programs import CUDA

MIB = 1 << 20

DRIVER = f"""{CUDA}
def fill(mib):
    count = 0
    while allocate(mib) == 0:
        count += 1
    return count
"""

CHILD = """
child = os.fork()
if child == 0:
    use(0)
    print("child", fill(64), flush=True)
    os._exit(3)
os.waitpid(child, 0)
"""

TWO_DEVICES = """
for ordinal, mib in ((0, 200), (1, 300)):
    use(ordinal)
    fill(mib)
sys.exit(3)
"""

RESET = """
use(0)
fill(100)
cuda.cuDevicePrimaryCtxReset(0)
use(1)
fill(300)
sys.exit(3)
"""

NOTHING_AT_ZERO = """
use(0)
allocate(5000)
ctypes.string_at(0)
"""


def shown(oomrec, preload, fake_gpu, program, **environment):
    run = preload("python3", "-c", DRIVER + program, env={**fake_gpu, **environment})
    return run, [oomrec.json("show", bundle) for bundle in run.bundles()]


def held(bundle: dict) -> dict:
    return {
        row["device"]: (row["held_bytes"] // MIB, row["used_bytes"] // MIB)
        for row in bundle["devices"]
    }


def test_a_limit_applies_in_a_child_that_opens_the_driver(oomrec, preload, fake_gpu):
    run, bundles = shown(oomrec, preload, fake_gpu, CHILD, OOMREC_LIMIT_GPU="300M")
    assert run.stdout == "child 4\n", str(run)
    assert [bundle["verdict"]["code"] for bundle in bundles] == ["device_limit"]
    assert bundles[0]["request"]["device"] == "cuda:0" and held(bundles[0]) == {
        "cuda:0": (256, 256)
    }


def test_one_line_that_fills_two_devices_is_two_failures(oomrec, preload, fake_gpu):
    run, bundles = shown(oomrec, preload, fake_gpu, TWO_DEVICES)
    assert [bundle["request"]["device"] for bundle in bundles] == ["cuda:0", "cuda:1"]
    assert "largest holder: 1000.0 MiB in 5 blocks" in run.stderr
    assert "largest holder: 900.0 MiB in 3 blocks" in run.stderr, "of this device alone"


def test_memory_freed_since_the_driver_query_is_not_attributed(oomrec, preload, fake_gpu):
    _, bundles = shown(oomrec, preload, fake_gpu, RESET)
    assert held(bundles[-1]) == {"cuda:0": (0, 0), "cuda:1": (900, 900)}
    assert {row["others_bytes"] for row in bundles[-1]["devices"]} == {0}


def test_a_null_host_pointer_is_not_blamed_on_a_device_failure(oomrec, preload, fake_gpu):
    run, _ = shown(oomrec, preload, fake_gpu, NOTHING_AT_ZERO)
    oomrec("recover")
    pages = [oomrec.json("show", bundle) for bundle in run.bundles()]
    ends = {page["verdict"]["code"]: page["outcome"] for page in pages}
    assert ends == {"device_out_of_memory": "recovered", "crashed": "signal 11"}


# As XLA's allocator: doubles its memory, then asks for less and less, and works on with what it gets.
GROWS_BY_LESS_AND_LESS = """
use(0)
assert allocate(512) == 0
asked = 1024
while allocate(asked) != 0:
    asked = asked * 9 // 10
refused = 0
while refused < 3:
    time.sleep(0.05)
    refused += allocate(32) != 0
sys.exit(3)
"""

FREES_AND_ASKS_AGAIN = """
def block(mib):
    address = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
    return address if result == 0 else None
use(0)
held = [block(100) for _ in range(9)]
for _ in range(4):
    assert block(200) is None
    cuda.cuMemFree_v2(held.pop())
    held.append(block(90))
sys.exit(3)
"""


def test_a_failure_after_the_program_has_gone_on_has_its_own_bundle(oomrec, preload, fake_gpu):
    program = "import time\n" + GROWS_BY_LESS_AND_LESS
    run, bundles = shown(oomrec, preload, fake_gpu, program, FAKE_GPU_BYTES="1G")
    assert run.exit_code == 3, str(run)
    outcomes = [(held(bundle)["cuda:0"][0], bundle["outcome"]) for bundle in bundles]
    assert outcomes[0] == (512, "recovered"), outcomes
    assert len(outcomes) == 2 and outcomes[1][0] > 950 and outcomes[1][1] == "exited 3", outcomes


def test_the_handling_of_a_devices_failure_is_one_episode(oomrec, preload, fake_gpu):
    run, bundles = shown(oomrec, preload, fake_gpu, FREES_AND_ASKS_AGAIN, FAKE_GPU_BYTES="1G")
    assert run.exit_code == 3, str(run)
    assert len(bundles) == 1, [bundle["request"] for bundle in bundles]
