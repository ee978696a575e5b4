"""Training on a GPU without a framework: train.py activations|optimizer|graph|batch|evaluate."""

import ctypes
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
OUT_OF_MEMORY = 2


class Device:
    def __init__(self, ordinal):
        cuda.cuInit(0)
        context = ctypes.c_void_p()
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal)
        cuda.cuCtxSetCurrent(context)

    def take(self, mib):
        pointer = ctypes.c_uint64()
        if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib * MIB)) == OUT_OF_MEMORY:
            raise SystemExit(3)
        return pointer

    def give(self, pointer):
        cuda.cuMemFree_v2(pointer)


def forward(device, kept):
    kept.append(device.take(20))


def step_optimizer(device, moments):
    moments += [device.take(8), device.take(8)]


def record(device, graph):
    graph.append((device.take(12), None))


def augment(device):
    """The bystander."""
    device.give(device.take(90))


def evaluate(device):
    return [device.take(40) for _ in range(100)]


def train(cause, device):
    kept, weights = [], [device.take(100)]
    for number in range(10**9):
        if cause == "activations":
            forward(device, kept)
        elif cause == "optimizer":
            step_optimizer(device, kept)
        elif cause == "graph":
            record(device, kept)
        elif cause == "batch" and number == 30:
            return device.take(8000)
        elif cause == "evaluate" and number == 50:
            evaluate(device)
        augment(device)
        time.sleep(0.05)
    return weights


train(sys.argv[1], Device(0))
