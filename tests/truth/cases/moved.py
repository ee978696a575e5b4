"""A program that is moved to another cgroup while it runs, or that changes its user."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from truth import events
from truth.case import CRASHED, KILLED, NOTHING, WAYS, Case, Truth, died, innocent, signalled

OFF = {"OOMREC_WARN": "0"}


def moved(name: str, story: str, do: str, truth: Truth, old: str, new: int, log: bool = False,
          ends: str = KILLED, mib: int = 250, then: events.Event | None = None) -> Case:  # fmt: skip
    return Case(
        f"moved_{name}", "moved", story, ["@moves", do, str(mib)], truth,
        event=events.moves(f"{new}M", then), cgroup=old, env=OFF, ends=ends,
        watch=unseen(truth, new), bare=unseen(truth, new, NOTHING),
        fixtures=None if log else events.unreadable_log, short=name == "touches_lower",
    )  # fmt: skip


def full(mib: int) -> Truth:
    return died("cgroup_oom_kill", limit="cgroup", limit_mib=mib)


def unseen(truth: Truth, mib: int, *unsure: str) -> Truth | None:
    """Nobody saw the signal. Without a watcher nobody knows of the move, either."""
    if truth is KILLED_BY_HAND:
        return None
    codes = () if unsure else ("killed_near_limit",)
    return died("cgroup_oom_kill", *codes, limit="cgroup", limit_mib=mib, unsure=unsure)


KILLED_BY_HAND = innocent("killed_externally")


# A worker has a recording of nobody's, which root's `watch` and `show` leave to nobody's.
def nobody(name: str, story: str, how: str, end: str, truth: Truth, ends: str, mib: int = 100,
           cgroup: str = "", event: events.Event | None = None) -> Case:  # fmt: skip
    return Case(
        f"nobody_{name}", "moved", story, ["@changes_user", how, end, str(mib)], truth, ends=ends,
        cgroup=cgroup, event=event, env=OFF, only=True, short=name == "setuid_grows",
        fixtures=open_to_all, ways=("run",) if how == "worker" else WAYS,
    )  # fmt: skip


def open_to_all(directory: Path) -> Mapping[str, str]:
    """Fixture: nobody may record, and write bundles, where root does."""
    case = directory.parent
    for parent in case.parents:
        if not parent.stat().st_mode & 1:
            parent.chmod(parent.stat().st_mode | 0o11)
    (case / "oom_dumps").mkdir()
    for shared in (case / "sessions", case / "oom_dumps"):
        shared.chmod(0o1777)
    return {}


HOWS = ("setuid", "setresuid", "seteuid")

CASES = [
    moved("touches_lower", "moved to a smaller cgroup, it touches what it had reserved", "touches",
          full(60), "400M", 60),
    moved("touches_higher", "moved to a larger cgroup, it touches what it had reserved", "touches",
          full(120), "70M", 120),
    moved("grows_lower", "moved to a smaller cgroup, it grows", "grows", full(60), "400M", 60),
    moved("grows_higher", "moved to a larger cgroup, it grows", "grows", full(120), "70M", 120),
    moved("logged", "moved to a smaller cgroup; the kernel's log names that", "touches", full(60),
          "400M", 60, log=True),
    moved("then_kill", "moved out of a small cgroup, then kill -9 by hand", "rests",
          KILLED_BY_HAND, "40M", 400, then=events.sends(9, 0.8)),
    moved("then_kill_lower", "moved to a smaller cgroup with room, then kill -9 by hand", "rests",
          KILLED_BY_HAND, "400M", 200, then=events.sends(9, 0.8)),
    moved("then_term", "moved to another cgroup, then SIGTERM by hand", "rests", KILLED_BY_HAND,
          "400M", 200, then=events.sends(15, 0.8), ends=signalled(15)),
    *(
        nobody(f"{how}_grows", f"becomes nobody by {how}, and grows", how, "grows",
               died("cgroup_oom_kill", outcome="oom_killed"), KILLED, cgroup="80M")
        for how in HOWS
    ),
    *(
        nobody(f"{how}_null", f"becomes nobody by {how}, and uses the NULL of a refused request",
               how, "null", died("null_dereference", "crash_after_refusal"), CRASHED)
        for how in HOWS
    ),
    *(
        nobody(f"{how}_killed", f"becomes nobody by {how}; kill -9 by hand", how, "rests",
               KILLED_BY_HAND, KILLED, cgroup="800M", event=events.KILL)
        for how in HOWS
    ),
    nobody("refused", "becomes nobody, and exits after a refused request", "setuid", "refused",
           died("request_too_large"), "exit 3"),
    nobody("worker_grows", "root's worker becomes nobody, and grows", "worker", "grows",
           died("cgroup_oom_kill", "child_killed"), "exit 1", cgroup="110M"),
    nobody("worker_killed", "root's worker becomes nobody; kill -9 by hand", "worker", "rests",
           KILLED_BY_HAND, "exit 1", cgroup="800M", event=events.KILL),
]  # fmt: skip
