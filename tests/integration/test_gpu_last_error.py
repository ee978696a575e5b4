"""HIP keeps a thread's last error for hipGetLastError(). The recorder's own queries must not change it."""

from __future__ import annotations

PROGRAM = """
import ctypes, json
hip = ctypes.CDLL("libamdhip64.so")
block = ctypes.c_void_p()
hip.hipGetLastError()
def last_after(bytes):
    return [hip.hipMalloc(ctypes.byref(block), ctypes.c_size_t(bytes)), hip.hipPeekAtLastError(),
            hip.hipGetLastError(), hip.hipGetLastError()]
print(json.dumps([last_after(1 << 20), last_after(1 << 50), hip.hipSetDevice(99), last_after(1 << 20)]))
"""


def last_errors(runner, gpu, **rules):
    run = runner("python3", "-c", PROGRAM, env={**gpu, **rules}, exits=0)
    return run.json()


def test_the_programs_last_error_is_kept(preload, plain, fake_gpu):
    expected = last_errors(plain, fake_gpu)
    assert expected[1] == [2, 2, 2, 0]
    assert last_errors(preload, fake_gpu) == expected


def test_a_failed_query_leaves_no_error(preload, plain, fake_gpu):
    rules = {"FAKE_GPU_FAIL": "hipMemGetInfo=801;hipDeviceGetUuid=801;hipDeviceGetName=801"}
    assert last_errors(preload, fake_gpu, **rules) == last_errors(plain, fake_gpu, **rules)


PENDING = """
import ctypes
hip = ctypes.CDLL("libamdhip64.so")
block = ctypes.c_void_p()
hip.hipSetDevice(1)
assert hip.hipSetDevice(99) != 0  # an error that nobody reads
assert hip.hipMalloc(ctypes.byref(block), ctypes.c_size_t(64 << 20)) == 0
assert hip.hipMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 50)) == 2
"""


def test_the_device_is_known_despite_the_programs_error(oomrec, preload, fake_gpu):
    run = preload("python3", "-c", PENDING, env=fake_gpu, exits=0)
    shown = oomrec.json("show", run.only_bundle())
    assert [(device["device"], device["held_bytes"]) for device in shown["devices"]] == [
        ("hip:1", 64 << 20)
    ]
