"""Holds 48 MiB in blocks of 1 MiB, then requests 100 MiB with the given kind of object."""

import sys

KINDS = {
    "bytes": lambda: bytes(100 << 20),
    "bytearray": lambda: bytearray(100 << 20),
    "list": lambda: [None] * (100 << 17),
}


def hold():
    return [
        bytearray(1 << 20)
        for _ in range(48)
    ]  # fmt: skip


class Asker:
    def ask(self, kind):
        return KINDS[kind]()


held = hold()
print("holding", len(held), flush=True)
asked = Asker().ask(sys.argv[1])
print("given", len(asked))
