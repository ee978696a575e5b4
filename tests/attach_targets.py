"""Programs that `oomrec attach` is tested with, and what they could notice of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import written
from started import Started
from watching import wait_for


def may_trace() -> bool:
    """Whether this user may trace a process that is not its child."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.geteuid() == 0 or not scope.exists() or scope.read_text().strip() == "0"


def state_of(pid: int) -> dict:
    """What a process could notice of itself, besides its time and memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = {
        name: re.search(rf"{name}:\s*(\S+)", status)[1]
        for name in ("Threads", "SigBlk", "SigIgn", "SigCgt", "TracerPid", "ShdPnd")
    }
    return {
        **fields,
        "fds": sorted(os.listdir(f"/proc/{pid}/fd")),
        "cwd": sorted(os.listdir(f"/proc/{pid}/cwd")),
    }


def state_if_running(pid: int) -> dict | None:
    try:
        return state_of(pid)
    except FileNotFoundError:
        return None


def mapped_hooks(pid: int) -> bool:
    return "liboomrec" in Path(f"/proc/{pid}/maps").read_text()


def copies(pid: int) -> int:
    """How many copies of the library the process has loaded."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return sum("liboomrec" in line and " r-xp" in line for line in maps)


class Told:
    """A program that reads commands from stdin, one a line, and answers each with one line."""

    def __init__(self, process: Started) -> None:
        self.process, self.pid = process, process.pid

    def answer(self) -> str:
        return self.process.line().strip()

    def __call__(self, line: str) -> str:
        return self.process.tell(f"{line}\n").line().strip()


def starts_ready(plain, program: str, python: str = sys.executable) -> Started:
    """program.py of this text, which has printed "ready" and reads its stdin."""
    script = written(plain.directory / "program.py", program)
    return plain.start(python, script, stdin=subprocess.PIPE).once("ready")


def live(oomrec, program, space: str) -> int:
    """The bytes that a recorded process holds now."""
    top = oomrec.json("top", "--once", program.pid)
    return top["moment"]["live_bytes"].get(space, 0)


def shown(oomrec, program) -> dict:
    """A bundle of a recorded process as it is now."""
    return oomrec.json("show", oomrec("dump", program.pid).stdout.strip())


needs_tracing = pytest.mark.skipif(not may_trace(), reason="kernel.yama.ptrace_scope forbids it")


def rows(oomrec, pid: int) -> dict[str, dict]:
    """The holders of a process, by their innermost function."""
    return {row["function"]: row for row in oomrec.json("top", "--once", pid)["rows"]}


def rows_with(oomrec, pid: int, **counts: int) -> dict[str, dict]:
    """`rows`, once these functions have so many blocks: a thread publishes its last ones a little later."""

    def found():
        now = rows(oomrec, pid)
        return now if {name: now.get(name, {}).get("count") for name in counts} == counts else None

    return wait_for(found)


def heap_bytes(oomrec, process) -> int:
    return oomrec.json("top", "--once", process.pid)["moment"]["live_bytes"]["heap"]


def step(process: Started) -> int:
    """Lets grows_in_steps go on; what its malloc has given out after that."""
    return int(process.tell("\n").line())


def say(process: Started, line: str) -> str:
    return process.tell(f"{line}\n").line()
