"""Evidence from outside: a kernel's or a daemon's log, whoever ended it, a limit that has changed.

Each line of a log is tried with the program's pid and, as a control, with that of another process.
"""

from __future__ import annotations

from truth import events
from truth.case import KILLED, Case, Truth, died, innocent, quiet, signalled

OFF = {"OOMREC_WARN": "0"}
FAR = innocent("killed_externally")
NOBODY = "4194301"
SIZES = "total-vm:90000kB, anon-rss:52000kB, file-rss:1000kB, shmem-rss:0kB"
TAIL = SIZES + ", UID:0 pgtables:180kB oom_score_adj:0"
# The kernel's report about the machine ends with this line; about a cgroup its scope is there.
REPORT = "oom-kill:constraint={},nodemask=(null),cpuset=/,mems_allowed=0,{},task_memcg=/,task={{comm}},pid={{pid}},uid=0"
MACHINE = died("system_oom_kill", outcome="oom_killed")
CGROUP = died("cgroup_oom_kill", outcome="oom_killed")
KERNEL = died("system_oom_kill", "cgroup_oom_kill", outcome="oom_killed")
DAEMON = died("user_space_oom_kill")

EXITS_ON_TERM = """
import os, signal, sys
held = bytearray(b"x") * (30 << 20)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", os.getpid(), flush=True)
while True: signal.pause()
"""

# name: (the log's lines, the signal, what is right)
LINES: dict[str, tuple[str, int, Truth]] = {
    "el6": ("Killed process {pid}, UID 48, ({comm}) " + SIZES, 9, KERNEL),
    "el7": ("Killed process {pid} ({comm}), UID 0, " + SIZES, 9, KERNEL),
    "sacrifice": (
        "Out of memory: Kill process {pid} ({comm}) score 512 or sacrifice child\n"
        "Killed process {pid} ({comm}) " + SIZES, 9, MACHINE),
    "cgroup_sacrifice": (
        "Memory cgroup out of memory: Kill process {pid} ({comm}) score 960 or sacrifice child\n"
        "Killed process {pid} ({comm}) " + SIZES, 9, CGROUP),
    "cgroup": (
        REPORT.format("CONSTRAINT_MEMCG", "oom_memcg=/job_7")
        + "\nMemory cgroup out of memory: Killed process {pid} ({comm}) " + TAIL, 9, CGROUP),
    "cpuset": (
        REPORT.format("CONSTRAINT_CPUSET", "global_oom")
        + "\nOut of memory: Killed process {pid} ({comm}) " + TAIL, 9, MACHINE),
    "policy": (
        REPORT.format("CONSTRAINT_MEMORY_POLICY", "global_oom")
        + "\nOut of memory: Killed process {pid} ({comm}) " + TAIL, 9, MACHINE),
    "allocating_task": (
        "Out of memory (oom_kill_allocating_task): Killed process {pid} ({comm}) " + TAIL, 9, MACHINE),
    "reaper": (
        "oom_reaper: reaped process {pid} ({comm}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        9, KERNEL),
    "earlyoom_1.2": (
        "earlyoom[640]: low memory! at or below SIGTERM limits: mem 10 %, swap 10 %\n"
        'earlyoom[640]: killing process {pid} "{comm}" with signal 15: badness 566, VmRSS 52 MiB',
        15, DAEMON),
    "earlyoom_1.3": (
        'earlyoom[812]: sending SIGTERM to process {pid} "{comm}": badness 231, VmRSS 52 MiB', 15,
        DAEMON),
    "earlyoom_1.6": (
        'earlyoom[1306]: sending SIGTERM to process {pid} uid 1000 "{comm}": badness 1190, VmRSS 52 MiB',
        15, DAEMON),
    "lmkd": ("lowmemorykiller[450]: Kill '{comm}' ({pid}), uid 10086, oom_score_adj 900 to free 52000kB rss, 0kB swap; reason: low watermark is breached and swap is low (4kB < 8kB)", 9, DAEMON),
}  # fmt: skip
# Lines about the process that are no kill.
HARMLESS = {
    "page_allocation_failure": "{comm}: page allocation failure: order:5, mode:0xcc0(GFP_KERNEL), nodemask=(null),cpuset=/,mems_allowed=0",
    "invoked_by_it": "{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    "Out of memory: Killed process " + NOBODY + " (another) " + TAIL,
    "in_the_table": "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
    "[ {pid:>5} ]     0 {pid:>5}    22500    13000   180000        0             0 {comm}\n"
    "Out of memory: Killed process " + NOBODY + " (another) " + TAIL,
    "hung_task": "INFO: task {comm}:{pid} blocked for more than 120 seconds.",
}


def logged(name: str, text: str, number: int, truth: Truth, story: str) -> Case:
    return Case(
        f"logged_{name}", "told", story, ["@rests", "touched", "30"], truth,
        event=events.logs(text, events.sends(number)), fixtures=events.empty_log, env=OFF,
        ends=signalled(number), short=name in ("el7", "el7_of_another"),
    )  # fmt: skip


def of_another(text: str) -> str:
    return text.replace("{pid}", NOBODY).replace("{comm}", "another")


def told(name: str, story: str, number: int, truth: Truth, *words: str, pid: str = "{pid}") -> Case:
    """Who ends it says so to `oomrec ended` first, as a scheduler's hook."""
    return Case(
        f"told_{name}", "told", story, ["@rests", "touched", "30"], truth,
        event=events.tells(pid, *words, then=events.sends(number)), env=OFF,
        ends=signalled(number), short=name == "memory_kill",
    )  # fmt: skip


def changed(name: str, story: str, mib: int, truth: Truth, ends: str = KILLED) -> Case:
    """Its cgroup has 400 MiB when it starts, and `mib` when it goes on to 264."""
    return Case(
        f"limit_{name}", "told", story, ["@rests_then_grows", "60"], truth,
        event=events.limits(mib), cgroup="400M", env=OFF, ends=ends,
    )  # fmt: skip


CASES = [
    *(
        logged(name, text, number, truth, f"the log names it ({name})")
        for name, (text, number, truth) in LINES.items()
    ),
    *(
        logged(f"{name}_of_another", of_another(text), number, FAR,
               f"the log names another process ({name}); this one gets a signal by hand")
        for name, (text, number, _) in LINES.items()
    ),
    *(
        logged(name, text, 9, FAR, f"the log has its pid, but no kill of it ({name}); kill -9 by hand")
        for name, text in HARMLESS.items()
    ),
    logged("sysrq",
           "sysrq: Manual OOM execution\n"
           "kworker/0:1 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=-1, oom_score_adj=0\n"
           "Out of memory: Killed process {pid} ({comm}) " + TAIL, 9, FAR,
           "someone asked the kernel by SysRq f to kill the largest process"),
    told("memory_kill", "a scheduler says memory, then SIGKILL", 9, DAEMON, "--by", "slurm",
         "--reason", "memory"),
    told("memory_term", "a scheduler says memory, then SIGTERM", 15, DAEMON, "--by", "dask",
         "--reason", "memory"),
    told("time_kill", "a scheduler says that the time is up, then SIGKILL", 9, FAR, "--by", "slurm",
         "--reason", "other", "--text", "time limit"),
    told("time_term", "a scheduler says that the time is up, then SIGTERM", 15, FAR, "--by", "slurm",
         "--reason", "other", "--text", "time limit"),
    told("of_another", "a scheduler speaks of another process; kill -9 by hand", 9, FAR, "--by",
         "slurm", "--reason", "memory", pid="1"),
    Case("told_term_handled", "told", "a scheduler says memory; the program exits on its SIGTERM",
         ["@python3.11", "-c", EXITS_ON_TERM], DAEMON,
         event=events.tells("{pid}", "--by", "dask", then=events.TERM), env=OFF, ends="exit 0"),
    Case("told_nothing_term_handled", "told", "the program exits on a SIGTERM by hand",
         ["@python3.11", "-c", EXITS_ON_TERM], quiet(), event=events.TERM, env=OFF, ends="exit 0"),
    Case("told_crashes", "told", "a scheduler says memory, but the program crashes on its own",
         ["@handled", "rest"], innocent("crashed", "killed_externally", unsure=["request_too_large"]),
         event=events.tells("{pid}", "--by", "slurm", "--reason", "memory", then=events.sends(11, 1.2)),
         ends=signalled(11)),
    changed("lowered", "its limit is lowered from 400 to 120 MiB; it grows and is killed", 120,
            died("cgroup_oom_kill", limit="cgroup", limit_mib=120)),
    changed("lowered_a_little", "its limit is lowered to 250 MiB; it grows and is killed", 250,
            died("cgroup_oom_kill", limit="cgroup", limit_mib=250)),
    changed("kept", "its limit is written again; it grows and ends well", 400, quiet("near_limit"),
            ends="exit 0"),
    changed("raised", "its limit is raised to 800 MiB; it grows and ends well", 800, quiet(),
            ends="exit 0"),
]  # fmt: skip
