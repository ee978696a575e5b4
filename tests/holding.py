"""A program that holds known blocks, running: tests/victims/python/holds.py."""

from __future__ import annotations

import subprocess


class Held:
    """The victim, running: line by line it does what it is asked."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.pid = process.pid
        self.read("ready")

    def read(self, expected: str) -> None:
        assert self.process.stdout.readline().decode().strip() == expected

    def ask(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def do(self, line: str) -> None:
        self.ask(line)
        self.read(f"did {line}")
