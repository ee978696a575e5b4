"""scripts.py CASE SECONDS: one of the labelled programs (cases.py), in Python.

Memory that leaks, or that only looks so. Prints "done PID" and goes on holding what it holds until
stdin ends.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import gc
import importlib
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

START = time.monotonic()
SECONDS = float(sys.argv[2])
KEPT = []


def steps():
    """Yields the elapsed share of the time, 0…1, every 10 ms. It includes the imports."""
    begin = time.monotonic()
    seconds = max(SECONDS, begin - START)
    while (part := (time.monotonic() - begin) / seconds) < 1:
        yield part
        time.sleep(0.01)


# --- Leaks: the culprit is the allocating function ------------------------------------------------


def batches_in_a_list():
    for _ in steps():
        KEPT.append([bytes(5_000) for _ in range(20)])


def cache_without_bound():
    cache = {}
    KEPT.append(cache)
    for _ in steps():
        for _ in range(50):
            cache[len(cache)] = "x" * (2_000 + len(cache) % 7)


def small_objects():
    for _ in steps():
        KEPT.extend((float(i), str(i)) for i in range(400))


def handlers_never_removed():
    def subscribe():
        payload = bytearray(80_000)
        KEPT.append(lambda: payload)

    for _ in steps():
        subscribe()


class Node:
    def __init__(self):
        self.payload = bytearray(40_000)
        self.itself = self


def cycles_without_collector():
    gc.disable()
    for _ in steps():
        Node()
        Node()


def ctypes_without_free():
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    for _ in steps():
        for _ in range(20):
            malloc(5_000)


def results_of_threads():
    def work():
        KEPT.append(bytearray(100_000))

    for _ in steps():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


def arrays_in_a_list():
    import numpy

    for _ in steps():
        KEPT.append(numpy.ones(20_000))


def views_of_arrays():
    import numpy

    for _ in steps():
        KEPT.append(numpy.random.rand(20_000)[:10])


def network():
    import torch

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(100, 100), torch.nn.ReLU(), torch.nn.Linear(100, 1)]
    return torch, torch.nn.Sequential(*layers)


def losses_with_their_graphs():
    torch, model = network()
    for _ in steps():
        loss = model(torch.rand(128, 100)).square().mean()
        loss.backward(retain_graph=True)
        KEPT.append(loss)


def outputs_that_are_kept():
    torch, model = network()
    for _ in steps():
        KEPT.append(model(torch.rand(64, 100)))


# --- Not leaks ------------------------------------------------------------------------------------


def cache_with_a_bound():
    @functools.lru_cache(maxsize=300)
    def value(_):
        return bytearray(20_000)

    for _ in steps():
        for _ in range(10):
            value(random.randrange(100_000))


def cycles_with_collector():
    gc.set_threshold(300, 2, 2)
    for _ in steps():
        for _ in range(4):
            Node()


def epochs():
    seen = []
    for _ in steps():
        seen.append(bytearray(100_000))
        if len(seen) > SECONDS * 12:
            seen.clear()


def window():
    latest = collections.deque(maxlen=100)
    for _ in steps():
        latest.extend(bytearray(20_000) for _ in range(5))


def imports():
    """Modules are loaded one by one until the end."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for i, _ in enumerate(steps()):
            lines = [
                f"def function_{n}(argument):\n    return argument + {n}\n" for n in range(100)
            ]
            Path(folder, f"module_{i}.py").write_text("\n".join(lines))
            importlib.invalidate_caches()
            importlib.import_module(f"module_{i}")


def tables_at_first_use():
    tables = {}
    for part in steps():
        key = min(int(part * 5 * 60), 60)
        if key not in tables:
            tables[key] = [bytes(100_000), list(range(10_000))]


def objects_that_come_and_go():
    for _ in steps():
        made = [(float(i), str(i)) for i in range(2_000)]
        made.clear()


def arrays_of_a_step():
    import numpy

    weights = numpy.zeros(200_000)
    for _ in steps():
        weights += numpy.random.rand(200_000) * 0.01


def training():
    torch, model = network()
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in steps():
        loss = model(torch.rand(128, 100)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


globals()[sys.argv[1]]()
print("done", os.getpid(), flush=True)
sys.stdin.read()
