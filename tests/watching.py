"""A running `oomrec watch`, and waiting for what it does."""

import contextlib
import os
import platform
import re
import signal
import time
from pathlib import Path

KERNEL = tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups()))
# Root in the first pid namespace learns by the process connector how a process ended,
IN_FIRST_PID_NAMESPACE = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
CONNECTED = os.geteuid() == 0 and IN_FIRST_PID_NAMESPACE
# others by PIDFD_GET_INFO.
SEES_FOREIGN_EXITS = KERNEL >= (6, 15) or CONNECTED


def wait_for(found, within_s=120.0):
    """Polls `found` until its result is true, and returns it."""
    until = time.monotonic() + within_s
    while not (result := found()):
        assert time.monotonic() < until, f"nothing within {within_s} s"
        time.sleep(0.01)
    return result


def eventually(check):
    """Calls `check` until its assertions hold, as a decorator: what others publish comes a little later."""
    until = time.monotonic() + 120
    while True:
        try:
            return check()
        except (AssertionError, LookupError, ValueError):
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


def cpu_s(pid: int) -> float:
    """The process' own clock, as clock_getcpuclockid() names it: /proc/PID/stat has hundredths."""
    return time.clock_gettime(~pid << 3 | 2)


def part_of_core(pid: int, seconds: float) -> float:
    """The CPU time that the process uses meanwhile, as a part of `seconds`."""
    began, before = time.monotonic(), cpu_s(pid)
    time.sleep(seconds)
    return (cpu_s(pid) - before) / (time.monotonic() - began)


def has_ended(pid: int) -> bool:
    """Whether it is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Watch:
    """A running `oomrec watch` that has started watching."""

    def __init__(self, oomrec, *words, preexec_fn=None, **env):
        self._oomrec = oomrec
        self.process = oomrec.start("watch", *words, env=env, preexec_fn=preexec_fn)
        wait_for(self.is_blocking_signals)

    def is_blocking_signals(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"SigBlk:\t(\w+)", status)[1], 16) & (1 << (signal.SIGTERM - 1))

    def sees(self, pid: int) -> bool:
        """Whether it has a pidfd of this process."""
        for entry in Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if re.search(rf"^Pid:\t{pid}$", entry.read_text(), re.MULTILINE):
                    return True
        return False

    def is_sleeping(self) -> bool:
        """Whether it uses hardly any CPU time for a while, because it has found every process."""
        return part_of_core(self.process.pid, 0.3) < 0.03

    def says(self, words: str) -> None:
        """Reads stderr until these words appear."""
        os.set_blocking(self.process.stderr.fileno(), False)
        said = bytearray()

        def has_said():
            said.extend(self.process.stderr.read() or b"")
            return words.encode() in said

        wait_for(has_said)

    def stop(self):
        self.process.terminate()
        return self._oomrec.finish(self.process, timeout=300)
