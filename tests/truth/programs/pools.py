"""Programs with workers. pools.py WHAT."""

import concurrent.futures
import multiprocessing
import os
import signal
import sys
import threading
import time


def grow(_=0):
    held = []
    while True:
        held.append("x" * 200000 + str(len(held)))


def refused(_):
    return len(bytearray(1 << 46))


def fine(number):
    held = bytearray(b"x") * (20 << 20)
    return number + len(held)


def bug(_):
    held = bytearray(b"x") * (20 << 20)
    raise ValueError(len(held))


def handled(_):
    try:
        return len(bytearray(1 << 46))
    except MemoryError:
        return 0


def idle():
    held = bytearray(b"x") * (24 << 20)
    time.sleep(60)
    return held


def process(target):
    worker = multiprocessing.Process(target=target)
    worker.start()
    return worker


POOLS = {"pool_refused": refused, "pool_fine": fine, "pool_bug": bug, "pool_handled": handled}


def main(what):
    if what == "executor_grow":
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            list(pool.map(grow, [1]))
    if what in ("process_grow", "process_grow_handled"):
        worker = process(grow)
        worker.join()
        if worker.exitcode == -9 and what == "process_grow":
            sys.exit(3)
    if what in POOLS:
        with multiprocessing.Pool(2) as pool:
            pool.map(POOLS[what], range(4))
    if what == "ten_grow":
        for _ in range(10):
            worker = process(grow)
            worker.join()
        sys.exit(3 if worker.exitcode == -9 else 0)
    if what == "server":
        workers = [process(idle) for _ in range(3)]
        time.sleep(0.4)
        for worker in workers:
            os.kill(worker.pid, signal.SIGTERM)
        for worker in workers:
            worker.join()
    if what == "pool_left":
        pool = multiprocessing.Pool(3)
        pool.map(fine, range(6))
    if what == "process_shot":
        worker = process(idle)
        time.sleep(0.5)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        sys.exit(4)
    if what == "thread_refused":
        thread = threading.Thread(target=refused, args=(0,))
        thread.start()
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
