"""A program's output on a terminal."""

import os
import pty
import subprocess


def printed_on_terminal(command: list, env: dict, cwd=None) -> bytes:
    """The output of a program whose stdout is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
    os.close(theirs)
    printed = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # EIO: the other end is closed
            break
        if not some:
            break
        printed += some
    os.close(ours)
    process.wait()
    return printed
