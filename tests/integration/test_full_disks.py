"""An unwritable dump directory: the program is unaffected and one line reports it. The bundle goes
beside the recording, and the next one to its usual directory.

The directory is a file system of 8 MiB in the test's mount namespace, which needs root.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from watching import Watch, wait_for

CLONE_NEWNS = 0x20000
SIZE_KIB = 8 << 10
HOLD = "mount --make-rprivate / && mount -t tmpfs -o size=8m tmpfs {0} && mkdir {0}/dumps && echo ready && exec sleep 600"


class Disk:
    """A small file system, visible to processes that enter its mount namespace."""

    def __init__(self, where: Path):
        where.mkdir()
        self.dumps = where / "dumps"
        self._mounted = where
        self._holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", HOLD.format(where)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        if self._holder.stdout.readline() != b"ready\n":
            pytest.skip("no file system can be mounted here")

    def enter(self) -> None:
        """A preexec_fn. In a chroot the namespace's root is outside of it: the root stays what it was."""
        directory = os.getcwd()
        root = os.open(f"/proc/{self._holder.pid}/root", os.O_RDONLY)
        namespace = os.open(f"/proc/{self._holder.pid}/ns/mnt", os.O_RDONLY)
        if ctypes.CDLL(None).setns(namespace, CLONE_NEWNS) != 0:
            os._exit(99)
        os.fchdir(root)
        os.chroot(".")
        os.chdir(directory)
        os.close(namespace)
        os.close(root)

    def inside(self, path: Path) -> Path:
        """The same path from outside of the namespace."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def spoil(self, how: str) -> None:
        dumps = self.inside(self.dumps)
        if how == "full":  # a bundle is begun, but does not fit
            (dumps.parent / "filler").write_bytes(b"x" * ((SIZE_KIB - 96) << 10))
        elif how == "read-only":
            self._remount("ro")
        else:  # no longer a directory
            dumps.rename(dumps.parent / "away")
            dumps.write_text("")

    def repair(self, how: str) -> None:
        dumps = self.inside(self.dumps)
        if how == "full":
            (dumps.parent / "filler").unlink()
        elif how == "read-only":
            self._remount("rw")
        else:
            dumps.unlink()
            (dumps.parent / "away").rename(dumps)

    def bundles(self) -> list[Path]:
        return sorted(path.parent for path in self.inside(self.dumps).glob("oom_*/manifest.json"))

    def strays(self) -> list[Path]:
        """Files that belong to no finished bundle."""
        return [
            path
            for path in self.inside(self.dumps).iterdir()
            if not (path / "manifest.json").exists() and path.name != ".lock"
        ]

    def _remount(self, option: str) -> None:
        inside = ["nsenter", "--target", str(self._holder.pid), "--mount", "--root"]
        command = [*inside, "mount", "-o", f"remount,{option}", str(self._mounted)]
        subprocess.run(command, check=True)

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait()


@pytest.fixture
def disk(tmp_path, oomrec, preload):
    if os.geteuid() != 0:
        pytest.skip("a file system can be mounted by root only")
    disk = Disk(tmp_path / "disk")
    for runner in (oomrec, preload):
        runner.environment["OOMREC_DUMP_DIR"] = str(disk.dumps)
    yield disk
    disk.end()


# --- Writers of bundles: each returns how the program ended, and the messages ----------------------


def near_limit(oomrec, preload, victim, disk):
    limits = {"OOMREC_LIMIT": "100M", "OOMREC_WARN": "90"}
    run = preload(victim("awkward"), "main", "grow", env=limits, preexec_fn=disk.enter)
    return run.exit_code, run.stderr


def crash(oomrec, preload, victim, disk):
    run = preload(victim("crashes"), "null", preexec_fn=disk.enter)
    return run.exit_code, run.stderr


def killed_under_run(oomrec, preload, victim, disk):
    process = oomrec.start(
        "run", "--", victim("grows"), stdin=subprocess.PIPE, preexec_fn=disk.enter
    ).once("ready")
    os.kill(process.child(), signal.SIGKILL)
    run = oomrec.finish(process)
    return run.exit_code, run.stderr


def watched(oomrec, preload, victim, disk):
    watching = Watch(oomrec, preexec_fn=disk.enter)
    process = preload.start(victim("grows"), stdin=subprocess.PIPE, preexec_fn=disk.enter)
    assert process.stdout.readline() == b"ready\n"
    wait_for(lambda: watching.sees(process.pid))
    process.kill()
    run = preload.finish(process)
    with contextlib.suppress(AssertionError):  # it stays if it cannot be written anywhere
        wait_for(lambda: not preload.sessions_left(0), 20)
    return run.exit_code, run.stderr + watching.stop().stderr


WRITERS = {near_limit: 0, crash: 128 + 11, killed_under_run: 128 + 9, watched: 128 + 9}


def complaints(said: str, disk) -> list[str]:
    """The complaints of the process, and of whoever writes for it, but for that of `run` at the start."""
    words = (f"oomrec: {disk.dumps}: ", f"no bundle could be written to {disk.dumps}: ")
    lines = [line for line in said.splitlines() if "bundles will go" not in line]
    return [line for line in lines if any(some in line for some in words)]


@pytest.mark.parametrize("how", ["full", "read-only", "gone"])
@pytest.mark.parametrize("writer, exit_code", WRITERS.items())
def test_a_full_dump_directory(oomrec, preload, victim, disk, writer, exit_code, how):
    disk.spoil(how)
    ended, said = writer(oomrec, preload, victim, disk)
    assert ended == exit_code, said
    assert len(complaints(said, disk)) == 1, said
    beside = list(preload.session_dir.rglob("oom_*/manifest.json"))
    assert len(beside) == 1, said

    disk.repair(how)
    assert disk.bundles() == [] and disk.strays() == []
    ended, said = writer(oomrec, preload, victim, disk)
    assert ended == exit_code and complaints(said, disk) == [], said
    assert len(disk.bundles()) == 1 and disk.strays() == [], said


# --- In the middle of a bundle -------------------------------------------------------------------


def vanishes_under_writer(process: subprocess.Popen, dumps: Path) -> bool:
    """Stops the writer of the bundle, removes the directory, continues the writer. False: too late."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            begun = [path for path in dumps.glob(".oom_*") if path.is_dir()]
            writers = [int(word) for word in children.read_text().split()]
            if not begun or not writers:
                continue
            os.kill(writers[0], signal.SIGSTOP)
            state = Path(f"/proc/{writers[0]}/stat")
            while (
                state.read_text().rpartition(")")[2].split()[0] not in "TZX"
            ):  # it may run on a bit
                time.sleep(0.001)
            in_the_middle = begun[0].exists()
            shutil.rmtree(dumps)
            os.kill(writers[0], signal.SIGCONT)
            return in_the_middle
    return False


def test_a_directory_removed_while_a_bundle_is_written(preload, victim):
    words = [victim("steps"), "hold:24", "wait", f"ask:{1 << 50}", "end:3"]
    for _ in range(50):
        process = preload.start(*words, stdin=subprocess.PIPE)
        assert process.stdout.readline().startswith(b"ready")
        process.tell("go on\n")
        in_the_middle = vanishes_under_writer(process, preload.dump_dir)
        run = preload.finish(process, exits=3)
        if in_the_middle:
            break
    assert in_the_middle, "the writer was never met at his work"
    assert run.stderr.count(f"oomrec: {preload.dump_dir}: No such file or directory") == 1
    (beside,) = preload.session_dir.rglob("oom_*/manifest.json")
    assert not preload.dump_dir.exists()

    preload(*words, input="go on\n")
    assert len(list(preload.dump_dir.glob("oom_*/manifest.json"))) == 1
