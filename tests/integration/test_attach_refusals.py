"""Processes that `oomrec attach` leaves alone: a sentence for each, and no harm."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from attach_targets import mapped_hooks, needs_tracing, state_of
from conftest import built, rounds
from schemas import check
from watching import has_ended, wait_for

UNDISTURBED = "result 0 errno 77 wrong 0 blocked 0"

pytestmark = needs_tracing
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def refused(oomrec, pid) -> str:
    run = oomrec("attach", pid)
    assert run.exit_code == 2 and run.stdout == "" and len(run.stderr.splitlines()) == 2, str(run)
    return run.stderr


def compiled(tmp_path, compiler: list[str]) -> Path:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no {compiler[0]}")
    source = tmp_path / "sleeps.c"
    source.write_text("#include <unistd.h>\nint main() { for (;;) sleep(1); }\n")
    made = subprocess.run(
        [*compiler, source, "-o", tmp_path / "sleeps"], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(made.stderr.splitlines()[0])
    return tmp_path / "sleeps"


@pytest.mark.parametrize(
    "compiler, words",
    [
        (["gcc", "-static"], "statically linked"),
        (["musl-gcc"], "uses musl"),
        (["gcc", "-m32"], "not a 64-bit x86-64 program"),
        (["gcc", "-fsanitize=address"], "built with a sanitizer"),
    ],
)
def test_a_program_that_cannot_be_recorded(oomrec, plain, tmp_path, compiler, words):
    process = plain.start(compiled(tmp_path, compiler))
    time.sleep(0.3)
    assert words in refused(oomrec, process.pid)
    told = oomrec("info", process.pid)
    assert told.exit_code == 1 and "recorded       no, and cannot be: " in told.stdout, str(told)
    document = json.loads(oomrec("info", "--json", process.pid).stdout)
    check("info_process", document)
    assert words in document["obstacle"] and not document["recorded"]
    assert process.poll() is None and not mapped_hooks(process.pid)


@pytest.mark.needs_program("valgrind")
def test_a_program_that_is_emulated(oomrec, plain, victim):
    """What it has loaded is in memory, but no thread calls it."""
    process = plain.start(
        "valgrind", "--tool=none", victim("in_trouble"), "nothing", stdin=subprocess.PIPE
    ).once("ready")
    assert "/libc.so.6" in Path(f"/proc/{process.pid}/maps").read_text()
    assert "does not call the C library in its memory" in refused(oomrec, process.pid)
    ended = plain.finish(process, input="\n")
    assert ended.exit_code == 0 and ended.stdout == "wrong 0 errno 77\nended\n", str(ended)


def test_a_stopped_process(oomrec, running):
    process = running("attached", "nanosleep", 1)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.1)
    assert f"kill -CONT {process.pid}" in refused(oomrec, process.pid)
    os.kill(process.pid, signal.SIGCONT)
    assert not mapped_hooks(process.pid)


@needs_root
@pytest.mark.parametrize(
    ("hierarchy", "file", "freeze", "thaw"),
    [
        ("freezer", "freezer.state", "FROZEN", "THAWED"),
        ("unified", "cgroup.freeze", "1", "0"),
        ("", "cgroup.freeze", "1", "0"),
    ],
)
def test_a_frozen_process(oomrec, running, hierarchy, file, freeze, thaw):
    """As that of a paused container."""
    group = Path("/sys/fs/cgroup") / hierarchy / f"oomrec_test_{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no such cgroup can be created: {error}")
    try:
        if not (group / file).exists():
            pytest.skip(f"no {file} there")
        process = running("attached", "nanosleep", 1)
        (group / "cgroup.procs").write_text(str(process.pid))
        # The control: it is there, but not frozen.
        assert oomrec("attach", process.pid).exit_code == 0
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
        (group / file).write_text(freeze)
        time.sleep(0.2)
        assert "is frozen by a cgroup" in refused(oomrec, process.pid)
        (group / file).write_text(thaw)
        assert oomrec("attach", process.pid).exit_code == 0
        (group.parent / "cgroup.procs").write_text(str(process.pid))
    finally:
        if (group / file).exists():
            (group / file).write_text(thaw)
        with contextlib.suppress(OSError):
            group.rmdir()


def test_a_zombie(oomrec, plain):
    process = plain.start("true")
    wait_for(lambda: has_ended(process.pid))
    assert "zombie" in refused(oomrec, process.pid)
    assert "zombie" in oomrec("info", process.pid, exits=2).stderr


def test_a_process_whose_main_thread_has_ended(oomrec, plain, tmp_path):
    """It is no zombie, but what /proc has of it is empty."""
    program = built(
        tmp_path,
        "ends",
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void* rest(void* of) { for (;;) sleep(1); return of; }\n"
        "int main() { pthread_t other; pthread_create(&other, 0, rest, 0); pthread_exit(0); }\n",
    )
    process = plain.start(program)
    wait_for(lambda: has_ended(process.pid))
    assert "the main thread of process" in refused(oomrec, process.pid)
    assert "the main thread of process" in oomrec("info", process.pid, exits=1).stdout
    sampled = oomrec("track", "--duration", "0.2", "--output", "-", process.pid, exits=0).stdout
    assert json.loads(sampled)[0]["context"].startswith(str(program)[:20]), sampled
    assert process.poll() is None


@needs_root
def test_root_without_the_capability(plain, running, build_dir):
    """Says so only then: see the next test for a process that ends meanwhile."""
    process = running("attached", "nanosleep", 1)
    words = ["setpriv", "--bounding-set", "-sys_ptrace", build_dir / "oomrec", "attach"]
    run = plain(*words, process.pid)
    assert run.exit_code == 2 and "this root lacks CAP_SYS_PTRACE" in run.stderr, str(run)
    assert not mapped_hooks(process.pid)


def test_a_process_that_ends_is_not_a_forbidden_one(oomrec, plain, tmp_path):
    """The kernel says EPERM of a thread on its way out, too."""
    program = built(
        tmp_path,
        "ends",
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void* end(void* of) { return of; }\n"
        "int main() { pthread_t other; alarm(20);\n"
        "for (;;) { pthread_create(&other, 0, end, 0); pthread_join(other, 0); } }\n",
    )
    for _ in range(rounds(6, 40)):
        process = plain.start(program)
        time.sleep(0.05)
        oomrec("attach", process.pid, exits=0)
        process.kill()


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_a_traced_process(oomrec, plain, running):
    process = running("attached", "nanosleep", 1)
    tracer = plain.start("strace", "-o", "/dev/null", "-p", process.pid)
    wait_for(lambda: state_of(process.pid)["TracerPid"] != "0")
    assert "(strace)" in refused(oomrec, process.pid)
    tracer.terminate()
    tracer.wait()


def test_a_recorded_process(oomrec, preload, victim):
    process = preload.start(victim("grows_in_steps"), stdin=subprocess.PIPE).once()
    assert "is recorded already" in refused(oomrec, process.pid)


def test_no_process_and_a_wrong_word(oomrec):
    assert "there is no process" in refused(oomrec, 2**22 - 1)
    assert "is not a pid\n  Give the number: oomrec attach $(pgrep -o nginx)" in refused(
        oomrec, "nginx"
    )
    assert "is not a pid\n  `ps` lists them." in refused(oomrec, "0")


def test_wrong_options_are_named_as_they_were_given(oomrec, plain):
    process = plain.start("sleep", "60")
    for words, said in {
        ("--mode", "off"): "invalid value 'off' for --mode\n  Use sampled or exact.",
        ("--limit", "much"): "invalid value 'much' for --limit\n",
        ("--detach", "--duration", "5s"): "--detach ends a recording, --duration begins one",
        ("--objects", "--detach"): "--detach ends a recording, --objects begins one",
    }.items():
        run = oomrec("attach", *words, process.pid)
        assert run.exit_code == 2 and said in run.stderr, str(run)
    run = oomrec("attach", process.pid, env={"OOMREC_MODE": "foo"})
    assert run.exit_code == 2 and "invalid value 'foo' for OOMREC_MODE" in run.stderr, str(run)
    assert "not recorded" not in oomrec("attach", process.pid).stderr  # the control


# --- Sandboxes -----------------------------------------------------------------------------------

ALLOW = "{BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}"
# Kills for any call that the program itself does not make.
KILLS_STRANGERS = (
    "{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),"
    "BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 3, 0),"
    "BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 2, 0),"
    "BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 1, 0),"
    "BPF_STMT(BPF_RET | BPF_K, 0x80000000u),"
    "BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}"
)
# As a container's: an error for one call, which it forbids.
FORBIDS = (
    "{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 0, 1),"
    "BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}"
)
TRAPS_OPENAT = FORBIDS.replace("SYS_mount", "SYS_openat").replace(
    "SECCOMP_RET_ERRNO | 1", "SECCOMP_RET_TRAP"
)


@pytest.fixture
def sandboxed(plain, tmp_path):
    def start(filters: str, *prefix) -> subprocess.Popen:
        program = built(
            tmp_path,
            "sandboxed",
            "#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <sys/prctl.h>\n"
            "#include <sys/syscall.h>\n#include <unistd.h>\nint main() { struct sock_filter rows[] = "
            + filters
            + ";\nstruct sock_fprog program = {sizeof rows / sizeof *rows, rows};\n"
            'prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); write(1, "x\\n", 2);\n'
            "if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;\n"
            "for (;;) sleep(1); }\n",
        )
        process = plain.start(*prefix, program)
        wait_for(lambda: "Seccomp:\t2" in Path(f"/proc/{process.pid}/status").read_text())
        return process

    return start


@needs_root
@pytest.mark.parametrize("filters, call", [(KILLS_STRANGERS, "mmap"), (TRAPS_OPENAT, "openat")])
def test_a_sandbox_that_would_kill_it(oomrec, sandboxed, filters, call):
    process = sandboxed(filters)
    assert f"would not let the recorder call {call}" in refused(oomrec, process.pid)
    time.sleep(0.2)
    assert process.poll() is None and not mapped_hooks(process.pid)


@needs_root
@pytest.mark.parametrize("filters", [ALLOW, FORBIDS])
def test_a_sandbox_that_lets_the_recorder_work(oomrec, sandboxed, filters):
    process = sandboxed(filters)
    oomrec("attach", process.pid, exits=0)
    assert oomrec("top", "--once", process.pid).exit_code == 0
    assert process.poll() is None


def test_a_sandbox_that_cannot_be_read(plain, sandboxed, build_dir):
    """Only root may read the filters, and may then be allowed to."""
    process = sandboxed(ALLOW)
    run = plain(
        "setpriv", "--bounding-set", "-sys_admin", build_dir / "oomrec", "attach", process.pid
    )
    assert run.exit_code == 2 and "what it forbids cannot be read" in run.stderr, str(run)
    assert process.poll() is None and not mapped_hooks(process.pid)


# --- Rights --------------------------------------------------------------------------------------


def test_another_users_process(users, running):
    process = running("attached", "nanosleep", 1)
    run = users.attacker(users.command, "attach", process.pid)
    assert run.returncode == 2 and "sudo oomrec attach" in run.stderr, run.stderr


def not_dumpable(tmp_path) -> Path:
    return built(
        tmp_path,
        "hides",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n"
        "void* allocate_hidden() { return malloc(123457); }\n"
        'int main() { prctl(PR_SET_DUMPABLE, 0); puts("ready"); fflush(stdout);\n'
        "for (;;) { usleep(20000); allocate_hidden(); } }\n",
    )


@needs_root
def test_a_process_that_is_not_dumpable(oomrec, plain, tmp_path, build_dir):
    """Root may attach, with CAP_SYS_PTRACE only; and it records as ever."""
    process = plain.start(not_dumpable(tmp_path)).once()
    lacking = ["setpriv", "--bounding-set", "-sys_ptrace", build_dir / "oomrec", "attach"]
    run = plain(*lacking, process.pid)
    assert run.exit_code == 2 and "this root lacks CAP_SYS_PTRACE" in run.stderr, str(run)
    assert not mapped_hooks(process.pid)

    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    wait_for(lambda: "allocate_hidden" in oomrec("top", "--once", process.pid).stdout, 20)
    assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert process.poll() is None


@pytest.fixture
def running_as(plain):
    """running_as(ACCOUNT, *WORDS) is a program of that account, at its first line of output."""
    return lambda account, *words: plain.start(
        *words, cwd=account.home, preexec_fn=account.become
    ).once()


@needs_root
def test_a_process_that_may_be_seen_but_not_read(users, plain, running_as, victim):
    """As where kernel.yama.ptrace_scope is 1 to 3: ptrace goes by the real user, /proc by the effective one."""
    program = in_directory_of(users.victim, victim("attached"))
    process = running_as(users.victim, program, "nanosleep", 1)
    own, other = users.victim.uid, users.attacker.uid
    ids = ["--ruid", other, "--euid", own, "--regid", own, "--clear-groups"]
    run = plain("setpriv", *ids, users.command, "attach", process.pid, exits=2)
    assert "does not let this user trace process" in run.stderr, str(run)


def in_directory_of(account, program: Path) -> Path:
    copy = Path(shutil.copy(program, account.home))
    copy.chmod(0o755)
    return copy


def test_a_users_own_process_that_is_not_dumpable(users, running_as, tmp_path):
    account = users.victim
    process = running_as(account, in_directory_of(account, not_dumpable(tmp_path)))
    run = account(users.command, "attach", process.pid)
    assert run.returncode == 2 and "it is not dumpable" in run.stderr, run.stderr
    assert f"sudo oomrec attach {process.pid}" in run.stderr
    assert process.poll() is None and not mapped_hooks(process.pid)


def test_a_setuid_program(users, oomrec, running_as, tmp_path):
    program = in_directory_of(
        users.victim,
        built(
            tmp_path,
            "sleeps",
            '#include <stdio.h>\n#include <unistd.h>\nint main() { puts("ready"); fflush(stdout);\n'
            "for (;;) sleep(1); }\n",
        ),
    )
    os.chown(program, 0, 0)
    program.chmod(0o4755)  # chown clears it
    process = running_as(users.victim, program)
    status = Path(f"/proc/{process.pid}/status").read_text()
    if f"\nUid:\t{users.victim.uid}\t0\t" not in status:
        pytest.skip("this file system ignores setuid")
    assert "is privileged: setuid" in refused(oomrec, process.pid)
    run = users.victim(users.command, "attach", process.pid)
    assert run.returncode == 2 and "another user's rights (setuid)" in run.stderr, run.stderr
    assert process.poll() is None and not mapped_hooks(process.pid)


def test_a_thread_of_the_kernel(oomrec):
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if entry.read_text().rpartition(")")[2].split()[1] == "2":
                found.append(int(entry.parent.name))
    if not found:
        pytest.skip("no kernel threads in this pid namespace")
    assert "is a thread of the kernel" in refused(oomrec, found[0])


@needs_root
@pytest.mark.parametrize("scope", [1, 2, 3])
def test_yama(users, running_as, tmp_path, scope):
    """Its setting stands in a mount namespace's own /proc/sys/kernel; the kernel's refusal is real."""
    account = users.victim
    process = running_as(account, in_directory_of(account, not_dumpable(tmp_path)))
    script = (
        "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
        f"echo {scope} > /proc/sys/kernel/yama/ptrace_scope && "
        f"exec setpriv --reuid {account.uid} --clear-groups {users.command} attach {process.pid}"
    )
    run = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=300
    )
    if "unshare" in run.stderr or "mount:" in run.stderr:
        pytest.skip("no mount namespaces here")
    assert run.returncode == 2, run.stderr
    expected = "ptrace_scope is 3: it forbids all tracing" if scope == 3 else "it is not dumpable"
    assert expected in run.stderr, run.stderr
    assert process.poll() is None
