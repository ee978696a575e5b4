"""A growing list and one that is repeatedly emptied, with marks at each step, until it is killed.

Each mark has the number of 1 MiB blocks in both lists. Then a forked child does another step,
twice, and is killed like its parent.
"""

import ctypes
import os
import signal
import sys
import time

STEPS, STEP_S, SAW = 60, 0.03, 10
program = ctypes.CDLL(None)
kept, thrown_away, of_child = [], [], []


def grow():
    kept.append(bytearray(1 << 20))


def saw():
    if len(thrown_away) == SAW:
        thrown_away.clear()
    thrown_away.append(bytearray(1 << 20))


def grow_in_child():
    of_child.append(bytearray(3 << 20))


for _ in range(STEPS):
    program.oomrec_mark(f"{len(kept)} {len(thrown_away)}".encode())
    grow()
    saw()
    time.sleep(STEP_S)
program.oomrec_dump(b"end")
child = os.fork()
if child == 0:
    for _ in range(2):
        grow_in_child()
        program.oomrec_mark(b"of the child")
        time.sleep(0.15)
    grow_in_child()
else:
    os.waitpid(child, 0)
    print(child)
    sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
