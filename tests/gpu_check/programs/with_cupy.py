"""with_cupy.py: CuPy's arrays until one fails, then frees all."""

import cupy
from say import mark, say

STEP = 256 << 20


def fill():
    free = cupy.cuda.runtime.memGetInfo()[0]
    held = []
    try:
        while len(held) * STEP <= free:
            held.append(cupy.empty(STEP, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError:
        mark("full")
        say(held=len(held) * STEP)
        return
    raise SystemExit("never refused")


fill()
