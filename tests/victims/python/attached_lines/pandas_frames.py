# Frames that are grouped, merged and kept.
import numpy as np
import pandas as pd

before = pd.DataFrame({"a": np.arange(200_000), "b": np.random.default_rng(0).random(200_000)})
attach()  # noqa: F821 (tests/line_shares.py)
frame = pd.DataFrame(
    {"key": np.arange(300_000) % 1000, "value": np.random.default_rng(1).random(300_000)}
)
frame["name"] = ["row " + str(i) for i in range(300_000)]
groups = dict(list(frame.groupby("key")))
merged = frame.merge(before, left_index=True, right_on="a")
