"""A running program that holds known blocks: tests/victims/python/holds.py."""

from __future__ import annotations

import subprocess


class Held:
    """The running victim, which executes one request per line of its stdin."""

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
