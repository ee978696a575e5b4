"""Two accounts that exist for one test: the user whose programs are recorded, and an attacker."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
NAMES = ["", *(f".{number}" for number in range(1, 10))]  # of a user's directory of recordings

# Holds a MiB and is killed.
KILLED = "import os; block = bytes(1 << 20); os.kill(os.getpid(), 9)"


class Account:
    """Runs programs as a numeric user, in a directory of its own."""

    def __init__(self, users: Users, uid: int):
        self.users, self.uid = users, uid
        self.home = users.scratch / str(uid)
        self.home.mkdir()
        os.chown(self.home, uid, uid)
        self.home.chmod(0o755)
        self.dumps = self.home / "oom_dumps"

    def become(self) -> None:
        os.setgroups([])
        os.setresgid(self.uid, self.uid, self.uid)
        os.setresuid(self.uid, self.uid, self.uid)

    def __call__(self, *words, env=None, input=None, before=None) -> subprocess.CompletedProcess:
        def enter():
            self.become()
            os.umask(0)  # no file may depend on it
            if before is not None:
                before()

        environment = {**self.users.environment, "HOME": str(self.home), **(env or {})}
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.home,
            env=environment,
            input=input,
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=enter,
        )

    def python(self, script: str, *words, env=None) -> subprocess.CompletedProcess:
        """A script that is not recorded."""
        run = self(self.users.python, "-c", script, *words, env={"LD_PRELOAD": "", **(env or {})})
        assert run.returncode == 0, run.stderr
        return run

    def recorded(self, script: str, *words, env=None, before=None) -> subprocess.CompletedProcess:
        preload = {"LD_PRELOAD": str(self.users.library), **(env or {})}
        return self(self.users.python, "-c", script, *words, env=preload, before=before)

    def oomrec(self, *words, env=None) -> subprocess.CompletedProcess:
        return self(self.users.command, *words, env=env)

    def name_in(self, base: Path, suffix: str = "") -> Path:
        """The directory of recordings that this user would have there."""
        return base / f"oomrec-{self.uid}{suffix}"

    def sessions(self) -> list[Path]:
        bases = (MEMORY, self.users.temporary, self.users.scratch)
        return [
            session
            for base in bases
            for directory in base.glob(f"oomrec-{self.uid}*")
            for session in directory.glob("*.session")
        ]


class Users:
    def __init__(self, scratch: Path, build_dir: Path, library: Path):
        self.scratch = scratch
        scratch.chmod(0o755)
        self.temporary = scratch / "tmp"
        self.temporary.mkdir()
        self.temporary.chmod(0o1777)
        self.command = Path(shutil.copy(build_dir / "oomrec", scratch))
        self.library = Path(shutil.copy(library, scratch))
        self.python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.temporary),
            "OOMREC_LIBRARY": str(self.library),
        }
        # Numbers that no account of this machine has, and no other test at the same time.
        first = 200_000_000 + 2 * os.getpid()
        self.victim = Account(self, first)
        self.attacker = Account(self, first + 1)

    def remove_recordings(self) -> None:
        for account in (self.victim, self.attacker):
            for left in MEMORY.glob(f"oomrec-{account.uid}*"):
                left.unlink() if left.is_symlink() or not left.is_dir() else shutil.rmtree(left)


@contextlib.contextmanager
def two_accounts(build_dir: Path, library: Path):
    """A Users for the duration of a test. Skips it where there can be no other users."""
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    with tempfile.TemporaryDirectory(prefix="oomrec-users-") as directory:
        users = Users(Path(directory), build_dir, library)
        try:
            users.victim.python("")
        except (subprocess.SubprocessError, PermissionError):
            pytest.skip("other users are not mapped in this user namespace")
        yield users
        users.remove_recordings()
