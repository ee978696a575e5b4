"""Finds liboomrec.so, and lists the functions of oomrec.h.

A preloaded copy comes first, because only that one sees the allocations. Otherwise the same library is
loaded, and interposes nothing. Without a library the functions do nothing and return 0, so a program that
uses this package also runs without the recorder.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    # What the words of the list mean for type checkers; for C, see c_api.py.
    from typing import Callable as Quick
    from typing import Callable as Slow

    Int = int
    Int32 = int
    U32 = int
    U64 = int
    Text = bytes
    TextOrNull = bytes | None
    Buffer = Any
    UsageStruct = Any
    ExceptionStruct = Any
    BlockStruct = Any

# The library's path: $OOMREC_LIBRARY, else the one of this package.
LIBRARY: str = os.environ.get("OOMREC_LIBRARY") or os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "liboomrec.so"
)

# The version of oomrec.h that this package needs.
API_VERSION = 3

PATH_BYTES = 4096


class Functions:
    """The functions of oomrec.h without "oomrec_": the one list, which c_api.py binds by its words.

    A call of a slow one may take more than a few microseconds. It releases the GIL, which costs 0.1 µs.
    """

    api_version: Quick[[], Int]
    is_active: Quick[[], Int]
    dump: Slow[[TextOrNull], Int]
    set_limit: Quick[[U64], None]
    set_dumps: Quick[[TextOrNull, U32, U64], Int]
    context_push: Quick[[Text], None]
    context_pop: Quick[[], None]
    mark: Quick[[Text], None]
    usage: Slow[[UsageStruct], Int]
    last_bundle: Quick[[Buffer, U32], U32]
    last_failure: Quick[[], U32]
    failures: Quick[[], U32]
    failure_bundle: Quick[[Buffer, U32], U32]
    exception: Slow[[ExceptionStruct, Buffer, U32], Int]
    dump_with: Slow[[TextOrNull, TextOrNull, Buffer, U32], Int]
    notify_at: Quick[[U32, Int], Int]
    wait: Slow[[U32, U32], U32]
    wake: Quick[[], None]
    block_of: Quick[[U64, BlockStruct], Int]
    stack_text: Quick[[U32, Buffer, U32], U32]
    start: Slow[[], Int]
    missing: Quick[[], Text]
    tick: Slow[[], None]
    note_device: Quick[[Text, Int32, Text, U64, U64, U64, U64], None]
    watermark_begin: Quick[[], None]
    watermark: Quick[[Int], U64]


class Library(Functions):
    """The bound functions; one that the library lacks does nothing and returns 0."""

    preloaded: bool  # in the process from its start
    problem: str  # why there is no library, or not the expected version; "" if all is well

    def __init__(self, functions: dict[str, Callable[..., Any]], preloaded: bool, problem: str):
        for name in Functions.__annotations__:
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


@functools.lru_cache(maxsize=None)
def library() -> Library:
    """This process' library, loaded at the first call. Never fails; see `Library.problem`."""
    try:
        from . import c_api
    except ImportError as error:
        return Library({}, False, f"ctypes cannot be used in this interpreter: {error}")
    # A program that has run out of memory may not be able to make the buffers' type, but a buffer of it.
    c_api.text_buffer(PATH_BYTES)
    if c_api.is_in_process():
        functions = c_api.bind(None)
        return Library(functions, True, _version_problem(functions))
    try:
        functions = c_api.bind(LIBRARY)
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
