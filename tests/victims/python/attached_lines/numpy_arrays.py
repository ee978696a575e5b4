# Arrays that are made, copied and resized.
import numpy as np

before = [np.ones(500_000) for _ in range(10)]
attach()  # noqa: F821 (tests/line_shares.py)
arrays = [np.random.default_rng(i).random((400, 400)) for i in range(20)]
products = [array @ array.T for array in arrays]
small = [np.arange(i % 50) for i in range(20_000)]
stacked = np.concatenate(arrays)
before.clear()
