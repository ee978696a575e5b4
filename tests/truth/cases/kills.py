"""The kernel, or somebody, kills a program that used the memory there is."""

from __future__ import annotations

from typing import Any

from truth import events
from truth.case import KILLED, Case, died, innocent, signalled

OFF = {"OOMREC_WARN": "0"}
KILL = died("cgroup_oom_kill", outcome="oom_killed")


def grows(
    name: str, story: str, *words: str, holder: str = "", limit: str = "80M", **more: Any
) -> Case:
    return Case(
        f"grows_{name}",
        "kills",
        story,
        words,
        more.pop("truth", died("cgroup_oom_kill", outcome="oom_killed", holder=holder)),
        ends=more.pop("ends", KILLED),
        cgroup=limit,
        **more,
    )


PYTHON = """
held = []
def keep():
    held.append("x" * 100000 + str(len(held)))
while True:
    keep()
"""
RUBY = "a = []; loop { a << ('x' * 100_000) }"
LUA = "local t = {}; while true do t[#t + 1] = string.rep('x', 100000 + #t) end"
PHP = "$a = []; while (true) { $a[] = str_repeat('x', 100000); }"
NODE = "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))"
AWK = 'BEGIN { while (1) a[n++] = sprintf("%1000d", n) }'
PERL = "my @a; push @a, 'x' x 100_000 while 1"
TCL = "set a {}; while 1 { lappend a [string repeat x 100000] }"

CASES = [
    grows("c", "C allocates one MiB after another", "@grow", "heap", holder="grow_heap", short=True),
    grows("small", "C allocates 56 bytes at a time", "@grow", "small", holder="grow_small"),
    grows("big", "C touches one big block", "@grow", "big", holder="grow_big"),
    grows("lazy", "one big calloc-like block is touched slowly", "@grow", "lazy", holder="main"),
    grows("anonymous", "C touches one mapping", "@grow", "anonymous", holder="main"),
    grows("threads", "four threads grow", "@grow", "threads", holder="grow_thread"),
    grows("saw", "a saw tooth, then growth", "@grow", "saw", holder="grow_heap"),
    grows("no_main", "main ended by pthread_exit; a thread grows", "@grow", "no_main",
          holder="grow_thread", short=True),
    *(
        grows(f"python{version}", f"Python {version} keeps strings", f"@python{version}", "-c",
              PYTHON, holder="keep", short=version == "3.13")
        for version in ("3.8", "3.10", "3.12", "3.13")
    ),
    grows("python3.7", "Python 3.7, whose frames are not read", "@python3.7", "-c", PYTHON),
    grows("perl", "Perl keeps strings", "perl", "-e", PERL, needs=["perl"], short=True),
    grows("ruby", "Ruby keeps strings", "ruby", "-e", RUBY, needs=["ruby"]),
    grows("lua", "Lua keeps strings", "lua5.4", "-e", LUA, needs=["lua5.4"]),
    grows("php", "PHP without its own limit", "php", "-d", "memory_limit=-1", "-r", PHP,
          needs=["php"]),
    grows("node", "Node keeps buffers outside of V8's heap", "node", "-e", NODE, needs=["node"],
          limit="150M"),
    grows("awk", "awk fills an array", "mawk", AWK, needs=["mawk"]),
    grows("gawk", "gawk fills an array", "gawk", AWK, needs=["gawk"]),
    grows("tcl", "Tcl keeps a list", "tclsh", "@grow.tcl", needs=["tclsh"]),
    grows("bash", "bash doubles a string", "bash", "-c", "x=xxxxxxxx; while :; do x=$x$x; done",
          needs=["bash"], limit="60M"),
    grows("sort", "sort with a large buffer sorts an endless stream", "bash", "-c",
          "yes 0123456789abcdef | exec sort -S 300M", needs=["sort"],
          truth=died("cgroup_oom_kill", program="sort")),
    grows("sqlite", "sqlite fills a table in memory", "sqlite3", ":memory:",
          "create table t as with recursive c(x) as (select 1 union all select x + 1 from c where "
          "x < 900000) select x, hex(randomblob(500)) from c", needs=["sqlite3"]),
    grows("tail", "tail keeps the last line, which never ends", "sh", "-c",
          "tr '\\0' x < /dev/zero | exec tail -n 1", needs=["tail"],
          truth=died("cgroup_oom_kill", program="tail")),
    grows("unlogged", "the kernel's log cannot be read", "@grow", "heap",
          fixtures=events.unreadable_log,
          truth=died("cgroup_oom_kill"),
          watch=died("cgroup_oom_kill", "killed_near_limit"),
          bare=died("cgroup_oom_kill", "killed_near_limit")),
    Case("system_kill", "kills", "the machine is out of memory: the kernel's log names the process",
         ["@rests", "touched", "30"], died("system_oom_kill", outcome="oom_killed"),
         event=events.logs("Out of memory: Killed process {pid} ({comm}) total-vm:70000kB, "
                           "anon-rss:52000kB, file-rss:1000kB, shmem-rss:0kB, UID:0 "
                           "pgtables:100kB oom_score_adj:0", events.KILL),
         fixtures=events.empty_log, ends=KILLED, short=True),
    Case("system_kill_of_another", "kills", "the log names another process; this one gets kill -9",
         ["@rests", "touched", "30"], innocent("killed_externally"),
         event=events.logs("Out of memory: Killed process 1 (another) total-vm:70000kB, "
                           "anon-rss:52000kB, file-rss:1000kB, shmem-rss:0kB, UID:0 "
                           "pgtables:100kB oom_score_adj:0", events.KILL),
         fixtures=events.empty_log, ends=KILLED),
    Case("kill_by_hand", "kills", "kill -9 by hand, far from every limit",
         ["@rests", "touched", "30"], innocent("killed_externally"), event=events.KILL,
         cgroup="800M", ends=KILLED, short=True),
    Case("kill_by_hand_no_limit", "kills", "kill -9 by hand without any limit",
         ["@rests", "touched", "60"], innocent("killed_externally"), event=events.KILL, ends=KILLED),
    Case("term_by_hand", "kills", "a service is stopped by SIGTERM", ["@rests", "touched", "30"],
         innocent("killed_externally"), event=events.TERM, ends=signalled(15), short=True),
    Case("interrupted", "kills", "Ctrl-C", ["@rests", "touched", "30"],
         innocent("killed_externally"), event=events.INTERRUPT, ends=signalled(2)),
    Case("timeout_kills", "kills", "timeout -s KILL ends a program that takes too long",
         ["timeout", "-s", "KILL", "1", "sleep", "5"], innocent("killed_externally"), ends=KILLED),
    Case("kill_at_limit", "kills", "kill -9 by an unknown sender at 96 % of the cgroup's limit",
         ["@rests", "touched", "170"],
         died("killed_near_limit", unsure=["killed_externally", "near_limit"]),
         event=events.KILL, cgroup="206M", ends=KILLED, env=OFF, short=True),
]  # fmt: skip
