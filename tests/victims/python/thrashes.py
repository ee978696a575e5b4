"""thrashes.py DIRECTORY MIB: reads a mapped file of MIB in random order. Under a smaller memory
cgroup its pages keep coming back from the disk, where DIRECTORY must be. Holds 24 MiB more, and
prints "ready" when it has begun."""

import mmap
import os
import random
import sys
import tempfile

directory, size = sys.argv[1], int(sys.argv[2]) << 20
with tempfile.TemporaryFile(dir=directory) as file:
    for _ in range(size >> 20):
        file.write(b"x" * (1 << 20))
    file.flush()
    os.fsync(file.fileno())
    pages = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
pages.madvise(mmap.MADV_RANDOM)
held = bytearray(24 << 20)
read = 0
while True:
    pages[random.randrange(size)]
    read += 1
    if read == 20_000:
        print("ready", flush=True)
