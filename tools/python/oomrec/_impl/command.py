"""Finds the command `oomrec`, and runs it."""

from __future__ import annotations

import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Mapping, NoReturn

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def unrecorded_environment() -> dict[str, str]:
    """This process' environment, for a command that must not be recorded."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def command() -> str | None:
    """The path of the command oomrec.

    Searched in this order: $OOMREC_COMMAND, beside python, pip's directory of commands, PATH.
    """
    named = os.environ.get("OOMREC_COMMAND")
    if named:
        return named
    beside = _program_in(os.path.dirname(sys.executable or ""))
    if beside is not None:
        return beside
    import shutil  # imported here: these two take 10 ms
    import sysconfig

    return _program_in(sysconfig.get_path("scripts") or "") or shutil.which("oomrec")


def _program_in(directory: str) -> str | None:
    path = os.path.join(directory, "oomrec")
    return path if directory and os.access(path, os.X_OK) and not os.path.isdir(path) else None


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


def exec_command(arguments: list[str]) -> NoReturn:
    """Replaces this process by the command oomrec; exits with 127 if there is none.

    Where the command needs Python (`run train.py`, drawing), it uses this interpreter.
    """
    if sys.executable:
        os.environ["OOMREC_PYTHON"] = sys.executable
    path = command()
    if path is None:
        print(
            "oomrec: the command oomrec is not beside python and not in the PATH\n"
            "  Install the package again (pip install oomrec), or set OOMREC_COMMAND to its path.",
            file=sys.stderr,
        )
        sys.exit(127)
    try:
        os.execv(path, [path, *arguments])
    except OSError as error:
        print(f"oomrec: {path}: {error.strerror}", file=sys.stderr)
        sys.exit(126)


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
