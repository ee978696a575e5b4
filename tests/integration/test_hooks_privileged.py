"""A setuid program started by another user runs unrecorded and without a complaint."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def setuid_program(victim):
    """A setuid-root copy that everybody may start."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a program setuid")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        program = Path(directory) / "privileged"
        shutil.copy(victim("privileged"), program)
        os.chown(program, 0, 0)
        program.chmod(0o4755)
        if os.statvfs(directory).f_flag & os.ST_NOSUID:
            pytest.skip(f"{directory} is mounted nosuid")
        yield program


def as_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


@pytest.fixture
def readable_library(library):
    """A copy of the library that another user can read."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield shutil.copy(library, directory)


def run_as_nobody(plain, library, *command):
    env = {"LD_PRELOAD": library, "OOMREC_SESSION_DIR": None, "OOMREC_DUMP_DIR": None}
    return plain(*command, env=env, cwd="/", preexec_fn=as_nobody)


@pytest.mark.parametrize("shell, code", [((), 0), (("/bin/sh", "-c", '"$0"; exit 4'), 4)])
def test_a_setuid_program_starts_unrecorded(plain, readable_library, setuid_program, shell, code):
    """Also from a recorded shell: neither the loader nor the recorder prints anything."""
    run = run_as_nobody(plain, readable_library, *shell, setuid_program)
    if run.stdout.startswith("plain"):
        pytest.skip("setuid has no effect here")
    assert (run.stdout, run.exit_code) == ("privileged, not recorded\n", code), str(run)
    assert run.stderr == "", str(run)
