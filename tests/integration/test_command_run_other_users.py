"""`oomrec run` by root of a program that becomes another user's before it executes what is recorded: gosu, su."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from kernel_log import memory_cgroup_of, report_oom_kill
from other_users import KILLED

pytestmark = pytest.mark.needs_program("setpriv")

LARGE = KILLED.replace("1 << 20", "64 << 20")  # worth a bundle
# Says its pid, and waits to be killed.
WAITS = "import os; block = bytes(8 << 20); print(os.getpid(), flush=True); input()"


class Root:
    """Runs programs as root in the victim's directory. Only root may read its kernel log."""

    def __init__(self, users):
        self.users = users
        self.log = users.scratch / "kernel.log"
        self.log.touch(mode=0o600)
        identity = [f"--reuid={users.victim.uid}", f"--regid={users.victim.uid}", "--clear-groups"]
        self.become = ["setpriv", *identity]

    def start(self, *words, **options) -> subprocess.Popen:
        environment = {
            **self.users.environment,
            "OOMREC_KERNEL_LOG": str(self.log),
            "OOMREC_WARN": "0",
        }
        return subprocess.Popen(
            [str(word) for word in (self.users.command, "run", "--", *words)],
            cwd=self.users.victim.home, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    def run(self, *words) -> tuple[int, str]:
        process = self.start(*words)
        _, stderr = process.communicate(timeout=300)
        return process.returncode, stderr


@pytest.fixture
def root(users):
    return Root(users)


def only_bundle(users) -> Path:
    (bundle,) = users.victim.dumps.glob("oom_*")
    assert bundle.stat().st_uid == users.victim.uid
    return bundle


def test_the_recording_is_recovered_as_that_user(users, root):
    code, said = root.run(*root.become, users.python, "-c", LARGE)
    assert code == 128 + signal.SIGKILL
    assert "was killed by SIGKILL" in said and "none was found" not in said
    assert f"bundle {only_bundle(users)}" in said
    assert users.victim.sessions() == []


def test_a_program_without_a_recording_is_said_to_be_that_users(users, root):
    code, said = root.run(*root.become, "env", "-u", "LD_PRELOAD", "sh", "-c", "kill -9 $$")
    assert code == 128 + signal.SIGKILL
    assert "had no LD_PRELOAD" in said or f"was user {users.victim.uid}'s" in said, said
    assert "left no recording" not in said
    assert list(users.victim.dumps.glob("oom_*")) == []


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
def test_a_killed_child_is_proven_by_roots_kernel_log(users, root, cgroup):
    program = " ".join([*root.become, users.python, "-c", f"'{WAITS}'"])
    process = root.start("sh", "-c", f"{program}; exit 3", preexec_fn=cgroup("64M").enter)
    pid = int(process.stdout.readline())
    report_oom_kill(root.log, pid, "python3", memory_cgroup_of(pid))
    os.kill(pid, signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 3
    assert "was killed by the kernel" in said, said
    assert f"bundle {only_bundle(users)}" in said


def test_other_recordings_of_that_user_are_left_alone(users, root):
    users.victim.recorded(KILLED)
    (before,) = users.victim.sessions()
    (before.parent / "garbage.session").write_bytes(b"x" * 10_000)
    code, _ = root.run(*root.become, users.python, "-c", LARGE)
    assert code == 128 + signal.SIGKILL
    assert before in users.victim.sessions()
    assert only_bundle(users)


def test_an_ordinary_end_says_nothing(users, root):
    assert root.run(*root.become, users.python, "-c", "block = bytes(8 << 20)") == (0, "")
    assert users.victim.sessions() == [] and not users.victim.dumps.exists()
