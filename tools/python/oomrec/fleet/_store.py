"""Where the rows are: a directory, or a bucket with the S3 interface.

Paths are relative to the URL, with "/". Both kinds of stores replace a file as a whole, so nobody reads half of one.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Iterable, Iterator, Protocol
from urllib.parse import urlsplit

from ._errors import FleetError

LOCK = "deaths/compacting"
IS_LOCKED = "is being compacted by another process"
LOCK_EXPIRES_S = 900.0  # of a bucket: a killed process cannot release it
READERS = 16  # at once: reading a small object waits for the network
MOST_OBJECT_BYTES = 256 << 20
REFUSALS = "ACCESS_DENIED SIGNATURE_DOES_NOT_MATCH INVALID_ACCESS_KEY_ID 403 redentials".split()
KEYS = "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, unless it is Amazon's, AWS_ENDPOINT_URL."


class Store(Protocol):
    url: str
    filesystem: Any  # pyarrow's; None for the local one

    def location(self, name: str) -> str:
        """The path or key of a file in that file system."""

    def names(self, prefix: str) -> list[str]:
        """All files below a folder, sorted; none if there is no such folder."""

    def streams(self, names: Iterable[str]) -> Iterator[tuple[str, BinaryIO | None]]:
        """Each file, open; None if it cannot be read. Those that have vanished are left out."""

    def put(self, local: str, name: str) -> None:
        """Copies a local file into the store."""

    def write(self, name: str, data: bytes) -> None: ...

    def remove(self, names: Iterable[str]) -> None: ...

    def age_s(self, name: str) -> float: ...

    def lock(self) -> contextlib.AbstractContextManager[object]:
        """Held while the table is compacted.

        Raises:
            FleetError: another process holds it
        """


def open_store(url: str) -> Store:
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return BucketStore(url, f"{parts.netloc}{parts.path}".rstrip("/"))
    path = parts.path if parts.scheme == "file" else url
    if "://" in path:
        why = f"{url}: this kind of store is unknown"
        raise FleetError(why, "Give a directory or s3://BUCKET/PREFIX.")
    return DirectoryStore(path)


class DirectoryStore:
    def __init__(self, path: str) -> None:
        self.url = path
        self.filesystem = None
        self.path = os.path.abspath(path)
        if not os.path.exists(self.path):
            advice = "Give a directory of bundles or rows, or s3://BUCKET/PREFIX."
            raise FleetError(f"{path} does not exist", advice)

    def location(self, name: str) -> str:
        return os.path.join(self.path, name)

    def names(self, prefix: str) -> list[str]:
        found = []
        for folder, _, files in os.walk(self.location(prefix)):
            below = os.path.relpath(folder, self.path)
            found += [f"{below}/{each}" for each in files if not each.startswith(".")]
        return sorted(found)

    def streams(self, names: Iterable[str]) -> Iterator[tuple[str, BinaryIO | None]]:
        # Rows are other people's files: a link could lead to a secret, and a named pipe would block.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        for name in names:
            try:
                stream = open(os.open(self.location(name), flags), "rb")  # noqa: SIM115 closed below
            except FileNotFoundError:
                continue
            except OSError:
                yield name, None
                continue
            with stream:
                yield name, stream if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else None

    def put(self, local: str, name: str) -> None:
        target = self.location(name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(local, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(local, target)

    def write(self, name: str, data: bytes) -> None:
        target = self.location(name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        partial = os.path.join(os.path.dirname(target), f".{os.getpid()}.partial")
        with open(partial, "wb") as stream:
            stream.write(data)
        os.replace(partial, target)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.location(name))

    def age_s(self, name: str) -> float:
        return time.time() - os.stat(self.location(name)).st_mtime

    @contextlib.contextmanager
    def lock(self) -> Iterator[object]:
        os.makedirs(self.location("deaths"), exist_ok=True)
        with open(self.location(LOCK), "a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FleetError(f"{self.url} {IS_LOCKED}", exit_code=1) from None
            yield held


class BucketStore:
    def __init__(self, url: str, root: str) -> None:
        from pyarrow import fs

        self.url = url
        self.root = root
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        # Each removal looks after the folder, too: at SeaweedFS 16 at once take 13 times as long as 1. Amazon's are far away.
        self._removers = 2 if endpoint else READERS
        named: dict[str, Any] = {}
        if endpoint:
            parts = urlsplit(endpoint)
            named = {"endpoint_override": parts.netloc, "scheme": parts.scheme}
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if region or endpoint:
            named["region"] = region or "us-east-1"
        with self._explained():
            # Delayed: what is small needs one request instead of three.
            self.filesystem = fs.S3FileSystem(
                connect_timeout=5, request_timeout=60, allow_delayed_open=True, **named
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = str(error)
            if any(word in reason for word in REFUSALS):
                raise FleetError(f"{self.url}: the store refuses this key", KEYS) from error
            raise FleetError(f"{self.url}: {reason.splitlines()[0][:300]}", KEYS) from error

    def location(self, name: str) -> str:
        return f"{self.root}/{name}"

    def names(self, prefix: str) -> list[str]:
        from pyarrow import fs

        with self._explained():
            found = self.filesystem.get_file_info(
                fs.FileSelector(self.location(prefix), recursive=True, allow_not_found=True)
            )
        start = len(self.root) + 1
        return sorted(each.path[start:] for each in found if each.type == fs.FileType.File)

    def _read(self, name: str) -> tuple[str, bytes | None]:
        try:
            with self.filesystem.open_input_stream(self.location(name)) as stream:
                return name, stream.read(MOST_OBJECT_BYTES)
        except FileNotFoundError:
            return name, None

    def streams(self, names: Iterable[str]) -> Iterator[tuple[str, BinaryIO | None]]:
        listed = list(names)
        with ThreadPoolExecutor(READERS) as pool, self._explained():
            for at in range(0, len(listed), 64 * READERS):  # bounds what is read before it is used
                for name, data in pool.map(self._read, listed[at : at + 64 * READERS]):
                    if data is not None:
                        yield name, io.BytesIO(data)

    def _output(self, name: str) -> Any:
        return self.filesystem.open_output_stream(self.location(name))

    def put(self, local: str, name: str) -> None:
        with self._explained(), open(local, "rb") as source, self._output(name) as target:
            shutil.copyfileobj(source, target, 8 << 20)
        os.unlink(local)

    def write(self, name: str, data: bytes) -> None:
        with self._explained(), self._output(name) as target:
            target.write(data)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.location(name))

    def remove(self, names: Iterable[str]) -> None:
        with ThreadPoolExecutor(self._removers) as pool, self._explained():
            list(pool.map(self._remove, names))

    def age_s(self, name: str) -> float:
        with self._explained():
            info = self.filesystem.get_file_info(self.location(name))
        return time.time() - float(info.mtime_ns or 0) / 1e9

    @contextlib.contextmanager
    def lock(self) -> Iterator[object]:
        """An object with the owner's name. Two owners within the same moment are told apart by reading it back."""
        owner = f"{socket.gethostname()} {os.getpid()} {time.time_ns()}".encode()
        if self._read(LOCK)[1] is not None and self.age_s(LOCK) < LOCK_EXPIRES_S:
            expires = f"expires {LOCK_EXPIRES_S / 60:.0f} minutes after its start"
            advice = f"If that process is dead: its lock {LOCK} {expires}."
            raise FleetError(f"{self.url} {IS_LOCKED}", advice, exit_code=1)
        self.write(LOCK, owner)
        if self._read(LOCK)[1] != owner:
            raise FleetError(f"{self.url} {IS_LOCKED}", exit_code=1)
        try:
            yield owner
        finally:
            self._remove(LOCK)
