"""A kernel log that reports OOM kills and faults, read through OOMREC_KERNEL_LOG."""

from __future__ import annotations

import time
from pathlib import Path


def memory_cgroup_of(pid: int) -> str:
    """The path of a process' memory cgroup, as logs name it."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    fields = [line.split(":", 2) for line in lines]
    return next(path for _, kind, path in fields if "memory" in kind.split(",") or not kind)


def _logged_before(log: Path) -> str:
    return log.read_text() if log.exists() else "6,0,0,-;Linux version\n"


def _now_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def report_fault(log: Path, pid: int, name: str) -> Path:
    """Adds the line about a fault without a handler, from arch/x86/mm/fault.c."""
    words = f"{name}[{pid}]: segfault at 10 ip 55bb8aae2400 sp 7ffe9453a740 error 6 in {name}"
    log.write_text(f"{_logged_before(log)}6,1,{_now_us()},-;{words}\n")
    return log


def report_oom_kill(log: Path, pid: int, name: str, cgroup: str = "") -> Path:
    """Adds a kill, by the machine or by `cgroup`, to the log of a machine that has logged nothing else.

    The lines are those of Linux 5 to 6, from mm/oom_kill.c, in the form of /dev/kmsg.
    """
    now_us = _now_us()
    earlier = _logged_before(log)
    limit = (
        f"6,1,{now_us},-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
        f"mems_allowed=0,oom_memcg={cgroup},task_memcg={cgroup},task={name},pid={pid},uid=0\n"
    )
    kind = "Memory cgroup out of memory" if cgroup else "Out of memory"
    log.write_text(
        f"{earlier}{limit if cgroup else ''}3,1,{now_us},-;{kind}: Killed process {pid} ({name}) "
        "total-vm:30000kB, anon-rss:25000kB, file-rss:1000kB, shmem-rss:0kB, UID:0 "
        "pgtables:100kB oom_score_adj:0\n"
    )
    return log
