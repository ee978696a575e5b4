"""A loop that leaks on the GPU: it keeps every batch, until the device is full. Needs numba.

oomrec run -- python3 docs/examples/train_gpu.py
oomrec show
"""

import numpy as np
from numba import cuda

FEATURES = 4096
BATCH = 16384


def make_batch(size):
    """A batch on the device: 256 MiB."""
    return cuda.device_array((size, FEATURES), dtype=np.float32)


def main():
    history = []
    while True:
        history.append(make_batch(BATCH))  # the leak
        kept = sum(batch.nbytes for batch in history)
        print(f"step {len(history):2}  kept {kept >> 20} MiB", flush=True)


if __name__ == "__main__":
    main()
