"""A program that a Runner (conftest.py) has started: its output is read, and its input written, line by line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Started(subprocess.Popen):
    def line(self) -> str:
        """Its next line of output; "" once there is none."""
        return self.stdout.readline().decode().rstrip("\n")

    def once(self, expected: str | None = None) -> Started:
        """The program, once it has said this line; by default any."""
        said = self.line()
        if said != expected if expected is not None else not said:
            errors = ""
            if self.stderr is not None:
                os.set_blocking(self.stderr.fileno(), False)  # a child may keep it open
                errors = (self.stderr.read() or b"").decode(errors="replace")
            raise AssertionError(f"{said!r} instead of {expected!r}: {self.args}\n{errors}")
        return self

    def tell(self, text: str) -> Started:
        """Writes to its stdin."""
        self.stdin.write(text.encode())
        self.stdin.flush()
        return self

    def children(self) -> list[int]:
        return [int(pid) for pid in self._children().read_text().split()]

    def child(self) -> int:
        """The pid of its only child, as of the launcher's program."""
        (pid,) = self.children()
        return pid

    def _children(self) -> Path:
        return Path(f"/proc/{self.pid}/task/{self.pid}/children")
