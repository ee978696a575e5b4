"""A supervisor that kills its workers from one line and starts the next. supervises.py WHY

limit    when they have grown to 80 MiB, at which they go on growing
timeout  when they have held 60 MiB for a while
group    two that grow at once, both when one has got to 80 MiB
"""

import multiprocessing
import sys
import time

MIB = 1 << 20


def grow():
    held = []
    while True:
        held.append(bytearray(b"x") * MIB)
        time.sleep(0.01)


def hold(ready):
    held = bytearray(b"x") * (60 * MIB)
    ready.set()
    time.sleep(60 + len(held))


def resident(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def end(workers):
    for worker in workers:
        worker.kill()  # ends it here
    for worker in workers:
        worker.join()


def supervise(why):
    spawning = multiprocessing.get_context("spawn")
    for _ in range(1 if why == "group" else 2):
        ready = spawning.Event()
        target, words = (hold, (ready,)) if why == "timeout" else (grow, ())
        workers = [
            spawning.Process(target=target, args=words) for _ in range(2 if why == "group" else 1)
        ]
        for worker in workers:
            worker.start()
        if why == "timeout":
            ready.wait()
            time.sleep(1)
        else:
            while resident(workers[0].pid) < 80 * MIB:
                time.sleep(0.005)
        end(workers)


if __name__ == "__main__":
    supervise(sys.argv[1])
