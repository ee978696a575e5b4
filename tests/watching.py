"""A running `oomrec watch`, and waiting for what it does."""

import contextlib
import os
import platform
import re
import signal
import time
from pathlib import Path

KERNEL = tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups()))
# Root in the first pid namespace is told by the process connector how a process ended,
CONNECTED = os.geteuid() == 0 and os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
# and everybody by PIDFD_GET_INFO.
TELLS_STRANGERS = KERNEL >= (6, 15) or CONNECTED


def wait_for(found, within_s=30.0):
    """What `found` returns once that is something."""
    until = time.monotonic() + within_s
    while not (result := found()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
    return result


class Watch:
    """A running `oomrec watch`, which has begun to watch."""

    def __init__(self, oomrec, *words, **env):
        self._oomrec = oomrec
        self.process = oomrec.start("watch", *words, env=env)
        wait_for(self.is_blocking_signals)

    def is_blocking_signals(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"SigBlk:\t(\w+)", status)[1], 16) & (1 << (signal.SIGTERM - 1))

    def sees(self, pid: int) -> bool:
        """It waits for the end of this process."""
        for entry in Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if re.search(rf"^Pid:\t{pid}$", entry.read_text(), re.MULTILINE):
                    return True
        return False

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_sleeping(self) -> bool:
        """It has used no CPU time for a while: it has found all that there was."""
        before = self.cpu_s()
        time.sleep(0.3)
        return self.cpu_s() == before

    def says(self, words: str) -> None:
        """On stderr, which is taken as far as that."""
        os.set_blocking(self.process.stderr.fileno(), False)
        said = bytearray()

        def has_said():
            said.extend(self.process.stderr.read() or b"")
            return words.encode() in said

        wait_for(has_said)

    def stop(self):
        self.process.terminate()
        return self._oomrec.finish(self.process, timeout=10)
