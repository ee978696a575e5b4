"""Finds liboomrec.so and the oomrec command, and binds the functions of oomrec.h.

A preloaded copy comes first, because only that one sees the allocations. Otherwise the same library is
loaded, and interposes nothing. Without a library the functions do nothing and return 0, so a program that
uses this package also runs without the recorder.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, NoReturn

# The library's path: $OOMREC_LIBRARY, else the one beside this file.
LIBRARY: str = os.environ.get("OOMREC_LIBRARY") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "liboomrec.so"
)

# The version of oomrec.h that this package needs.
API_VERSION = 3

PATH_BYTES = 4096


class Library:
    """The bound functions, named as in oomrec.h without "oomrec_"."""

    __slots__ = (
        "api_version", "is_active", "dump", "set_limit", "set_dumps", "context_push", "context_pop", "mark",
        "usage", "last_bundle", "last_failure", "failures", "failure_bundle", "exception", "dump_with",
        "notify_at", "wait", "wake", "block_of", "stack_text", "start", "missing", "tick", "note_device",
        "watermark_begin", "watermark", "preloaded", "problem",
    )  # fmt: skip

    api_version: Callable[[], int]
    is_active: Callable[[], int]
    dump: Callable[[bytes | None], int]
    set_limit: Callable[[int], None]
    set_dumps: Callable[[bytes | None, int, int], int]
    context_push: Callable[[bytes], None]
    context_pop: Callable[[], None]
    mark: Callable[[bytes], None]
    usage: Callable[[Any], int]
    last_bundle: Callable[[Any, int], int]
    last_failure: Callable[[], int]
    failures: Callable[[], int]
    failure_bundle: Callable[[Any, int], int]
    exception: Callable[[Any, Any, int], int]
    dump_with: Callable[[bytes | None, bytes | None, Any, int], int]
    notify_at: Callable[[int, int], int]
    wait: Callable[[int, int], int]
    wake: Callable[[], object]
    block_of: Callable[[int, Any], int]
    stack_text: Callable[[int, Any, int], int]
    start: Callable[[], int]
    missing: Callable[[], bytes]
    tick: Callable[[], None]
    note_device: Callable[[bytes, int, bytes, int, int, int, int], None]
    watermark_begin: Callable[[], None]
    watermark: Callable[[int], int]
    preloaded: bool  # in the process from its start
    problem: str  # why there is no library, or not the expected version; "" if all is well

    def __init__(self, functions: dict[str, Callable[..., Any]], preloaded: bool, problem: str):
        for name in self.__slots__[: self.__slots__.index("preloaded")]:
            setattr(self, name, functions.get(name, _no_text if name == "missing" else _nothing))
        self.preloaded = preloaded
        self.problem = problem

    def has(self, name: str) -> bool:
        """Whether the library has this function. An older one may lack it; the substitute returns 0."""
        return getattr(self, name) not in (_nothing, _no_text)


def _nothing(*arguments: object) -> int:
    return 0


def _no_text(*arguments: object) -> bytes:
    return b""


_library: Library | None = None


def library() -> Library:
    """This process' library, loaded at the first call. Never fails; see `Library.problem`."""
    global _library
    if _library is None:
        _library = _load()
    return _library


def _load() -> Library:
    try:
        from . import _functions
    except ImportError as error:
        return Library({}, False, f"ctypes cannot be used in this interpreter: {error}")
    # A program that has run out of memory may not be able to make the buffers' type, but a buffer of it.
    _functions.text_buffer(PATH_BYTES)
    if _functions.is_in_process():
        functions = _functions.bind(None)
        return Library(functions, True, _version_problem(functions))
    try:
        functions = _functions.bind(LIBRARY)
        problem = "" if functions else f"{LIBRARY}: it has no function of oomrec.h"
    except OSError as error:
        problem = str(error)
    if problem:
        return Library({}, False, f"{problem}; set OOMREC_LIBRARY to the path of liboomrec.so")
    return Library(functions, False, _version_problem(functions))


def _version_problem(functions: dict[str, Callable[..., Any]]) -> str:
    version = functions["api_version"]()
    if version >= API_VERSION:
        return ""
    return (
        f"the loaded liboomrec.so has version {version} of oomrec.h, this package needs "
        f"{API_VERSION}: use the library that was installed with it, {LIBRARY}"
    )


def path_from(buffer: Any) -> str | None:
    """The path that a C function wrote into a text_buffer()."""
    return os.fsdecode(buffer.value) or None


def preload() -> str | None:
    """LD_PRELOAD for a process to be recorded; None if the loader cannot preload this path.

    The loader ends a name at a blank or colon, and expands "$". `oomrec run` works around this.
    """
    if any(character in LIBRARY for character in " \t\n:$"):
        return None
    others = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return ":".join([LIBRARY, *(each for each in others if not each.endswith("/liboomrec.so"))])


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
