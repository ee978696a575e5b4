"""Runs the command `oomrec`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Mapping

from ._library import command, unrecorded_environment

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def run(
    *words: str,
    timeout_s: float | None,
    variables: Mapping[str, str] = MappingProxyType({}),
    stdin: bytes = b"",
) -> CompletedProcess[bytes] | None:
    """Its exit code and stdout; None if it is not found or does not end in time.

    It runs without the recorder, with `variables` in its environment, and its stderr is discarded.
    `timeout_s` None: it may take any time.
    """
    import subprocess  # imported here: it takes 10 ms, and most programs do not need it

    program = command()
    if program is None:
        return None
    try:
        return subprocess.run(
            [program, *words],
            env={**unrecorded_environment(), **variables},
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, ValueError, MemoryError, subprocess.SubprocessError):
        return None


def run_json(
    *words: str, timeout_s: float = 10.0, variables: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any] | None:
    """The JSON object that the command prints for `words`, which include --json; None if it prints none.

    The exit code does not matter: `ls` exits 1 if it lists nothing.
    """
    import json  # imported here: it takes 10 ms, and most exceptions do not need it

    done = run(*words, timeout_s=timeout_s, variables=variables)
    if done is None:
        return None
    try:
        output = json.loads(done.stdout)
    except (ValueError, MemoryError):
        return None
    return output if isinstance(output, dict) else None
