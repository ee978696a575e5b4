"""What fills a cgroup is not always the heap of the process that is killed."""

from __future__ import annotations

from typing import Any

from truth import events
from truth.case import KILLED, Case, died, innocent, quiet

KILL = died("cgroup_oom_kill", outcome="oom_killed")
EVICTED = (
    "Memory cgroup out of memory: Killed process {pid} ({comm}) total-vm:90000kB, anon-rss:61000kB, "
    "file-rss:900kB, shmem-rss:0kB, UID:0 pgtables:180kB oom_score_adj:0"
)


def fills(sort: str, story: str, limit: str = "80M", **more: Any) -> Case:
    return Case(
        f"fills_{sort}", "account", story, ["@grow", sort, "200"], more.pop("truth", KILL),
        cgroup=limit, ends=KILLED, **more,
    )  # fmt: skip


def daemon(name: str, line: str, number: int, short: bool = False) -> Case:
    """A killer in user space says in the log whom it ends and why."""
    return Case(
        name, "account", f"{name.replace('_', ' ')}: logged, then signal {number}",
        ["@rests", "touched", "180"],
        died("user_space_oom_kill", unsure=["killed_near_limit", "terminated_under_pressure"]),
        event=events.logs(line, events.sends(number)), fixtures=events.empty_log,
        cgroup="212M", env={"OOMREC_WARN": "0"}, ends=f"signal {number}", short=short,
    )  # fmt: skip


CASES = [
    fills("raw", "mappings by the raw system call, which no hook sees", short=True),
    fills("memfd", "a memfd is mapped and filled"),
    fills("memfd_write", "a memfd is written to, never mapped"),
    fills("shared", "a shared anonymous mapping is filled"),
    fills("sysv", "a System V segment is filled"),
    Case("neighbour_fills", "account",
         "an unrecorded neighbour fills the cgroup; the recorded one grows and is killed",
         ["@rests_then_grows", "60"], died("cgroup_oom_kill"), event=events.neighbour(40),
         cgroup="120M", ends=KILLED),
    Case("neighbour_killed", "account",
         "an unrecorded neighbour grows and is killed; the recorded one gets kill -9 later",
         ["@rests", "touched", "20"],
         innocent("killed_externally", unsure=["killed_near_limit", "near_limit"]),
         event=events.neighbour(200, events.KILL), cgroup="120M", ends=KILLED,
         env={"OOMREC_WARN": "0"}, short=True),
    Case("shm_python", "account", "Python's shared memory fills the cgroup",
         ["@python3.11", "-c", "from multiprocessing import shared_memory as s\n"
          "b = s.SharedMemory(create=True, size=200 << 20)\nb.unlink()\n"
          "for i in range(0, 200 << 20, 4096): b.buf[i] = 1"],
         KILL, cgroup="80M", ends=KILLED),
    Case("page_cache", "account", "a large file is written and read: the page cache is reclaimed",
         ["sh", "-c", "head -c 200M /dev/zero > big; cat big big > /dev/null; rm big"],
         quiet(), cgroup="60M", ends="exit 0", disk=True),
    daemon("earlyoom_kill",
           "earlyoom[312]: sending SIGKILL to process {pid} uid 0 \"{comm}\": oom_score 1204, "
           "VmRSS 190 MiB, cmdline \"rests touched 180\"", 9, short=True),
    daemon("earlyoom_term",
           "earlyoom[312]: sending SIGTERM to process {pid} uid 0 \"{comm}\": oom_score 1204, "
           "VmRSS 190 MiB, cmdline \"rests touched 180\"", 15),
    daemon("systemd_oomd",
           "systemd-oomd[521]: Killed {cgroup} due to memory used (8123412480) / "
           "total (8243412992) and swap used (0) / total (0) being more than 90.00%", 9),
]  # fmt: skip
