"""Runs one command and measures the CPU time of all its processes, and resident memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Used:
    cpu_s: float  # user and system time of the program and its children
    rss_mib: float | None  # peak of its largest process; None: too small to measure
    exit_code: int
    stopped: bool  # it reached its timeout
    figure: str  # the text after the last "figure:" on stdout
    complaint: str  # the last line on stderr


def adopt_orphans() -> None:
    """Become a subreaper: a recorder's second process may outlive its first, and its time counts."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(command: list[str], environment: dict[str, str], folder: Path, timeout_s: float) -> Used:
    """Runs the command to its end or its timeout, and leaves none of its processes behind."""
    deadline = time.monotonic() + timeout_s
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=stderr, start_new_session=True,
        )  # fmt: skip
        stopped = not ended_by(process.pid, deadline)
        if stopped:
            kill_group(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_s, rss_kib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
        for orphan in reap_orphans(process.pid, deadline):
            cpu_s += orphan.ru_utime + orphan.ru_stime
            rss_kib = max(rss_kib, orphan.ru_maxrss)
        # The kernel's peak includes the process before its exec, a copy of this one.
        rss_mib = rss_kib / 1024 if rss_kib > 1.1 * own_rss_kib() else None
        return Used(
            cpu_s, rss_mib, process.returncode, stopped, printed_figure(stdout), last_line(stderr)
        )


def ended_by(pid: int, deadline: float) -> bool:
    ends = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        waiting.register(ends, select.POLLIN)
        return bool(waiting.poll(max(0, deadline - time.monotonic()) * 1000))
    finally:
        os.close(ends)


def reap_orphans(group: int, deadline: float):
    """Waits for each process that the program left behind, and returns their usage."""
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid != 0:
            yield usage
        elif time.monotonic() > deadline:
            kill_group(group)
            deadline += 5
        else:
            time.sleep(0.01)


def own_rss_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def printed_figure(stream) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace").rpartition("figure:")[2].partition("\n")[0]


def last_line(stream) -> str:
    stream.seek(0)
    lines = stream.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
