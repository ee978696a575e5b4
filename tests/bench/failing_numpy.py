"""Keeps batches like docs/examples/train_numpy.py until one fails. Prints how long that call took, in ms."""

import time

import numpy

BATCH = (1024, 4096)

history = []
while True:
    began = time.perf_counter()
    try:
        history.append(numpy.ones(BATCH))
    except MemoryError:
        print(f"figure: {(time.perf_counter() - began) * 1000:.3f}")
        break
