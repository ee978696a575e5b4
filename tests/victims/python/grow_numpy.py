"""numpy arrays that grow by half each round, under an address space limit set by the script."""

import resource

import numpy as np

LIMIT = 1 << 29


def grow(count):
    """One more array of `count` doubles."""
    return np.ones(count)


def main():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    count = 1 << 17
    kept = None
    while True:
        try:
            kept = grow(count)
        except MemoryError:
            print(f"refused {count * 8}", flush=True)
            raise
        print(f"have {kept.nbytes}", flush=True)
        count = count * 3 // 2 + 1


main()
