"""`oomrec attach` to a process that has nearly used up a limit: recorded, or refused with the limit's name.

Whichever it is, the process goes on with the same results, and nothing is left in it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from attach_targets import mapped_hooks, needs_tracing, state_of
from conftest import built, rounds

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
pytestmark = needs_tracing

KIB, MIB = 1024, 1 << 20
WORKED = "wrong 0 errno 77"


def ended_well(plain, process) -> bool:
    ended = plain.finish(process)
    return ended.exit_code == 0 and ended.stdout == "ended\n" and ended.stderr == ""


@pytest.fixture
def troubled(plain, victim):
    """The running victim, which has worked once in its trouble."""

    def start(*words, program=None, **options) -> subprocess.Popen:
        process = plain.start(
            program or victim("in_trouble"), *words, stdin=subprocess.PIPE, **options
        ).once("ready")
        process.tell("x").once(WORKED)
        return process

    return start


def refused(oomrec, plain, process) -> str:
    before = state_of(process.pid)
    run = oomrec("attach", process.pid)
    assert run.exit_code == 2 and len(run.stderr.splitlines()) == 2, str(run)
    assert state_of(process.pid) == before
    assert list(oomrec.session_dir.rglob("*.session")) == []
    process.tell("x").once(WORKED)
    return run.stderr


def recorded(oomrec, process, *words) -> None:
    before = state_of(process.pid)
    oomrec("attach", *words, process.pid, exits=0)
    assert state_of(process.pid) == before
    process.tell("x").once(WORKED)
    assert "[before attaching]" in oomrec("top", "--once", process.pid).stdout
    assert oomrec("dump", process.pid).exit_code == 0
    assert oomrec("attach", "--detach", process.pid).exit_code == 0
    process.tell("x").once(WORKED)


# --- Limits of the process -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit, room, name, raise_it",
    [
        ("address_space", 0, "RLIMIT_AS", "as=unlimited:"),
        ("address_space", 600 * KIB, "RLIMIT_AS", "as=unlimited:"),
        ("address_space", 2 * MIB, "RLIMIT_AS", "as=unlimited:"),
        ("data", 0, "RLIMIT_DATA", "data=unlimited:"),
        ("data", 600 * KIB, "RLIMIT_DATA", "data=unlimited:"),
        ("descriptors", 0, "RLIMIT_NOFILE", "nofile=48:"),
        ("descriptors", 1, "RLIMIT_NOFILE", "nofile=48:"),
        ("file_size", 0, "RLIMIT_FSIZE", "fsize=unlimited:"),
        ("file_size", 100 * KIB, "RLIMIT_FSIZE", "fsize=unlimited:"),
    ],
)
def test_a_limit_that_leaves_no_room(oomrec, plain, troubled, limit, room, name, raise_it):
    """What the message says to do helps."""
    process = troubled(limit, room)
    message = refused(oomrec, plain, process)
    assert name in message and f"prlimit --pid {process.pid} --{raise_it}" in message, message
    remedy = message.rpartition("Raise it: ")[2].split()
    raised = subprocess.run(remedy, capture_output=True, text=True)
    if raised.returncode != 0:
        pytest.skip(raised.stderr)  # no right to raise a limit here
    recorded(oomrec, process)
    assert ended_well(plain, process)


@pytest.mark.parametrize(
    "limit, room",
    [
        ("address_space", 8 * MIB),
        ("address_space", 64 * MIB),
        ("data", 4 * MIB),
        ("descriptors", 2),
        ("file_size", 300 * KIB),
        ("umask", 0),
        ("processes", 0),
    ],
)
def test_a_limit_that_leaves_enough(oomrec, plain, troubled, limit, room):
    process = troubled(limit, room)
    recorded(oomrec, process)
    assert ended_well(plain, process)


@needs_root
@pytest.mark.parametrize("room", [0, 600 * KIB])
def test_locked_memory(oomrec, plain, troubled, room):
    process = troubled("locked", room)
    assert "RLIMIT_MEMLOCK" in refused(oomrec, plain, process)
    assert ended_well(plain, process)


def test_as_many_mappings_as_the_kernel_allows(oomrec, plain, troubled):
    most = int(Path("/proc/sys/vm/max_map_count").read_text())
    if most > 200_000:
        pytest.skip(f"vm.max_map_count is {most}")
    process = troubled("mappings")
    assert f"{most} mappings (vm.max_map_count)" in refused(oomrec, plain, process)
    assert ended_well(plain, process)


def test_a_process_out_of_memory_is_told_from_a_slow_command(oomrec, plain, troubled):
    process = troubled("address_space", 0)
    message = refused(oomrec, plain, process)
    assert "it has no memory for the call" in message and "no processor" not in message


# --- The cgroup ----------------------------------------------------------------------------------


def usage(group) -> int:
    for name in ("memory.current", "memory.usage_in_bytes"):
        if (group.path / name).exists():
            return int((group.path / name).read_text())
    raise AssertionError("no usage")


def set_limit(group, bytes: int) -> None:
    names = ("memory.max", "memory.limit_in_bytes")
    file = next(group.path / name for name in names if (group.path / name).exists())
    file.write_text(str(bytes // 4096 * 4096))


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("room", [64 * KIB, 512 * KIB, 2 * MIB])
def test_a_full_cgroup(oomrec, plain, troubled, cgroup, room):
    """The recorder's first MiB would have the process killed."""
    group = cgroup("1G")
    process = troubled("memory", 40 * MIB, preexec_fn=group.enter)
    set_limit(group, usage(group) + room)
    message = refused(oomrec, plain, process)
    assert "the cgroup of process" in message and str(group.path) in message, message
    assert not mapped_hooks(process.pid)
    assert group.kills() == 0

    set_limit(group, usage(group) + 32 * MIB)
    recorded(oomrec, process)
    assert group.kills() == 0
    assert ended_well(plain, process)


# --- Files that it does not see, or may not read -------------------------------------------------


def copy_of(program: str, directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return Path(shutil.copy(program, directory))


def test_a_deleted_executable(oomrec, plain, troubled, victim, tmp_path):
    process = troubled("deleted", program=copy_of(victim("in_trouble"), tmp_path / "gone"))
    assert os.readlink(f"/proc/{process.pid}/exe").endswith(" (deleted)")
    recorded(oomrec, process)
    recorded(oomrec, process)
    assert ended_well(plain, process)


@pytest.mark.parametrize("replaced", [False, True])
def test_an_updated_c_library(oomrec, plain, troubled, tmp_path, replaced):
    """As after an upgrade: the file that the process has mapped is gone, or another one is there."""
    # Of a new process: in a chroot, ours names its files by the mounts that it had before machine_isolation.
    maps = subprocess.check_output(["cat", "/proc/self/maps"], text=True)
    library = Path(re.search(r"/\S*/libc\.so\.6", maps)[0])
    copy = copy_of(library, tmp_path / "libraries")
    process = troubled("nothing", env={"LD_LIBRARY_PATH": copy.parent})
    copy.unlink()
    if replaced:
        copy.write_bytes(b"not the same")
    assert f"{copy} (deleted)" in Path(f"/proc/{process.pid}/maps").read_text()
    recorded(oomrec, process)
    recorded(oomrec, process)
    assert ended_well(plain, process)


def test_libraries_that_are_mapped_as_data_too(oomrec, plain, troubled):
    """Their functions are not at those addresses."""
    process = troubled("libraries")
    maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    starts = [line for line in maps if "/libc.so.6" in line and " 00000000 " in line]
    assert len(starts) > 1
    recorded(oomrec, process)
    recorded(oomrec, process)
    assert ended_well(plain, process)


def test_an_updated_recorder(oomrec, plain, running, build_dir, library, tmp_path):
    """It ends the recording by the old library, and begins one by the new one."""
    own = copy_of(library, tmp_path / "old")
    process = running("in_trouble", "nothing")
    words = {"env": {"OOMREC_LIBRARY": own}}
    assert oomrec("attach", process.pid, **words).exit_code == 0
    own.unlink()
    shutil.copy(library, own)
    process.tell("x").once(WORKED)
    assert oomrec("attach", "--detach", process.pid, **words).exit_code == 0
    assert oomrec("attach", process.pid, **words).exit_code == 0
    assert oomrec("attach", "--detach", process.pid, **words).exit_code == 0
    process.tell("x").once(WORKED)
    assert ended_well(plain, process)


@needs_root
def test_a_library_that_only_root_may_read(oomrec, plain, troubled, library, tmp_path):
    """A service that has given up root gets a copy, which is removed; its programs get none."""
    own = copy_of(library, tmp_path / "private")
    own.parent.chmod(0o700)
    oomrec.environment["OOMREC_LIBRARY"] = str(own)
    oomrec.environment["OOMREC_SESSION_DIR"] = None  # the test's own is root's
    process = troubled("privileges")
    recorded(oomrec, process)
    assert not list(Path("/tmp").glob(f"liboomrec-{process.pid}-*"))
    assert ended_well(plain, process)


@needs_root
def test_a_root_directory_without_proc(oomrec, plain, troubled, tmp_path):
    """What the message says to do helps, if there is a directory for the library, too."""
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    oomrec.environment["OOMREC_SESSION_DIR"] = None
    oomrec.environment["OOMREC_DUMP_DIR"] = None
    process = troubled("root", root)
    message = refused(oomrec, plain, process)
    assert f"sees no /proc: its root directory is {root} (chroot)" in message, message
    remedy = message.rpartition("Give it one: ")[2]
    if subprocess.run(remedy, shell=True, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        recorded(oomrec, process)
        assert list((root / "tmp").glob("*.so")) == []
        assert ended_well(plain, process)
    finally:
        subprocess.run(["umount", root / "proc"], check=True)


@needs_root
def test_a_full_shared_memory(oomrec, plain, troubled, victim):
    """The recording goes to another directory."""
    script = (
        "mount -t tmpfs -o size=64k none /dev/shm && "
        "{ head -c 128k /dev/zero > /dev/shm/full; } 2> /dev/null; "
        f'exec "{victim("in_trouble")}" nothing'
    )
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    oomrec.environment["OOMREC_SESSION_DIR"] = None
    process = troubled("-m", "sh", "-c", script, program="unshare")
    recorded(oomrec, process)
    assert ended_well(plain, process)


EXECS = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char** words) {
  const int left = atoi(words[1]);
  char next[16];
  for (volatile int i = 0; i < 2000000; ++i) free(malloc(100));
  if (left == 0) return puts("end") < 0;
  sprintf(next, "%d", left - 1);
  execl("/proc/self/exe", words[0], next, NULL);
  return 9;
}
"""


def test_a_program_that_replaces_itself_all_the_time(oomrec, plain, tmp_path):
    """What is said of it is said of a program, not of the moment between two."""
    process = plain.start(built(tmp_path, "execs", EXECS), rounds(60, 1500), stdout=-1)
    said = set()
    while process.poll() is None:
        run = oomrec("attach", process.pid)
        said.add(run.stderr.partition("\n")[0].replace(str(process.pid), "N"))
    assert process.stdout.read() == b"end\n" and process.returncode == 0
    assert "" in said, "it was attached to"
    allowed = ("recorded already", "ended", "no process", "replaces its program")
    assert all(not line or any(word in line for word in allowed) for line in said), said
