"""A case: a program, what really happens to it, and the verdicts that are right or honestly unsure.

Cases are written from what their program does, never from the code that judges it. A case holds for
one or more ways to record, and what can be known may differ between them: `bare` has no parent that
sees the signal, so an unknown end is always an honest answer there.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

WAYS = ("run", "bare", "watch")
NOTHING = "nothing"  # in place of a code: no bundle

# The codes by what they claim (docs/deaths.md).
DENIALS = {"crashed", "killed_externally", "exited"}
WARNINGS = {"near_limit", "memory_pressure", "requested"}
REFUSALS = {
    "soft_limit", "address_space_limit", "data_limit", "request_too_large", "allocation_failed",
    "mapping_failed", "memory_lock_failed", "runtime_limit", "exception", "injected",
    "thread_creation_failed", "fork_failed", "device_out_of_memory", "device_limit",
    "device_fragmentation",
}  # fmt: skip
CRASHES = {"null_dereference", "uncaught_bad_alloc", "crash_after_refusal"}
KERNEL = {"cgroup_oom_kill", "system_oom_kill"}
KILLS = {
    *KERNEL, "killed_near_limit", "terminated_under_pressure", "user_space_oom_kill",
    "terminated_by_parent",
}  # fmt: skip
MEMORY_DEATHS = {*REFUSALS, *CRASHES, *KILLS, "shared_memory_full", "child_killed"}


@dataclass(frozen=True)
class Truth:
    """What an answer must be. Codes in neither set are wrong, unless their certainty is `possible`."""

    right: frozenset[str]
    unsure: frozenset[str] = frozenset()
    decided: bool = True  # the evidence decides: `possible` is less than can be known
    least_request: int = 0  # the failed request's bytes
    limit: str = ""  # the limit's kind
    limit_mib: int = 0
    api: str = ""  # the failed request's function
    program: str = ""  # of the bundle's process: a part of its name or command line
    holder: str = ""  # a function or file on the stack of one of the three largest holders
    outcome: str = ""


def died(*codes: str, unsure: Sequence[str] = (), **more: Any) -> Truth:
    """Memory is the reason, and these codes name it."""
    return Truth(frozenset(codes), frozenset(unsure), **more)


def innocent(*codes: str, unsure: Sequence[str] = (), **more: Any) -> Truth:
    """Another reason: without a bundle nobody was blamed."""
    return Truth(frozenset(codes), frozenset({*unsure, NOTHING}), **more)


def quiet(*codes: str, unsure: Sequence[str] = ()) -> Truth:
    """Nothing happened that deserves a bundle; `codes` are no false alarm either."""
    return Truth(frozenset({NOTHING, *codes}), frozenset(unsure))


@dataclass
class Scene:
    """What an event of a case acts on."""

    directory: Path
    pid: int  # that the program printed in its line "ready PID"
    cgroup: Path | None
    fixtures: Path | None  # the directory of fake files, if the case has some
    oomrec: Callable[..., subprocess.CompletedProcess[str]]  # runs the command with these words
    add_cgroup: Callable[[str], Path]  # makes another one with this limit


@dataclass(frozen=True)
class Case:
    name: str
    group: str  # the class in the table
    story: str  # what really happens
    words: Sequence[str]  # of the command line; @NAME: a program of ours, or @python3.N
    truth: Truth
    bare: Truth | None = None  # where this way can know less, or other things
    watch: Truth | None = None
    ways: Sequence[str] = WAYS
    ends: str = (
        ""  # how the program ends, which shows that the story happened: "signal 9", "exit 1"
    )
    options: Sequence[str] = ()  # of `oomrec run`, for cases of this way only
    env: Mapping[str, str] = field(default_factory=dict)
    cgroup: str = ""  # its limit
    limits: Mapping[int, int] = field(default_factory=dict)  # resource limits
    event: Callable[[Scene], None] | None = None  # once it has printed "ready PID"
    fixtures: Callable[[Path], Mapping[str, str]] | None = None  # makes fake files: variables
    needs: Sequence[str] = ()  # programs without which it is skipped
    pressure: str = ""  # the machine's memory pressure; otherwise there is none
    short: bool = False  # part of the short form
    only: bool = False  # its death has one bundle
    disk: bool = False  # its files must not be memory, which its cgroup would count

    def truth_for(self, way: str) -> Truth:
        truth = {"bare": self.bare, "watch": self.watch}.get(way) or self.truth
        if way == "bare":  # nobody saw how it ended
            return replace(truth, unsure=truth.unsure | {"unknown"})
        return truth


def signalled(number: int) -> str:
    return f"signal {int(number)}"


KILLED, CRASHED, ABORTED = (
    signalled(number) for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
)
