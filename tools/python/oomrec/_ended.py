"""Tells a process' recording why it is ended."""

from __future__ import annotations

from ._command import run


def ended(
    pid: int, by: str, text: str = "", *, memory: bool = True, timeout_s: float = 10.0
) -> bool:
    """Enters in the recording of process `pid` why it ends, for those who end it and know.

    Call it before the signal, or within ten minutes after the end: schedulers, supervisors, their plugins.
    `by` is who ends it, `text` the reason in its own words, `memory` whether memory is the reason. The
    verdict on its death is then user_space_oom_kill (proven); killed_externally if memory is not.

    True if it is entered. False if the process has neither a recording nor a bundle of its end, or the
    command oomrec is not found; never raises. Takes some 20 ms.
    """
    reason = "memory" if memory else "other"
    words = ("ended", f"--by={by}", f"--reason={reason}", f"--text={text}", str(pid))
    done = run(*words, timeout_s=timeout_s)
    return done is not None and done.returncode == 0
