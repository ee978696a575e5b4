"""`oomrec attach` across namespaces: from outside of a container, and in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from attach_targets import needs_tracing, rows_with
from conftest import metadata
from requirements import program_skip_reason

pytestmark = [
    needs_tracing,
    pytest.mark.needs_pid_namespace,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount namespace"),
]

# Its own root, with the machine's programs, a /tmp, /proc and /dev/shm of its own; pid 1 is the program.
CONTAINER = """set -e
mount -t tmpfs none "$1" && cd "$1" && mkdir -p usr proc tmp srv dev/shm old
mount --rbind /usr usr
for name in bin sbin lib lib64; do [ ! -e /$name ] || ln -s usr/$name $name; done
cp "$2" srv/program
mount -t proc none proc && mount -t tmpfs none dev/shm
pivot_root . old && umount -l old && cd /srv && exec ./program
"""


@pytest.fixture
def contained(plain, victim, tmp_path):
    """A running program in a container: its process here, and its pid."""
    if not Path("/bin").is_symlink():
        pytest.skip("/usr is not all of the system")
    if reason := program_skip_reason("pivot_root"):
        pytest.skip(reason)
    root = tmp_path / "root"
    root.mkdir()
    unshare = ["unshare", "-fpm", "--kill-child", "--propagation", "private"]
    process = plain.start(
        *unshare, "sh", "-c", CONTAINER, "sh", root, victim("grows_in_steps"), stdin=subprocess.PIPE
    ).once()
    return process, process.child()


def test_from_outside_by_the_outer_pid(oomrec, contained, tmp_path):
    process, pid = contained
    inside = Path(f"/proc/{pid}/root")
    # Its recording and its bundles are its own.
    own = {"OOMREC_SESSION_DIR": None, "OOMREC_DUMP_DIR": None}
    oomrec("attach", "--mode", "exact", pid, env=own, exits=0)
    assert list((inside / "tmp").iterdir()) == [], "the copy of the library is removed"
    process.tell("\n").once()
    rows_with(oomrec, pid, allocate_small=4000)
    dumped = Path(oomrec("dump", pid, env=own).stdout.strip())
    assert dumped.parent == tmp_path / "oom_dumps", "not a directory of the container's"
    assert metadata(dumped)["reason"] == "request"
    assert oomrec("attach", "--detach", pid).exit_code == 0
    written = oomrec.json("attach", "--duration", "0.5", pid, env=own)
    assert Path(written["bundle"]).parent == tmp_path / "oom_dumps"
    assert not (inside / "srv" / "oom_dumps").exists()
    assert process.poll() is None


def test_from_inside_by_the_inner_pid(oomrec, plain, contained, build_dir, library):
    """As `docker exec` does, with a command that was copied into the container."""
    process, pid = contained
    place = Path(f"/proc/{pid}/root/opt")
    place.mkdir()
    for file in (build_dir / "oomrec", library):
        shutil.copy(file, place)
    inside = ["nsenter", "-t", pid, "-m", "-p", "-r", "-w", "/opt/oomrec"]
    own = {"OOMREC_SESSION_DIR": None, "OOMREC_DUMP_DIR": None}
    run = plain(*inside, "attach", "--mode", "exact", "1", env=own)
    assert run.exit_code == 0 and run.stdout.startswith("process 1 is recorded"), str(run)
    process.tell("\n").once()
    rows_with(oomrec, pid, allocate_small=4000)  # from outside, too
    assert "allocate_small" in plain(*inside, "top", "--once", "1", env=own).stdout
    run = plain(*inside, "dump", "1", env=own)
    assert run.stdout.startswith("/srv/oom_dumps/"), str(run)
    assert Path(f"/proc/{pid}/root{run.stdout.strip()}").is_dir()
    assert plain(*inside, "attach", "--detach", "1", env=own).exit_code == 0
    assert process.poll() is None


def test_a_process_that_does_not_see_the_library(oomrec, plain, victim, tmp_path, build_dir):
    """In a mount namespace of its own the library's directory is empty: it gets a copy, which is removed."""
    program = tmp_path / "grows"
    shutil.copy(victim("grows_in_steps"), program)
    script = f'mount -t tmpfs none "{build_dir}" && exec "{program}"'
    possible = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if possible.returncode != 0:
        pytest.skip("no mount namespaces here")
    process = plain.start("unshare", "-m", "sh", "-c", script, stdin=subprocess.PIPE).once()
    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    process.tell("\n").once()
    rows_with(oomrec, process.pid, allocate_small=4000)
    assert not list(Path(f"/proc/{process.pid}/root/tmp").glob(f"liboomrec-{process.pid}-*"))
