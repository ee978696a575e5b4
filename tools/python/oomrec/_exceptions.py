"""Writes of an exception for lack of memory what metadata.json says of it.

There may be no memory left while this runs. So some is kept for it; each text that cannot be made is
left out, and nothing raised here gets to the program, whose own exception is on its way.
"""

from __future__ import annotations

import threading
import traceback
from typing import Any, Callable, Mapping, NamedTuple

from . import _seen
from ._library import PATH_BYTES, path_from
from ._session import at_fork, look
from ._texts import HOSTILE, c_text, cut, json_object
from .classify import classify_oom_exception

MAX_TRACEBACK = 60 << 10  # characters; oomrec.h takes 64 KiB
RESERVE_BYTES = 1 << 20  # more than 128 KiB: given back to the system, and taken from it, at once

# The ends of generators and the ways of asyncio and trio to end a task may have an OOM as context.
_NO_FAILURES = (GeneratorExit, StopIteration, StopAsyncIteration)
_NAMES_OF_NO_FAILURES = ("CancelledError", "Cancelled")

_reserve: bytearray | None = bytearray(RESERVE_BYTES)

# Of each thread: `failures()` when an exception of its was written. What it was refused until then is
# told, and no later exception's.
_told = threading.local()


def _forget_told() -> None:
    """In a forked child refusals are counted anew."""
    global _told
    _told = threading.local()


at_fork(_forget_told)


class Capture(NamedTuple):
    """What whoever catches an exception knows of it, and wants in its bundle.

    Attributes:
        since: `failures()` before what raised it was tried; later refusals may be the exception's
        entered: the moment (`_seen`) before which it cannot have been captured; 0: nobody sees it
            after this, so it need not be known again
        any_thread: the exception may be one that another thread raised first
        context, metadata, objects: as in `capture_oom`
    """

    since: int
    entered: int
    any_thread: bool
    context: str | None
    metadata: Mapping[Any, Any] | None
    objects: bool


def is_end(error: BaseException) -> bool:
    """Whether the exception only ends a generator or a task."""
    return isinstance(error, _NO_FAILURES) or type(error).__name__ in _NAMES_OF_NO_FAILURES


def is_failure(error: BaseException) -> bool:
    """Whether the exception says that memory ran out."""
    if is_end(error):
        return False
    try:
        return classify_oom_exception(error).is_oom
    except HOSTILE:  # the exception's own methods, or no memory to look at it
        return isinstance(error, MemoryError)


def capture(error: BaseException, how: Capture) -> str | None:
    """The path of the bundle of this exception, completed or written now; None: none. Never raises."""
    return write(error, how) if is_failure(error) else None


def write(error: BaseException, how: Capture) -> str | None:
    """`capture` of an exception that somebody else has found to be one. Never raises."""
    global _reserve
    try:
        known = _seen.bundle_of(error, how.entered)
        if known is not None:
            return known
        _reserve = None
        bundle = _write(error, how)
        if bundle is not None and how.entered:
            _seen.remember(error, bundle)
        return bundle
    except HOSTILE:  # for lack of memory: the recorder's own bundle of the refusal stands
        return None
    finally:
        _keep_reserve()


def _keep_reserve() -> None:
    global _reserve
    try:
        if _reserve is None:
            _reserve = bytearray(RESERVE_BYTES)
    except MemoryError:
        pass


def _write(error: BaseException, how: Capture) -> str | None:
    library = look()
    if not library.has("exception"):
        return None
    from . import _functions  # loaded long ago, with the library

    struct = _functions.ExceptionStruct()
    struct.size = _functions.size_of(struct)
    struct.since = max(how.since, getattr(_told, "failure", 0))
    struct.any_thread = how.any_thread
    struct.type = _made(lambda: type(error).__qualname__)
    struct.module = _made(lambda: type(error).__module__)
    struct.message = _made(lambda: cut(str(error)))
    struct.traceback = _made(lambda: cut(_traceback(error), MAX_TRACEBACK))
    struct.context = _made(lambda: how.context)
    struct.metadata_json = json_object(how.metadata)
    struct.backend = _made(lambda: _backend(error, how.metadata))
    if how.objects:
        struct.objects_json = _made(_objects)
    path = _functions.text_buffer(PATH_BYTES)
    written = library.exception(_functions.reference(struct), path, PATH_BYTES)
    _told.failure = library.failures()
    return path_from(path) if written else None


# Words of the frameworks' own exceptions, by the backend that they are of.
_OF_BACKEND = (
    ("rocm", ("HIP ", "HIPBLAS_", "hipError")),
    ("cuda", ("CUDA", "CUBLAS_", "cudaError")),
)


def _backend(error: BaseException, metadata: Mapping[Any, Any] | None) -> str | None:
    """Of a device that the recorder did not see refuse: as a tracker knows it, else as the text says."""
    known = metadata.get("backend") if metadata is not None else None
    if known in ("cuda", "rocm", "cpu"):
        return str(known)
    said = f"{type(error).__module__} {str(error)[:200]}"
    for backend, words in _OF_BACKEND:
        if not isinstance(error, MemoryError) and any(word in said for word in words):
            return backend
    return None


def _objects() -> str | None:
    from ._objects import objects_json

    return objects_json()


def _made(text: Callable[[], str | None]) -> bytes | None:
    try:
        words = text()
        return None if words is None else c_text(words)
    except HOSTILE:
        return None


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
