"""Fills the device with stream-ordered blocks of its default pool, by cuda.core."""

import sys

from cuda.core import Device

MIB = 1 << 20
held = []
device = Device()
device.set_current()
stream = device.create_stream()


def make_batch():
    held.append(device.allocate(200 * MIB, stream=stream))


device.allocate(MIB, stream=stream).close(stream)
try:
    while len(held) < 100:
        make_batch()
except Exception as error:
    print(len(held), type(error).__name__, str(error).splitlines()[0])
    sys.exit(3)
