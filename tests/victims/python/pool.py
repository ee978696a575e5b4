"""multiprocessing workers that hold 24 MiB each, and a parent that requests too much.

pool.py fork|spawn|forkserver: prints the workers' pids.
"""

import multiprocessing
import os
import sys


def work(ready, go):
    held = bytearray(24 << 20)
    ready.put(os.getpid())
    go.wait()
    return held


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    ready, go = context.SimpleQueue(), context.Event()
    workers = [context.Process(target=work, args=(ready, go)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in workers:
        print(ready.get())
    try:
        bytearray(1 << 46)
    except MemoryError:
        go.set()
    for worker in workers:
        worker.join()
