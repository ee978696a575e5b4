"""A private memory cgroup, v1 or v2. The fixture `cgroup` creates and removes it."""

import contextlib
import os
import signal
import time
from pathlib import Path


class MemoryCgroup:
    def __init__(self, name: str, limit: str):
        v1 = Path("/sys/fs/cgroup/memory")
        is_v1 = v1.is_dir()
        self.path = (v1 if is_v1 else v1.parent) / name
        self.path.mkdir()
        self._limit = self.path / ("memory.limit_in_bytes" if is_v1 else "memory.max")
        self._limit.write_text(limit)
        swap = self.path / ("memory.memsw.limit_in_bytes" if is_v1 else "memory.swap.max")
        with contextlib.suppress(OSError):  # this kernel has no swap accounting
            swap.write_text(limit if is_v1 else "0")

    def set_limit(self, limit: int) -> None:
        """While programs run in it; swap keeps the first limit."""
        self._limit.write_text(str(limit))

    def enter(self) -> None:
        """A preexec_fn: the program starts in the cgroup."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def enter_exempt(self) -> None:
        """A preexec_fn: in this cgroup the kernel kills only processes that raise their oom_score_adj."""
        self.enter()
        with contextlib.suppress(PermissionError):  # not root: the kernel then kills the largest
            Path("/proc/self/oom_score_adj").write_text("-1000")

    def kills(self) -> int:
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(FileNotFoundError):
                lines = (self.path / name).read_text().splitlines()
                return int(next(line.split()[1] for line in lines if line.startswith("oom_kill ")))
        raise AssertionError("no count of kills")

    def remove(self) -> None:
        until = time.monotonic() + 10
        while self.path.exists() and time.monotonic() < until:
            for pid in (self.path / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                self.path.rmdir()
            time.sleep(0.01)
