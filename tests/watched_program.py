"""A program to observe from outside: it allocates as the lines of its stdin request."""

from __future__ import annotations

import subprocess

# "N": allocates and touches N MiB more; "free": frees everything; "refuse": requests too much and
# continues; "become": requests too much, then executes cat.
SCRIPT = """\
import os
import sys

kept = []

def hoard(mib):
    kept.append(bytearray(b"x") * (mib << 20))

print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "free":
        kept.clear()
    elif word in ("refuse", "become"):
        try:
            bytearray(1 << 46)
        except MemoryError:
            pass
        if word == "become":
            os.execvp("cat", ["cat"])
    else:
        hoard(int(word))
    print("did", flush=True)
"""


class Program:
    def __init__(self, start, **options):
        self.process = start("python3", "-c", SCRIPT, stdin=subprocess.PIPE, **options)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def send(self, word) -> None:
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def do(self, *words) -> None:
        for word in words:
            self.send(word)
            assert self.process.stdout.readline() == b"did\n"

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=300)
