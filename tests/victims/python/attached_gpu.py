"""Allocates device memory as it is told, line by line on stdin, and answers what it holds.

argv: the client. torch: the stand-in of tests/fake_torch, whose library keeps the driver's functions
in variables; bindings: NVIDIA's cuda-bindings, likewise. `use` is the client's first use.
"""

import _ctypes
import ctypes
import json
import sys

MIB = 1 << 20


class Torch:
    def __init__(self):
        self.library = ctypes.CDLL("libc10_cuda.so")
        self.library.torch_allocate.restype = ctypes.c_uint64
        self.library.torch_allocate.argtypes = [ctypes.c_size_t]
        self.library.torch_free.argtypes = [ctypes.c_uint64]
        self.library.torch_start(2)

    def allocate(self, size):
        return self.library.torch_allocate(size)

    def free(self, block):
        self.library.torch_free(block)

    def close(self):
        _ctypes.dlclose(self.library._handle)


class Bindings:
    def __init__(self):
        from cuda.bindings import driver

        self.driver = driver
        self.checked(driver.cuInit(0))
        context = self.checked(driver.cuDevicePrimaryCtxRetain(0))
        self.checked(driver.cuCtxSetCurrent(context))

    def checked(self, answer):
        error, *values = answer
        if error != self.driver.CUresult.CUDA_SUCCESS:
            raise MemoryError(error.name)
        return values[0] if values else None

    def allocate(self, size):
        return self.checked(self.driver.cuMemAlloc(size))

    def free(self, block):
        self.checked(self.driver.cuMemFree(block))


CLIENTS = {"torch": Torch, "bindings": Bindings}


def make_batch(client, mib):
    return client.allocate(mib * MIB)


def main():
    client, held = None, []
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "use":
            client = CLIENTS[sys.argv[1]]()
        elif word == "allocate":
            held.append(make_batch(client, int(numbers[0])))
        elif word == "close":
            client.close()
            client, held = None, []
        elif word == "free":
            client.free(held.pop(int(numbers[0])))
        print(json.dumps({"held": len(held), "got": bool(held and held[-1])}), flush=True)


main()
