"""Objects that grow by half each round under an address space limit of its own: "bytes" or NumPy's "doubles"."""

import resource
import sys

LIMIT = 1 << 29


def grow_bytes(size):
    """The request that is refused is a bytes object of that size."""
    return b"x" * size


def grow_doubles(size):
    """It asks for the bare data."""
    import numpy as np

    return np.ones(size // 8)


def main(grow):
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    size = 1 << 20
    kept = None
    while True:
        try:
            kept = grow(size)
        except MemoryError:
            print(f"refused {size}", flush=True)
            raise
        print(f"have {memoryview(kept).nbytes}", flush=True)
        size = size * 3 // 16 * 8 + 8


main(globals()["grow_" + sys.argv[1]])
