"""runtime.py LIBRARY: fills the device through the CUDA runtime, and frees everything."""

import ctypes
import sys
from ctypes import byref, c_size_t, c_void_p

from say import say

OUT_OF_MEMORY = 2
STEP = 256 << 20


def fill(runtime, held, bound):
    while len(held) * STEP <= bound:
        block = c_void_p()
        result = runtime.cudaMalloc(byref(block), c_size_t(STEP))
        if result != 0:
            return result
        held.append(block)
    return 0


def main():
    runtime = ctypes.CDLL(sys.argv[1])
    free, total, held = c_size_t(), c_size_t(), []
    result = runtime.cudaMemGetInfo(byref(free), byref(total))
    if result != 0:
        raise SystemExit(f"cudaMemGetInfo returned {result}")
    result = fill(runtime, held, free.value)
    for block in held:
        runtime.cudaFree(block)
    say(held=len(held) * STEP, result=result)
    return 0 if result == OUT_OF_MEMORY else 1


sys.exit(main())
