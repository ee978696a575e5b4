"""Fills the device with the driver's functions as cuda-bindings provides them, resolved by
cuGetProcAddress_v2."""

import sys

from cuda.bindings import driver

MIB = 1 << 20
held = []


def checked(answer):
    error, *values = answer
    if error != driver.CUresult.CUDA_SUCCESS:
        raise MemoryError(error.name)
    return values[0] if values else None


def make_batch():
    held.append(checked(driver.cuMemAlloc(200 * MIB)))


checked(driver.cuInit(0))
checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(0))))
print(checked(driver.cuDriverGetVersion()), checked(driver.cuMemGetInfo()))
checked(driver.cuMemFree(checked(driver.cuMemAlloc(MIB))))
checked(driver.cuMemAllocHost(4 * MIB))
try:
    while len(held) < 100:
        make_batch()
except MemoryError as error:
    print(len(held), error)
    sys.exit(3)
