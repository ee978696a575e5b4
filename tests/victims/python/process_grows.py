"""A multiprocessing.Process that grows until it is killed; its parent exits with 1. Argument: METHOD."""

import multiprocessing
import sys


def grow():
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")  # where the kernel has to choose, it is this one
    held = []
    while True:
        held.append(bytearray(b"x" * (1 << 20)))  # grows here


if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=grow)
    worker.start()
    worker.join()
    sys.exit(1 if worker.exitcode else 0)
