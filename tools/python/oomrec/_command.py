"""One run of the command `oomrec` whose answer is JSON."""

from __future__ import annotations

from typing import Any

from ._library import command, unrecorded_environment


def ask(*words: str, timeout_s: float = 10.0) -> dict[str, Any] | None:
    """What the command answers to `words`, which include --json; None where there is no answer.

    It runs without the recorder, and what it prints on stderr is dropped. An answer counts whatever
    the exit code is: `ls` exits 1 where it lists nothing.
    """
    import json  # these take 10 ms, which an exception that tells of no child does not need
    import subprocess

    program = command()
    if program is None:
        return None
    try:
        run = subprocess.run(
            [program, *words],
            env=unrecorded_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
        answer = json.loads(run.stdout)
    except (OSError, ValueError, MemoryError, subprocess.SubprocessError):
        return None
    return answer if isinstance(answer, dict) else None
