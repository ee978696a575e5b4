"""Writes a bundle on request, and finds the newest ones."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .library import PATH_BYTES, path_from
from .recorder import RECORDER
from .texts import c_text, json_object


def dump(reason: str | None = None, metadata: Mapping[Any, Any] | None = None) -> str | None:
    """Writes a bundle now.

    Args:
        reason: a few words, stored as `context` in its metadata.json
        metadata: stored under `custom_metadata`, as in `capture_oom`

    Returns:
        the bundle's absolute path; None if no bundle was written, because nothing is recorded (see
        `is_active`) or the disk is full (reported on stderr)

    Takes milliseconds, at most a few seconds. Never raises.
    """
    RECORDER.refresh()
    if not RECORDER.library.has("dump_with"):
        return None
    words = None if reason is None else c_text(reason)
    return _path_by(RECORDER.dump_with, words, json_object(metadata))


def last_bundle() -> str | None:
    """The absolute path of this process' newest bundle, whoever requested it; None if there is none yet."""
    return _path_by(RECORDER.last_bundle)


def failure_bundle() -> str | None:
    """The bundle of this thread's latest failure, or of an earlier one of the same kind; None if there is none."""
    return _path_by(RECORDER.failure_bundle)


def _path_by(function: Callable[..., int], *arguments: bytes | None) -> str | None:
    """The path that a function of oomrec.h writes into its last parameter; None if it has none."""
    if not RECORDER.library.has("last_bundle"):  # no library, or an older one
        return None
    from . import c_api

    path = c_api.text_buffer(PATH_BYTES)
    return path_from(path) if function(*arguments, path, PATH_BYTES) else None
