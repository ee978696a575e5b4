"""Failures of a GPU's driver, by ctypes: gpu_failures.py SCENARIO. Prints the driver's results."""

import ctypes
import sys

MIB = 1 << 20
BATCH = 200 * MIB


class Cuda:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        assert self.driver.cuInit(0) == 0
        assert self.driver.cuDeviceGet(ctypes.byref(device), 0) == 0
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert self.driver.cuCtxSetCurrent(context) == 0

    def allocate(self, block, size):
        return self.driver.cuMemAlloc_v2(block, ctypes.c_size_t(size))

    def free(self, block):
        assert self.driver.cuMemFree_v2(block) == 0


class Hip:
    def __init__(self):
        self.driver = ctypes.CDLL("libamdhip64.so")
        assert self.driver.hipSetDevice(1) == 0

    def allocate(self, block, size):
        return self.driver.hipMalloc(block, ctypes.c_size_t(size))


def make_batch(gpu, held, size=BATCH):
    block = ctypes.c_uint64()
    result = gpu.allocate(ctypes.byref(block), size)
    if result == 0:
        held.append(block)
    return result


def fill(gpu, held):
    result = 0
    while result == 0:
        result = make_batch(gpu, held)
    print("refused", result, len(held), flush=True)


def exhaust(gpu, held):
    fill(gpu, held)
    return 3


def recover(gpu, held):
    """The refused line asks again once there is room, and is served."""
    freed, result = False, 0
    while not freed:
        freed = result != 0
        if freed:
            gpu.free(held.pop())
        result = make_batch(gpu, held)
    print("served", result, flush=True)
    return 3


def use_null(gpu, held):
    fill(gpu, held)
    ctypes.memset(16, 0, 1)


def approach(gpu, held):
    """To 600 MiB, 1000, back to 200, and to 1000 again."""
    for count in (3, 5, 1, 5):
        while len(held) > count:
            gpu.free(held.pop())
        while len(held) < count:
            assert make_batch(gpu, held) == 0
    print("held", len(held), flush=True)


def leave_pools(gpu, held):
    """Pools keep 600 MiB that nobody uses; a block of that size is refused."""
    driver, pool, stream = gpu.driver, ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
    everything, threshold = ctypes.c_uint64(2**64 - 1), 4
    assert driver.cuMemPoolSetAttribute(pool, threshold, ctypes.byref(everything)) == 0
    blocks = [ctypes.c_uint64() for _ in range(3)]
    for block in blocks:
        size = ctypes.c_size_t(BATCH)
        assert driver.cuMemAllocAsync(ctypes.byref(block), size, stream) == 0
    for block in blocks:
        assert driver.cuMemFreeAsync(block, stream) == 0
    assert driver.cuStreamSynchronize(stream) == 0
    print("refused", make_batch(gpu, held, 3 * BATCH), flush=True)


SCENARIOS = {f.__name__: f for f in (exhaust, recover, use_null, approach, leave_pools)}
gpu = Hip() if "hip" in sys.argv[2:] else Cuda()
sys.exit(SCENARIOS[sys.argv[1]](gpu, []))
