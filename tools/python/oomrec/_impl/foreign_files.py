"""Opens files that others wrote or named: only regular ones, without waiting, and reads no more than a bound.

A FIFO would block, a device may act on being opened, and what a path names may change between a check and an
open: so the file is opened first and checked then.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import Any, Iterator

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_in(bundle: str, name: str, most_bytes: int) -> bytes:
    """The contents of a bundle's file, which must lie in the bundle.

    Raises OSError, as for a link, or ValueError with the end of a sentence: "is not a file", "is larger than
    64 MiB".
    """
    descriptor = _descriptor_in(bundle, name)
    size = _size_of(descriptor)
    with open(descriptor, "rb", buffering=0) as file:
        parts = []
        left = most_bytes + 1
        while left and size <= most_bytes:  # it may grow meanwhile
            part = file.read(min(left, max(size, 1) + 1))
            if not part:
                break
            parts.append(part)
            left -= len(part)
        if size > most_bytes or not left:
            raise ValueError(f"is larger than {most_bytes >> 20} MiB")
        return parts[0] if len(parts) == 1 else b"".join(parts)


def open_in(bundle: str, name: str) -> Any:
    """A bundle's file, opened as text. Raises as `read_in` does."""
    descriptor = _descriptor_in(bundle, name)
    _size_of(descriptor)
    return open(descriptor, encoding="utf-8")


@contextmanager
def replaced_in(bundle: str, name: str) -> Iterator[Any]:
    """A new text for a bundle's file: it replaces the old one if the block succeeds, else nothing changes."""
    path = os.path.join(bundle, name)
    partial = os.path.join(bundle, f".{name}.{os.getpid()}.partial")
    with suppress(FileNotFoundError):  # left by an earlier process of the same pid
        os.unlink(partial)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # Only its owner may read it, like all of a bundle.
        with open(os.open(partial, flags, 0o600), "w", encoding="utf-8") as file:
            yield file
        os.rename(partial, path)
    except BaseException:
        with suppress(OSError):  # not created
            os.unlink(partial)
        raise


def _descriptor_in(bundle: str, name: str) -> int:
    return os.open(os.path.join(bundle, name), _FLAGS | os.O_NOFOLLOW)


def _size_of(descriptor: int) -> int:
    """Its size. Closes what is not a regular file, and raises ValueError."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    os.close(descriptor)
    raise ValueError("is not a file")
