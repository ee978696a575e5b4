"""phases.c in Python."""

import mmap
import sys

STARTS, WORKS, IS_REFUSED, ENDS = range(4)


def work():
    for _ in range(2000):
        bytearray(100003)


held = bytearray(17 << 20)
with open(sys.argv[1], "r+b") as file:
    page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
page[0] = WORKS
work()
page[0] = IS_REFUSED
try:
    bytearray((1 << 46) + 241)
except MemoryError:
    page[0] = WORKS
work()
page[0] = ENDS
