"""The kernel, or somebody, kills a program that used the memory there is."""

from __future__ import annotations

import resource
from typing import Any

from truth import events
from truth.case import KILLED, Case, died, innocent, quiet, signalled

OFF = {"OOMREC_WARN": "0"}


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
    Case("interrupted", "kills", "Ctrl-C: who pressed it wants no bundle",
         ["@rests", "touched", "30"], quiet("killed_externally"), event=events.INTERRUPT, ends=signalled(2)),
    Case("timeout_kills", "kills", "timeout -s KILL ends a program that takes too long",
         ["timeout", "-s", "KILL", "1", "sleep", "5"], quiet("killed_externally"),
         ends=KILLED),
    Case("kill_at_limit", "kills", "kill -9 by an unknown sender at 96 % of the cgroup's limit",
         ["@rests", "touched", "170"],
         died("killed_near_limit", unsure=["killed_externally", "near_limit"], decided=False),
         event=events.KILL, cgroup="206M", ends=KILLED, env=OFF, short=True),
    grows("git", "git reads an object from a pipe", "sh", "-c",
          "head -c 400M /dev/zero | exec git hash-object --stdin", needs=["git"],
          truth=died("cgroup_oom_kill", program="git")),
    grows("sed", "sed joins all lines of an endless stream", "sh", "-c",
          "yes 0123456789abcdef0123456789abcdef | exec sed ':a;N;$!ba'", needs=["sed"],
          truth=died("cgroup_oom_kill", program="sed")),
    grows("xz", "xz -9 needs 674 MiB", "sh", "-c", "head -c 500M /dev/urandom | exec xz -9 -T1",
          needs=["xz"], truth=died("cgroup_oom_kill", program="xz"), limit="70M"),
    grows("cc1plus", "g++ keeps the tokens of an endless macro; it exits with 1", "g++", "-c",
          "@tokens.cxx", "-o", "/dev/null", needs=["g++"], limit="120M",
          truth=died("cgroup_oom_kill", "child_killed"), ends="exit 1"),
    grows("guile", "Guile keeps lists", "guile", "--no-auto-compile", "-c",
          "(let loop ((l '())) (loop (cons (make-vector 1000 l) l)))", needs=["guile"]),
    grows("ocaml", "OCaml keeps strings", "ocaml", "@grow.ml", needs=["ocaml"]),
    grows("fibre", "a coroutine on a stack of its own grows", "@fibres", "grow",
          holder="grow_in_fibre"),
    grows("rust", "Rust keeps vectors", "@ends_in_rust", "grow", needs=["rustc"]),
    grows("renamed", "the process has given itself another name", "@grow", "renamed",
          holder="grow_heap", short=True),
    grows("deleted", "the program's file has been deleted meanwhile", "sh", "-c",
          "cp \"$0\" ./vanishing && (sleep 0.3; rm vanishing) & sleep 0.1; exec ./vanishing late",
          "@grow", truth=died("cgroup_oom_kill", program="vanishing")),
    grows("inherits", "a forked child inherits a table and grows; it is killed, the parent exits "
          "with 1", "@grow", "inherits", ends="exit 1", limit="120M",
          truth=died("cgroup_oom_kill", "child_killed")),
    grows("pipeline", "the first of a pipeline grows; the last waits", "bash", "-c",
          "\"$0\" -c \"$1\" | cat", "@python3.12", PYTHON, ends="exit 0",
          truth=died("cgroup_oom_kill", program="python3.12")),
    grows("make", "a job of make is killed; make exits with 2", "make", "-f", "@Makefile.grow",
          needs=["make", "perl"], truth=died("cgroup_oom_kill", program="perl"), ends="exit 2"),
    grows("subprocess", "Python's subprocess is killed; CalledProcessError, exit 1",
          "@python3.11", "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)",
          "perl", "-e", PERL, needs=["perl"], ends="exit 1",
          truth=died("cgroup_oom_kill", "child_killed")),
    grows("nice", "through nice, env and timeout", "timeout", "20", "nice", "env", "A=1", "@grow",
          "heap", truth=died("cgroup_oom_kill", holder="grow_heap"), ends="signal 9"),
    grows("refused_before", "a refusal is handled; then the cgroup is full", "@handled", "grow",
          holder="grows()"),
    Case("killed_after_refusal", "kills", "a refusal is handled; a second later kill -9 by hand",
         ["@handled", "rest"], innocent("killed_externally", unsure=["request_too_large"]),
         event=events.sends(9, 1.2), ends=KILLED, short=True),
    Case("stopped_after_refusal", "kills", "a refusal is handled; a second later SIGTERM by hand",
         ["@handled", "rest"], innocent("killed_externally", unsure=["request_too_large"]),
         event=events.sends(15, 1.2), ends=signalled(15)),
    Case("timeout_at_limit", "kills", "timeout ends a program that rests near its limit",
         ["timeout", "1", "@rests", "touched", "170"],
         innocent("killed_externally", unsure=["killed_near_limit", "terminated_under_pressure"]),
         cgroup="206M", env=OFF, ends="exit 124"),
    Case("cpu_limit", "kills", "RLIMIT_CPU is used up: the kernel sends SIGKILL",
         ["@python3.12", "-c", "h = bytearray(b'x') * (30 << 20)\nwhile 1: pass"],
         innocent("killed_externally"), limits={resource.RLIMIT_CPU: 1}, ends=KILLED),
    Case("seccomp", "kills", "a forbidden system call: seccomp sends SIGKILL",
         ["@crash", "seccomp"], innocent("killed_externally", "crashed"), ends=KILLED),
    Case("bystander", "kills", "one of two processes grows and is killed; the other, older, rests",
         ["sh", "-c", "\"$0\" touched 30 9 & \"$1\" heap; kill $!; exit 1", "@rests", "@grow"],
         died("cgroup_oom_kill", program="grow"), cgroup="140M", ends="exit 1"),
    Case("shared_memory_full", "kills", "/dev/shm of 16 MiB is full: SIGBUS",
         ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=16m none /dev/shm; "
          "exec \"$0\" -c \"$1\"", "@python3.11",
          "from multiprocessing import shared_memory as s\nh = bytearray(b'x') * (20 << 20)\n"
          "b = s.SharedMemory(create=True, size=40 << 20)\n"
          "for i in range(0, 40 << 20, 4096): b.buf[i] = 1"],
         died("shared_memory_full"), ends="signal 7", needs=["unshare"]),
]  # fmt: skip
