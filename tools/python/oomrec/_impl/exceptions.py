"""Writes an exception for lack of memory into a bundle's metadata.json.

There may be no memory left while this runs. So the module keeps a reserve and frees it first, and omits each
text that it cannot build. It raises nothing: the program's own exception is propagating.
"""

from __future__ import annotations

import traceback
from typing import Any, Callable, Mapping, NamedTuple

from ..classify import classify_oom_exception
from . import captured
from .library import PATH_BYTES, path_from
from .recorder import RECORDER
from .texts import HOSTILE, c_text, cut, json_object

MAX_TRACEBACK = 60 << 10  # characters; oomrec.h takes 64 KiB
# Above malloc's mmap threshold of 128 KiB, so freeing it returns it to the system.
RESERVE_BYTES = 1 << 20

# These end a generator or, in asyncio and trio, a task. They are no failures, even with an OOM as context.
_END_TYPES = (GeneratorExit, StopIteration, StopAsyncIteration)
_END_NAMES = ("CancelledError", "Cancelled")


class _Reserve:
    """Memory that is there until a failure needs it."""

    def __init__(self) -> None:
        self._bytes: bytearray | None = bytearray(RESERVE_BYTES)

    def free(self) -> None:
        self._bytes = None

    def refill(self) -> None:
        try:
            if self._bytes is None:
                self._bytes = bytearray(RESERVE_BYTES)
        except MemoryError:
            pass


_reserve = _Reserve()


class Capture(NamedTuple):
    """The circumstances in which an exception was caught, and the caller's additions to its bundle.

    Attributes:
        since: `failures()` before the block began; the exception may be due to any later failure
        entered: the moment (`captured`) at which the block was entered, so that captures before it do not
            count; 0: no outer capture follows, so this one need not be remembered
        any_thread: the failure may be another thread's, which passed the exception on
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
    return isinstance(error, _END_TYPES) or type(error).__name__ in _END_NAMES


def is_failure(error: BaseException) -> bool:
    """Whether the exception says that memory ran out."""
    if is_end(error):
        return False
    try:
        return classify_oom_exception(error).is_oom
    except HOSTILE:  # raised by the exception's own methods, or no memory to classify it
        return isinstance(error, MemoryError)


def capture(error: BaseException, how: Capture) -> str | None:
    """Writes or completes the exception's bundle, and returns its path; None if there is none. Never raises."""
    return write(error, how) if is_failure(error) else None


def write(error: BaseException, how: Capture) -> str | None:
    """Like `capture`, for an exception that the caller has classified already. Never raises."""
    try:
        existing = captured.bundle_of(error, how.entered)
        if existing is not None:
            return existing
        _reserve.free()
        bundle = _write(error, how)
        if bundle is not None and how.entered:
            captured.add(error, bundle)
        return bundle
    except HOSTILE:  # for lack of memory: the bundle that the recorder wrote at the failure remains
        return None
    finally:
        _reserve.refill()


def _write(error: BaseException, how: Capture) -> str | None:
    RECORDER.refresh()
    if not RECORDER.library.has("exception"):
        return None
    from . import c_api  # already loaded, with the library

    # First what cannot be left out, then the texts.
    path = c_api.text_buffer(PATH_BYTES)
    struct = c_api.ExceptionStruct()
    struct.size = c_api.size_of(struct)
    struct.since = max(how.since, getattr(RECORDER.written, "failure", 0))
    struct.any_thread = how.any_thread
    struct.type = _text_or_none(lambda: type(error).__qualname__)
    struct.module = _text_or_none(lambda: type(error).__module__)
    struct.message = _text_or_none(lambda: cut(str(error)))
    struct.traceback = _text_or_none(lambda: cut(_traceback(error), MAX_TRACEBACK))
    struct.context = _text_or_none(lambda: how.context)
    struct.metadata_json = json_object(how.metadata)
    struct.backend = _text_or_none(lambda: _backend(error, how.metadata))
    if how.objects:
        struct.objects_json = _text_or_none(_objects)
    written = RECORDER.exception(c_api.reference(struct), path, PATH_BYTES)
    RECORDER.written.failure = RECORDER.failures()
    return path_from(path) if written else None


# Words in the frameworks' exceptions that identify the backend.
_BACKEND_WORDS = (
    ("rocm", ("HIP ", "HIPBLAS_", "hipError")),
    ("cuda", ("CUDA", "CUBLAS_", "cudaError")),
)


def _backend(error: BaseException, metadata: Mapping[Any, Any] | None) -> str | None:
    """The device's backend, if the recorder saw no failure of a driver: a tracker's, else by the text."""
    given = metadata.get("backend") if metadata is not None else None
    if given in ("cuda", "rocm", "cpu"):
        return str(given)
    text = f"{type(error).__module__} {str(error)[:200]}"
    for backend, words in _BACKEND_WORDS:
        if not isinstance(error, MemoryError) and any(word in text for word in words):
            return backend
    return None


def _objects() -> str | None:
    from .objects import objects_json

    return objects_json()


def _text_or_none(make: Callable[[], str | None]) -> bytes | None:
    """The text for C; None if there is none, or it cannot be built for lack of memory."""
    try:
        text = make()
        return None if text is None else c_text(text)
    except HOSTILE:
        return None


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
