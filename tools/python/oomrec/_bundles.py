"""Bundles that the program asks for, and the newest one."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ._library import PATH_BYTES, path_from
from ._session import look, recorder
from ._texts import c_text, json_object


def dump(reason: str | None = None, metadata: Mapping[Any, Any] | None = None) -> str | None:
    """Writes a bundle now.

    Args:
        reason: a few words, `context` in its metadata.json
        metadata: stored under `custom_metadata`, as in `capture_oom`

    Returns:
        the bundle's absolute path; None if none was written: nothing is recorded (see `is_active`), or the
        disk is full, which is reported on stderr

    Takes milliseconds, at most a few seconds. Never raises.
    """
    library = look()
    if not library.has("dump_with"):
        return None
    from . import _functions

    words = None if reason is None else c_text(reason)
    path = _functions.text_buffer(PATH_BYTES)
    written = library.dump_with(words, json_object(metadata), path, PATH_BYTES)
    return path_from(path) if written else None


def last_bundle() -> str | None:
    """The absolute path of this process' newest bundle, whatever wrote it; None if there is none yet."""
    return _path_by(recorder().last_bundle)


def failure_bundle() -> str | None:
    """The bundle that tells of this thread's latest refusal, or of an earlier one of its kind; None: none."""
    return _path_by(recorder().failure_bundle)


def _path_by(find: Callable[[Any, int], int]) -> str | None:
    if not recorder().has("last_bundle"):  # there is no library: it finds nothing
        return None
    from . import _functions

    path = _functions.text_buffer(PATH_BYTES)
    return path_from(path) if find(path, PATH_BYTES) else None
