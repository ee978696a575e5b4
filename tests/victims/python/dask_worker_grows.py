"""A task that grows beyond its worker's limit in a LocalCluster of Dask. Argument: "grows" or "rests"."""

import sys
import time

import dask
from distributed import Client, LocalCluster

MIB = 1 << 20


def grow(mib):
    held = []
    while len(held) < mib:
        held.append(bytearray(b"x") * MIB)  # grows here
        time.sleep(0.005)
    return len(held)


if __name__ == "__main__":
    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    options = {"n_workers": 1, "threads_per_worker": 1, "memory_limit": "300MB"}
    cluster = LocalCluster(**options, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client:
        future = client.submit(grow, 64 if sys.argv[1] == "rests" else 1000)
        print("result", future.result(timeout=50))
