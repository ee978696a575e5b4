"""with_numba.py: numba's arrays until one fails, then frees all."""

import numpy
from numba import cuda
from say import mark, say, skip

STEP = 256 << 20


def has_gpu():
    try:
        return len(cuda.gpus) > 0  # is_available() also wants the CUDA toolkit's compiler
    except cuda.CudaSupportError:
        return False


def fill():
    if not has_gpu():
        skip("this numba sees no GPU")
    free = cuda.current_context().get_memory_info()[0]
    step = min(STEP, free // 16)
    held = []
    try:
        while len(held) * step <= free:
            held.append(cuda.device_array(step, dtype=numpy.uint8))
    except Exception as error:  # its class depends on numba's binding
        if "OUT_OF_MEMORY" not in str(error):
            raise
        mark("full")
        say(held=len(held) * step)
        return
    raise SystemExit("never refused")


fill()
