"""many_functions.py N: makes N modules of a function each, keeps 40 MiB from one line and 20 MiB
from another, and is killed."""

import os
import sys

MODULE = "def f(g):\n    return [bytearray(40), g and g(None)]\n"


def start(modules):
    names = {}
    kept = []
    for number in range(modules):
        exec(compile(MODULE, f"module_{number}.py", "exec"), names)
        kept.append(names["f"](names["f"]))
    return kept


def keep_small():
    return [bytearray(10_000) for _ in range(4000)]


def keep_large():
    return [bytearray(100_000) for _ in range(200)]


kept = [start(int(sys.argv[1])), keep_small(), keep_large()]
os.kill(os.getpid(), 9)
