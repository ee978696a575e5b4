"""Isolates a test worker and its children from machine-wide state that other tests change.

Some verdicts depend on recordings in /dev/shm, memory pressure and the kernel's count of OOM kills.
In a mount namespace each worker gets private directories of recordings, and fake counters: no
pressure, no kills.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

CLONE_NEWNS = 0x20000
MNT_DETACH = 2
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 0x20, 0x1000, 0x4000, 1 << 18
CALM = "".join(f"{who} avg10=0.00 avg60=0.00 avg300=0.00 total=0\n" for who in ("some", "full"))

libc = ctypes.CDLL(None, use_errno=True)


def mount(
    source: str | Path, target: str | Path, kind: str = "none", flags: int = 0, data: str = ""
) -> None:
    words = [os.fsencode(word) for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"{target} cannot be mounted")


def make_mounts_private() -> None:
    """Keeps later mounts in this namespace. The root of a chroot need not be a mount: then, each mount below it."""
    try:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
    except OSError:
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for point in dict.fromkeys(points):
            mount("none", point.encode().decode("unicode_escape"), flags=MS_PRIVATE)


def put_over(file: Path, text: str) -> None:
    """Replaces the file's contents with `text`, read-only."""
    with tempfile.NamedTemporaryFile("w") as stand_in:  # the mount keeps the file
        stand_in.write(text)
        stand_in.flush()
        mount(stand_in.name, file, flags=MS_BIND)
        mount("none", file, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)


def pressure_files() -> list[Path]:
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    groups = [Path(f"/sys/fs/cgroup{path}") for _, controllers, path in own if not controllers]
    files = [Path("/proc/pressure/memory"), *(group / "memory.pressure" for group in groups)]
    return [file for file in files if file.exists()]


def recordings() -> list[Path]:
    """The directories of this user's recordings: the default one, and the one for a full /dev/shm."""
    return [Path(f"{base}/oomrec-{os.geteuid()}") for base in ("/dev/shm", "/tmp")]


def forget_recordings() -> None:
    """Of programs of an earlier test, so that the next one does not find them; only in private directories."""
    for directory in recordings():
        if directory.is_mount():
            for file in directory.iterdir():
                file.unlink()


def enter() -> bool:
    """Isolates this process. False, without any change, unless it is root."""
    if libc.unshare(CLONE_NEWNS) != 0:
        return False
    try:
        make_mounts_private()
        for directory in recordings():
            directory.mkdir(mode=0o700, exist_ok=True)
            mount("tmpfs", directory, "tmpfs", data="mode=700")
        for file in pressure_files():
            put_over(file, CALM)
        vmstat = Path("/proc/vmstat")
        put_over(vmstat, vmstat.read_text())
    except OSError:
        return False
    return True


def enter_alone(pressure: Path) -> bool:
    """In a new process: its machine's memory pressure is what the file says. For a preexec_fn."""
    if libc.unshare(CLONE_NEWNS) != 0:
        return False
    try:
        make_mounts_private()
        libc.umount2(b"/proc/pressure/memory", MNT_DETACH)  # of enter(): its file has no name
        mount(pressure, "/proc/pressure/memory", flags=MS_BIND)
    except OSError:
        return False
    return True


def enter_small_dev_shm() -> None:
    """A preexec_fn: the program gets a /dev/shm of 64 MiB."""
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "no mount namespace")
    make_mounts_private()
    mount("tmpfs", "/dev/shm", "tmpfs", data="size=64m")


@functools.lru_cache(maxsize=None)
def may_mount() -> bool:
    """Whether a program can get a /dev/shm of its own."""
    try:
        subprocess.run(["true"], preexec_fn=enter_small_dev_shm, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def directory_in_memory() -> str:
    """A new directory, visible to this process and its children. It is removed at exit."""
    directory = tempfile.mkdtemp(prefix="oomrec-tests-")
    mount("tmpfs", directory, "tmpfs")

    def remove() -> None:
        libc.umount2(os.fsencode(directory), MNT_DETACH)
        os.rmdir(directory)

    atexit.register(remove)
    return directory
