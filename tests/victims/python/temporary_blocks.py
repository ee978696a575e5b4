"""Allocates blocks that are freed at once, and blocks kept for a while. Requests a bundle."""

import ctypes

ROUNDS, BLOCK = 1000, 100_000


def at_once():
    for _ in range(ROUNDS):
        bytearray(BLOCK)


def kept_for_a_while():
    kept = []
    for _ in range(ROUNDS):
        kept.append(bytearray(BLOCK))
    kept.clear()


at_once()
kept_for_a_while()
ctypes.CDLL(None).oomrec_dump(b"end")
