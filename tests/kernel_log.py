"""A kernel log that reports OOM kills, read through OOMREC_KERNEL_LOG."""

from __future__ import annotations

import time
from pathlib import Path


def report_oom_kill(log: Path, pid: int, name: str) -> Path:
    """Adds a line to the log of a machine that has logged nothing else since it was booted.

    The line is one of Linux 5 to 6, from mm/oom_kill.c, in the form of /dev/kmsg.
    """
    now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    earlier = log.read_text() if log.exists() else "6,0,0,-;Linux version\n"
    log.write_text(
        f"{earlier}3,1,{now_us},-;Out of memory: Killed process {pid} ({name}) "
        "total-vm:30000kB, anon-rss:25000kB, file-rss:1000kB, shmem-rss:0kB, UID:0 "
        "pgtables:100kB oom_score_adj:0\n"
    )
    return log
