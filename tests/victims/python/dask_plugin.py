"""A LocalCluster of Dask with oomrec's plugin. Prints the verdicts as JSON.

Arguments: "grows" and how many workers the nanny ends for memory, or "others": other ends of workers.
"""

import json
import os
import signal
import sys
import time

import dask
import oomrec.schedulers.dask as plugin
from distributed import Client, KilledWorker, LocalCluster

MIB = 1 << 20


def grow():
    held = []
    while len(held) < 1000:
        held.append(bytearray(b"x") * MIB)  # grows here
        time.sleep(0.005)
    time.sleep(60)


def hold(path, number, seconds):
    held = bytearray(b"x") * (40 * MIB)
    open(path, "w").close()
    if number:
        os.kill(os.getpid(), number)
    time.sleep(seconds)
    return len(held)


def wait_until(happens):
    until = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.05)


def end_by_the_nanny(client, count):
    for _ in range(count):
        try:
            client.submit(grow, pure=False).result(timeout=60)
        except KilledWorker as error:
            print(error.last_worker.address, file=sys.stderr)
    wait_until(lambda: len(plugin.verdicts(client)) == count)


def end_otherwise(client):
    for way, workers in (("crashed", 2), ("restarted", 2), ("retired", 2), ("cancelled", 1)):
        client.wait_for_workers(workers, timeout=60)
        worker, pid = next(iter(client.run(os.getpid).items()))
        number, seconds = signal.SIGSEGV if way == "crashed" else 0, 0 if way == "retired" else 60
        task = client.submit(hold, way, number, seconds, workers=[worker])
        wait_until(lambda: os.path.exists(way))  # noqa: B023
        if way == "retired":  # once its tasks have ended, and another worker has their results
            task.result()
            client.retire_workers([worker], close_workers=True)
        elif way == "restarted":
            client.restart()
        elif way == "cancelled":
            client.cancel(task, force=True)
            continue
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"))  # noqa: B023


def main(way, count):
    plugin.configure()
    # A LocalCluster closes a nanny that restarts its worker when this has passed since an earlier worker's death.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    workers = 1 if way == "grows" else 2
    options = {"threads_per_worker": 1, "memory_limit": "400MB", "dashboard_address": None}
    with LocalCluster(n_workers=workers, processes=True, **options) as cluster, Client(
        cluster
    ) as client:
        client.register_plugin(plugin.OomrecNanny())
        if way == "grows":
            end_by_the_nanny(client, count)
        else:
            end_otherwise(client)
        print(json.dumps(plugin.verdicts(client)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
