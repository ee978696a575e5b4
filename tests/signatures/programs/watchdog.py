"""Logs and mappings: watchdog.py buffer|mappings|replay."""

import logging
import logging.handlers
import mmap
import sys
import time

LOG = logging.getLogger("watchdog")


def note(state):
    LOG.info("state %s", state * 3000)


def buffer():
    LOG.setLevel(logging.INFO)
    LOG.addHandler(logging.handlers.MemoryHandler(10**9, logging.CRITICAL + 1))
    for number in range(10**9):
        note("%06d " % number * 6)
        probe()
        time.sleep(0.01)


class Region:
    def __init__(self, size):
        self.memory = mmap.mmap(-1, size)
        self.memory.write(b"x" * size)


def mappings():
    regions = []
    while True:
        regions.append(Region(200_000))
        probe()
        time.sleep(0.01)


def probe():
    """The bystander."""
    return sum(bytearray(900_000)[:10])


def replay():
    """Each round is a little larger or smaller; one is much larger."""
    sizes = [6, 9, 7, 12, 8, 10, 6, 11, 9, 8, 7, 10, 12, 9, 90]
    for size in sizes:
        rounds = record(size)
        time.sleep(0.05)
        del rounds


def record(size):
    events = []
    for _ in range(size * 5):
        events.append([bytearray(200_000)])
        time.sleep(0.001)
    return events


{"buffer": buffer, "mappings": mappings, "replay": replay}[sys.argv[1]]()
