"""Several processes: farm.py worker|collector|spawned."""

import multiprocessing
import os
import subprocess
import sys
import time

SEEN = set()


def crunch(number):
    SEEN.add(("%08d" % number) * 30_000)
    time.sleep(0.01)
    return number


def worker(inbox, outbox):
    while True:
        outbox.put(crunch(inbox.get()))


def gather(outbox, number):
    chunk = outbox.get()
    return {number: [chunk] + [bytes(60_000) for _ in range(4)]}


def collect(inbox, outbox):
    collected = []
    for number in range(10**9):
        inbox.put(number)
        collected.append(gather(outbox, number))
        time.sleep(0.01)


def echo(inbox, outbox):
    while True:
        outbox.put(inbox.get() * 2)


def drive(target):
    context = multiprocessing.get_context("fork")
    inbox, outbox = context.Queue(), context.Queue()
    child = context.Process(target=target, args=(inbox, outbox), daemon=True)
    child.start()
    if target is echo:
        collect(inbox, outbox)
    for number in range(10**9):
        inbox.put(number)
        while child.is_alive():
            try:
                outbox.get(timeout=0.5)
                break
            except Exception:
                pass
        if not child.is_alive():
            os._exit(1)


def convert():
    pages = []
    while True:
        pages.append(bytearray(170_000))
        time.sleep(0.01)


def main(cause):
    if cause == "convert":
        convert()
    if cause == "spawned":
        sys.exit(subprocess.call([sys.executable, "-S", __file__, "convert"]))
    drive(worker if cause == "worker" else echo)


if __name__ == "__main__":
    main(sys.argv[1])
