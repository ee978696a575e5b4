"""A parent that ends its worker. watches_worker.py HOW [--memory-limit=SIZE] [REST_S].

HOW is the signal that the parent sends once the worker has grown to 96 MiB resident, or "waits": the signal
comes from somebody else. REST_S: how long the parent goes on.
"""

import multiprocessing
import sys
import time

MIB = 1 << 20


def grow():
    held = []
    while len(held) < 92:
        held.append(bytearray(b"x") * MIB)  # grows here
        time.sleep(0.002)
    time.sleep(60)


def resident(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def end(worker, how):
    while resident(worker.pid) < 96 * MIB:
        time.sleep(0.01)
    time.sleep(0.3)  # it ends its growth
    worker.terminate() if how == "SIGTERM" else worker.kill()  # ends it here


def main(how, rest_s="0"):
    worker = multiprocessing.get_context("spawn").Process(target=grow)
    worker.start()
    if how == "waits":
        print(worker.pid, flush=True)
    else:
        end(worker, how)
    worker.join()
    assert worker.exitcode < 0, worker.exitcode
    time.sleep(float(rest_s))


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if not word.startswith("--")])
