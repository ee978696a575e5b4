"""Runs the command `oomrec`, and parses its JSON."""

from __future__ import annotations

from typing import Any

from ._library import command, unrecorded_environment


def run_json(*words: str, timeout_s: float = 10.0) -> dict[str, Any] | None:
    """The JSON object that the command prints for `words`, which include --json; None if it prints none.

    The command runs without the recorder, and its stderr is discarded. The exit code does not matter:
    `ls` exits 1 if it lists nothing.
    """
    import json  # imported here: both take 10 ms, and most exceptions do not need them
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
        output = json.loads(run.stdout)
    except (OSError, ValueError, MemoryError, subprocess.SubprocessError):
        return None
    return output if isinstance(output, dict) else None
