"""A LocalCluster of Dask with oomrec's plugin, of whose workers the arguments say how they end: "grows" 3, "crashes", …

Prints the verdicts as JSON.
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


def main(way, count=1):
    plugin.configure()
    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    options = {"threads_per_worker": 1, "memory_limit": "400MB", "dashboard_address": None}
    workers = 2 if way == "retired" else 1  # its data goes to another one
    with LocalCluster(workers, processes=True, **options) as cluster, Client(cluster) as client:
        client.register_plugin(plugin.OomrecNanny())
        worker, pid = next(iter(client.run(os.getpid).items()))
        if way == "grows":
            for _ in range(count):
                try:
                    client.submit(grow, pure=False).result(timeout=60)
                except KilledWorker as error:
                    print(error.last_worker.address, file=sys.stderr)
            wait_until(lambda: len(plugin.verdicts(client)) == count)
        else:
            number, seconds = (
                signal.SIGSEGV if way == "crashes" else 0,
                0 if way == "retired" else 60,
            )
            task = client.submit(hold, way, number, seconds, workers=[worker])
            wait_until(lambda: os.path.exists(way))
            if way == "cancelled":
                client.cancel(task, force=True)
            elif way == "restarted":
                client.restart()
            elif way == "retired":  # it waits for tasks
                task.result()
                client.retire_workers([worker], close_workers=True)
            if way != "cancelled":
                wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
        print(json.dumps(plugin.verdicts(client)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
