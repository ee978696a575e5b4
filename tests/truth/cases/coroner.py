"""Programs that cannot be recorded: `oomrec run` is their parent and sees how they end."""

from __future__ import annotations

from typing import Any

from truth import events
from truth.case import CRASHED, KILLED, Case, died, innocent, quiet

KILL = died("cgroup_oom_kill", outcome="oom_killed")


def unrecorded(name: str, story: str, *words: str, truth=KILL, ends=KILLED, **more: Any) -> Case:
    return Case(
        f"unrecorded_{name}", "coroner", story, words, truth, ways=["run"], ends=ends, **more
    )


def grows(name: str, story: str, *words: str, **more: Any) -> Case:
    return unrecorded(name, story, *words, cgroup="80M", **more)


CASES = [
    grows("static", "a static C program grows and is killed", "@grow_static", "heap", short=True),
    grows("musl", "a musl program grows and is killed", "@grow_musl", "heap"),
    grows("go", "a static Go program grows and is killed", "@grows.go", needs=["go"]),
    grows("busybox", "a static busybox grows and is killed", "busybox", "awk",
          "BEGIN { while (1) a[n++] = sprintf(\"%9999d\", n) }", needs=["busybox"]),
    grows("env", "env -i clears the library's variable", "env", "-i", "@grow", "heap"),
    grows("shell_child", "a shell's child with LD_PRELOAD cleared is killed; the shell exits with 7",
          "sh", "-c", "env -u LD_PRELOAD \"$0\" heap; exit 7", "@grow", ends="exit 7"),
    grows("static_child", "a shell's static child is killed; the shell exits with 137",
          "sh", "-c", "\"$0\" heap; exit 137", "@grow_static", ends=KILLED),
    grows("asan", "a program with AddressSanitizer grows and is killed", "@grow_asan", "heap",
          env={"ASAN_OPTIONS": "detect_leaks=0"}),
    unrecorded("static_kill_9", "a static program gets kill -9 by hand", "@rests_static", "touched",
               "30", event=events.KILL, truth=innocent("killed_externally"), short=True),
    unrecorded("static_term", "a static program is stopped by SIGTERM", "@rests_static", "touched",
               "30", event=events.TERM, truth=innocent("killed_externally"), ends="signal 15"),
    unrecorded("static_crash", "a static program crashes", "@crash_static", "null",
               truth=innocent("crashed"), ends=CRASHED),
    unrecorded("static_exit_3", "a static program exits with 3", "@crash_static", "exit3",
               truth=quiet(), ends="exit 3"),
    unrecorded("static_fine", "a static program exits with 0", "@crash_static", "fine",
               truth=quiet(), ends="exit 0"),
    unrecorded("musl_fine", "a musl program exits with 0", "@crash_musl", "fine", truth=quiet(),
               ends="exit 0"),
]  # fmt: skip
