"""steps.h in Python: executes the steps in its arguments with bytearrays (first argument `python`) or
numpy arrays (`numpy`)."""

import mmap
import os
import resource
import signal
import sys
import time

MIB = 1 << 20

if sys.argv[1] == "numpy":
    import numpy

    def allocate(size):
        return numpy.ones(size, dtype=numpy.uint8)

else:

    def allocate(size):
        return bytearray(size)


def hold(mib):
    for _ in range(mib):
        held.append(allocate(MIB))


def lend(mib):
    """Holds one block until `repay`."""
    lent.append(allocate(mib * MIB))


def repay(_):
    lent.clear()


def promise(mib):
    """A mapping that is never touched."""
    lent.append(mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def ask(size):
    try:
        return allocate(size)
    except MemoryError:
        return None


def demand(size):
    return allocate(size)


def wait(_):
    """Until a line comes; without one, for a signal."""
    print("ready", os.getpid(), flush=True)
    while not sys.stdin.readline():
        signal.pause()


def grow(_):
    while True:
        hold(1)


def crash(address):
    import ctypes

    ctypes.memset(address, 1, 1)


def abort(_):
    os.abort()


def dig(_):
    """Each round goes through the interpreter's own stack."""
    sys.setrecursionlimit(1 << 30)

    def deeper(depth):
        return sorted([depth + 1], key=deeper)

    deeper(0)


def no_tasks(_):
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.geteuid() == 0:
        os.setuid(65534)


def thread(_):
    import threading

    try:
        threading.Thread(target=print).start()
    except RuntimeError:
        return
    os._exit(99)


def fork(_):
    try:
        os.fork()
    except BlockingIOError:
        return
    os._exit(99)


def pause_ms(milliseconds):
    time.sleep(milliseconds / 1000)


def end(status):
    """With all that it holds."""
    os._exit(status)


held, lent = [], []
for word in sys.argv[2:]:
    step, _, number = word.partition(":")
    globals()[step](int(number or 0))
