"""keeps.py CASE: runs into its memory limit with memory that a library keeps, or that only looks so.

For each kind there is one case with the mistake, and one that differs in little and is no such mistake.
"""

import functools
import sys
import time

KEPT = []


def grow_elsewhere():
    while True:
        KEPT.append(bytearray(2 << 20))


# --- A Dataset -----------------------------------------------------------------------------------


def images(keeps, **options):
    import torch

    class Images(torch.utils.data.Dataset):
        seen = []

        def __len__(self):
            return 1 << 30

        def __getitem__(self, index):
            image = torch.ones(3, 128, 128)
            if keeps:
                self.seen.append(image)
            return image

    torch.set_num_threads(1)
    return torch.utils.data.DataLoader(Images(), **options)


def dataset_keeps_items():
    for batch in images(keeps=True, batch_size=32):
        batch.mean()


def dataset_streams_items():
    """A batch of 130 MiB is in use, as a list of items, while something else grows."""
    for step, _ in enumerate(images(keeps=False, batch_size=700, collate_fn=list)):
        if step == 9:  # the first batches are not most of the curve, however few moments it has
            grow_elsewhere()


# --- A cache -------------------------------------------------------------------------------------


def features(number):
    return bytearray(1 << 20)


def cache(maxsize):
    cached = functools.lru_cache(maxsize)(features)
    number = 0
    while True:
        KEPT.append(cached(number) if maxsize == 0 else None)
        cached(number)
        number += 1


def cache_without_bound():
    cache(None)


def cache_of_many():
    cache(100_000)


def cache_that_keeps_nothing():
    cache(0)


# --- A table -------------------------------------------------------------------------------------


def table(rows=1_000_000):
    import numpy
    import pandas

    return pandas.DataFrame({"a": numpy.arange(rows), "b": numpy.random.rand(rows)})


def table_is_copied():
    steps = [table()]
    while True:
        steps.append(steps[-1].copy())


def tables_are_concatenated():
    import pandas

    whole = table()
    while True:
        whole = pandas.concat([whole, whole])


def tables_are_made():
    while True:
        KEPT.append(table())


# --- A graph of tensors --------------------------------------------------------------------------


def model(features, hidden):
    import torch

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(features, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, features)]
    return torch, torch.nn.Sequential(*layers)


def losses_keep_their_graphs():
    torch, net = model(100, 1000)
    while True:
        loss = net(torch.rand(1024, 100)).square().mean()
        KEPT.append(loss)
        time.sleep(0.03)


def outputs_are_kept_without_graphs():
    torch, net = model(100, 100)
    with torch.no_grad():
        while True:
            KEPT.append((batch := torch.rand(10_000, 100), net(batch)))  # on one line
            time.sleep(0.03)


globals()[sys.argv[1]]()
