"""Fills the device with numba's arrays until an allocation fails. numba uses dlsym."""

import sys

import numpy
from numba import cuda

MIB = 1 << 20
held = []


def hold(count):
    held.append(cuda.device_array(count, dtype="uint8"))


def make_batch():
    hold(200 * MIB)


print(cuda.get_current_device().name.decode(), cuda.current_context().get_memory_info().total)
copied = cuda.to_device(numpy.ones(MIB, dtype="uint8"))
print(copied.copy_to_host().sum())
pinned = cuda.pinned_array(4 * MIB, dtype="uint8")
try:
    while len(held) < 100:
        make_batch()
except Exception as error:
    print(len(held), type(error).__name__, error)
    sys.exit(3)
