"""A server that forks workers, restarts none, and lives until its input ends. prefork.py WORKERS WORK

Each worker holds 20 MiB and does its WORK:
grows   until the kernel kills it
killed  gets SIGKILL, from itself
refused ends by a MemoryError
stopped gets SIGTERM from the server, as one that is idle
leaves  ends well
"""

import os
import signal
import sys

HELD = []


def grow():
    while True:
        HELD.append(bytearray(b"x") * (1 << 20))  # grows here


def work(kind):
    for _ in range(20):
        HELD.append(bytearray(b"x") * (1 << 20))
    if kind == "grows":
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("500")
        grow()
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "refused":
        bytearray(1 << 46)
    if kind == "stopped":
        os.write(1, b"idle\n")
        signal.pause()


def serve(count, kind):
    for _ in range(count):
        worker = os.fork()
        if worker == 0:
            try:
                work(kind)
            except MemoryError:
                os._exit(1)
            os._exit(0)
        if kind == "stopped":
            os.kill(worker, signal.SIGTERM)
        print("lost", *os.waitpid(worker, 0), flush=True)
    sys.stdin.read()


serve(int(sys.argv[1]), sys.argv[2])
