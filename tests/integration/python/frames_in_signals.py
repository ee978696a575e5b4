"""Walks in a timer's signal handler while functions, generators and callbacks come and go.
python frames_in_signals.py PROBE_LIBRARY SESSION_DIRECTORY"""

import ctypes
import sys
import time

probe = ctypes.CDLL(sys.argv[1])
if probe.probe_start(sys.argv[2].encode()) != 0:
    sys.exit("no probe")


def generator(n):
    for i in range(n):
        yield i + sum(x for x in range(3))


class Thing:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n

    def __del__(self):
        self.n = [self.n]


def work(depth):
    if depth:
        return work(depth - 1)
    things = sorted(Thing(i % 7) for i in generator(10))
    return [thing.n for thing in things]


end = time.monotonic() + 1.5
probe.probe_signals(100)
while time.monotonic() < end:
    work(5)
probe.probe_signals(0)
print(probe.probe_walks(), probe.probe_foreign())
