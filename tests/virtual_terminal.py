"""A pseudo-terminal with the screen that its program draws, as a user sees it.

pyte interprets the output; `raw` keeps the bytes. Tests wait for a condition of the screen, never
for a time.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

WITHIN_S = 60


def _as_in_a_shell() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it


class VirtualTerminal:
    """Runs a program in a new session with this controlling terminal."""

    def __init__(self, command, env, cwd, columns=80, rows=24, term="xterm-256color", **options):
        pyte = pytest.importorskip("pyte")
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._ours, theirs = os.openpty()
        self._set_size(columns, rows)
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=theirs,
            env={**env, "TERM": term},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_as_in_a_shell,
            **{"stdout": theirs, "stderr": theirs, **options},
        )
        os.close(theirs)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def _read(self, timeout_s: float) -> bool:
        """Reads available output. False at the end: the terminal is closed on the other side."""
        if not select.select([self._ours], [], [], timeout_s)[0]:
            return True
        try:
            some = os.read(self._ours, 65536)
        except OSError:  # EIO
            return False
        self.raw += some
        self._stream.feed(some)
        return bool(some)

    def text(self) -> str:
        """The screen without trailing blanks."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_until(self, condition, within_s: float = WITHIN_S) -> str:
        """Waits until the condition holds for the screen's text, and returns the text."""
        until = time.monotonic() + within_s
        while not condition(self.text()):
            if not self._read(0.2) and not condition(self.text()):
                pytest.fail(f"the program has ended, and left:\n{self.text()}")
            if time.monotonic() > until:
                pytest.fail(f"not on the screen after {within_s} s:\n{self.text()}")
        return self.text()

    def wait_for(self, *words: str) -> str:
        """Waits until all these words are on the screen, and returns its text."""
        return self.wait_until(lambda text: all(word in text for word in words))

    def finish(self, within_s: float = WITHIN_S) -> int:
        """Reads all output until the program ends, and returns its exit code."""
        until = time.monotonic() + within_s
        while self._read(0.2):
            if self.process.poll() is not None and not select.select([self._ours], [], [], 0)[0]:
                break
            if time.monotonic() > until:
                pytest.fail(f"still running after {within_s} s:\n{self.text()}")
        code = self.process.wait(within_s)
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)
