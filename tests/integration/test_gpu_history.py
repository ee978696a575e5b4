"""A GPU's memory while it grows, on a fake driver: leaks, top, timeline, report."""

import re
import sys

import pytest
from report_page import Page
from schemas import check

MIB = 1 << 20
GROWS = """\
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
context = ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def batch():
    cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(4 << 20))
for step in range(100):
    batch()
    time.sleep(0.02)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def grown(oomrec, build_dir, tmp_path):
    """The pid of a process that holds 400 MiB on a device of 1 GiB, with a limit of 900 MiB."""
    (tmp_path / "grows.py").write_text(GROWS)
    environment = {"LD_LIBRARY_PATH": build_dir / "tests" / "fake_gpu", "FAKE_GPU_BYTES": "1G"}
    words = ["--limit-gpu", "900M", "--mode", "exact", "--", sys.executable, "grows.py"]
    process = oomrec.start("run", *words, env=environment, stdin=-1)
    return int(process.stdout.readline())


def test_the_leak_is_attributed_to_its_device(oomrec, grown):
    result = oomrec.json("leaks", grown)
    check("leaks", result)
    (leak,) = result["leaks"]
    assert (leak["device"], leak["space"], leak["live_bytes"]) == ("cuda:0", "cuda", 400 * MIB)
    assert "grows.py" in leak["suggestion"] and "device memory is kept" in leak["suggestion"]
    assert [row["device"] for row in result["devices"]] == ["cuda:0"]
    printed = oomrec("leaks", grown).stdout
    assert "--limit-gpu cuda:0 of 900.0 MiB is reached in about" in printed


def test_device_memory_is_drawn_beside_host_memory(oomrec, grown):
    now = oomrec.json("top", "--once", grown)["moment"]
    assert [row["counted_bytes"] for row in now["devices"]] == [400 * MIB]
    picture = oomrec("top", "--once", grown).stdout
    assert re.search(r"^ cuda:0 400\.0 MiB  all processes 400\.0 MiB of 1\.0 GiB$", picture, re.M)

    result = oomrec.json("timeline", grown)
    held = [row["devices"][0]["counted_bytes"] for row in result["moments"] if row["devices"]]
    assert held == sorted(held) and held[0] < 100 * MIB and held[-1] == 400 * MIB
    assert {"name": "--limit-gpu cuda:0", "bytes": 900 * MIB, "device": "cuda:0"} in result[
        "limits"
    ]

    page = Page(oomrec("report", "-o", "-", grown).stdout)
    assert page["t_device_0_counted"][-1] == 400 * MIB == page["t_device_0_used"][-1]
