"""Unusual conditions: one line says what happened and what to do, and the program runs on unchanged."""

import os
import resource
import socket
import subprocess

import pytest
from conftest import built, written

MIB = 1 << 20
LIVES_ON = "begun\nchildren: none, signals: 0\nexit handlers ran\n"


def limited(kind: int, value: int, closed: tuple[int, ...] = ()):
    """To run before the program starts."""

    def set_limit():
        for descriptor in closed:
            os.close(descriptor)
        resource.setrlimit(kind, (value, value))

    return set_limit


def run_limited(preload, victim, set_limit, **env):
    run = preload(victim("three_failures"), preexec_fn=set_limit, env=env)
    assert (run.exit_code, run.stdout) == (0, LIVES_ON), str(run)
    return run


def lines_with(run, words: str) -> list[str]:
    return [line for line in run.stderr.splitlines() if words in line]


@pytest.mark.parametrize("descriptors", range(1, 12))
@pytest.mark.parametrize("closed", [(), (0,)])
def test_few_descriptors(preload, victim, descriptors, closed):
    """The kernel calls some of these an invalid argument."""
    free = descriptors - 3 + len(closed)
    if free < 1:
        pytest.skip("the loader itself cannot open libc")
    run = run_limited(preload, victim, limited(resource.RLIMIT_NOFILE, descriptors, closed))
    assert "Invalid argument" not in run.stderr
    if run.bundles():
        assert "Too many open files" not in run.stderr, str(run)
    else:
        told = lines_with(run, "no bundle could be written")
        assert told and all(
            line.endswith("Too many open files; no bundle could be written; raise the number of open files (ulimit -n)")
            for line in told
        ), str(run)  # fmt: skip


def test_a_recording_in_private_memory_is_reported(preload, victim, tmp_path):
    """Nowhere can a file be made, and nobody named a directory."""
    set_limit = limited(resource.RLIMIT_FSIZE, 4096)
    run = run_limited(preload, victim, set_limit, OOMREC_SESSION_DIR=None)
    assert lines_with(run, "private memory") == [
        f"oomrec: /dev/shm/oomrec-{os.getuid()}: File too large; the recording is private memory, and is "
        "lost in a kill; raise the limit of file sizes (ulimit -f)"
    ]
    quiet = run_limited(preload, victim, set_limit, OOMREC_SESSION_DIR=None, OOMREC_QUIET="1")
    assert quiet.stderr == ""


@pytest.mark.parametrize(
    "name, instead",
    [("OOMREC_DUMP_DIR", "the bundle went to"), ("OOMREC_SESSION_DIR", "the recording is in")],
)
def test_a_file_in_place_of_a_directory(preload, victim, tmp_path, name, instead):
    file = written(tmp_path / "file", "")
    (line,) = lines_with(run_limited(preload, victim, None, **{name: file}), "Not a directory")
    assert line.startswith(f"oomrec: {file}: Not a directory; {instead} ")


@pytest.mark.parametrize("locale", ["C", "POSIX", "xx_XX.UTF-8", ""])
def test_a_locale_changes_no_message(preload, victim, locale):
    run = run_limited(preload, victim, None, LC_ALL=locale, LANG=locale)
    assert len(lines_with(run, "oomrec: bundle ")) == 1


PROBES = """\
for size in (1 << 62, 1 << 55, 1 << 48):
    for _ in range(50):
        try: bytearray(size)
        except MemoryError: pass
        try: [None] * (size // 8)
        except MemoryError: pass
"""


def test_requests_that_no_machine_could_serve_get_one_line(oomrec, preload, python):
    """Test suites make hundreds of them."""
    run = preload(python(), "-c", "kept = b'x' * (200 << 20)\n" + PROBES + "print('lives on')")
    assert (run.exit_code, run.stdout) == (0, "lives on\n")
    bundle = run.only_bundle()
    assert run.stderr == (
        "oomrec: python asked malloc for 4.0 EiB and was refused: no address space is that large;"
        f" bundle oom_dumps/{bundle.name}\n"
    )
    shown = oomrec.json("show", bundle)
    assert (shown["verdict"]["code"], shown["outcome"]) == ("request_too_large", "recovered")


@pytest.mark.parametrize("size", ["1 << 62", "100 << 40"])
def test_such_a_request_that_ends_the_program_is_its_end(oomrec, preload, python, size):
    run = preload(python(), "-c", f"kept = b'x' * (200 << 20)\nbytearray({size})", exits=1)
    assert len(lines_with(run, "oomrec: bundle " if "40" in size else "; bundle ")) == 1
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["verdict"]["code"], shown["outcome"]) == ("request_too_large", "exited 1")


@pytest.mark.parametrize("mib", [16, 40, 60, 80])
def test_a_small_address_space(preload, victim, mib):
    run = run_limited(preload, victim, limited(resource.RLIMIT_AS, mib * MIB))
    assert lines_with(run, f"address space limit (RLIMIT_AS) of {mib}.0 MiB")


@pytest.mark.parametrize("size", [0, 100, 8 * MIB])
def test_the_recording_of_a_process_that_died_at_once(oomrec, size):
    """It made the file, and was killed before it wrote anything."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    directory = oomrec.session_dir / f"oomrec-{os.geteuid()}"
    directory.mkdir(mode=0o700)
    path = directory / f"{socket.gethostname()}-{dead.pid}-1-0badcafe.session"
    path.write_bytes(bytes(size))
    run = oomrec("show", path)
    assert run.exit_code != 0 and run.stderr == (
        f"oomrec show: {path} holds no data: its process died in its first moments\n"
        "  Nothing was recorded. `oomrec recover` removes it.\n"
    )
    os.utime(path, (1, 1))
    oomrec("recover")
    assert not path.exists()


def test_another_file_is_no_recording_of_a_process_that_died(oomrec, tmp_path):
    for name, content in (
        ("zeros", bytes(8 * MIB)),
        ("text.session", b"import numpy as np" * 9999),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        run = oomrec("show", path)
        assert "is not an oomrec recording" in run.stderr and run.exit_code != 0, str(run)


@pytest.fixture
def without(victim):
    """without(MOUNTS, COMMAND): in a mount namespace in which MOUNTS have been run."""

    def run(oomrec, mounts: str, command: str, **env):
        script = f"mount --make-rprivate / && {mounts} && exec {command}"
        return oomrec.__class__(oomrec.directory, [], oomrec.environment)(
            "unshare", "-m", "sh", "-c", script, env=env
        )

    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no mount namespaces")
    return run


def test_without_proc(oomrec, victim, without):
    program = victim("three_failures")
    hidden = "mount -t tmpfs none /proc"
    run = without(oomrec, hidden, f"{oomrec('--version').args[0]} run -- {program}")
    assert run.exit_code == 125 and run.stderr == (
        "oomrec run: oomrec cannot find its own directory: /proc/self/exe cannot be read\n"
        "  Mount /proc, or set OOMREC_LIBRARY to the path of liboomrec.so.\n"
    )


@pytest.mark.parametrize(
    "mounts",
    [
        "mount -t tmpfs none /proc",
        "mount -t tmpfs -o ro none /dev/shm",
        "mount -t tmpfs -o size=64k none /dev/shm",
    ],
)
def test_a_program_in_an_odd_file_system_runs_unchanged(preload, victim, without, mounts):
    library = preload.environment["LD_PRELOAD"]
    program = f"env LD_PRELOAD={library} {victim('three_failures')}"
    run = without(preload, mounts, program, LD_PRELOAD=None, OOMREC_SESSION_DIR=None)
    assert (run.exit_code, run.stdout) == (0, LIVES_ON), str(run)
    assert len(run.bundles()) == 1
    assert len(run.stderr.splitlines()) <= 3  # the failure, and where the bundle is


NAMELESS = """
#include <stdlib.h>
#include <stdio.h>
static volatile size_t bytes = (size_t)1 << 60;
int main(void) { void* volatile block = malloc(bytes); return puts(block ? "served" : "refused") < 0; }
"""


def test_a_program_that_exports_no_function_but_the_c_librarys(preload, tmp_path):
    """As Ruby's and Tcl's: `_start`, where every stack begins, is not what asked."""
    program = built(tmp_path, "nameless", NAMELESS, "-fvisibility=hidden", "-rdynamic", "-s")
    listed = subprocess.run(["nm", "-D", program], capture_output=True, text=True, check=True)
    assert " _start\n" in listed.stdout and " main\n" not in listed.stdout  # the control
    run = preload(program)
    assert run.stdout == "refused\n" and "asked malloc for" in run.stderr
    assert "_start" not in run.stderr, str(run)
