"""A batch system with threads: jobs.py outbox|results|locals."""

import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

OUTBOX = queue.Queue()
STORE = threading.local()
PENDING = []


def produce():
    for number in range(10**9):
        OUTBOX.put(package(number))
        time.sleep(0.015)


def package(number):
    return (number, b"%09d" % number * 30_000)


def square(number):
    return [number * n for n in range(9000)]


def submit(pool):
    for number in range(10**9):
        PENDING.append(pool.submit(square, number))
        time.sleep(0.012)


def remember():
    STORE.seen = {}
    while True:
        note(len(STORE.seen))
        time.sleep(0.012)


def note(number):
    STORE.seen[number] = str(number) * 50_000


def index():
    """The bystander."""
    while True:
        words = ["word"] * 250_000
        time.sleep(0.03)
        del words
        time.sleep(0.02)


def main(cause):
    threading.Thread(target=index, daemon=True).start()
    if cause == "results":
        with ThreadPoolExecutor(3) as pool:
            submit(pool)
    target = {"outbox": produce, "locals": remember}[cause]
    threads = [threading.Thread(target=target, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1)


main(sys.argv[1])
