"""Python bytes that grow by half each round, under an address space limit set by the script."""

import resource

LIMIT = 1 << 29


def grow(size):
    """The request that is refused is a bytes object of that size."""
    return b"x" * size


def main():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    size = 1 << 20
    kept = None
    while True:
        try:
            kept = grow(size)
        except MemoryError:
            print(f"refused {size}", flush=True)
            raise
        print(f"have {len(kept)}", flush=True)
        size = size * 3 // 2 + 1


main()
