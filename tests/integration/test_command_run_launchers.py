"""`oomrec run` of what starts programs in containers and services: launchers, other directories, closed output."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import built
from kernel_log import memory_cgroup_of, report_oom_kill
from started import Started
from watching import Watch, has_ended, wait_for

# Holds 44 MiB, and is killed.
KILLED = "import os; block = bytes(44 << 20); os.kill(os.getpid(), 9)"
REFUSED = "import os; block = bytes(44 << 20); bytearray(1 << 50)"
# As gosu (of Go) and dumb-init: `into` becomes the program, else it waits for it.
LAUNCHER = """
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
  if (strcmp(words[1], "into") == 0 || fork() == 0) execvp(words[2], words + 2);
  int status = 0;
  return wait(&status) < 0 || WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
"""


@pytest.fixture
def launcher(tmp_path) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("not installed: gcc")
    return built(tmp_path, "launcher", LAUNCHER, "-static")


@pytest.mark.parametrize("how", ["into", "and wait"])
def test_what_a_static_launcher_starts_is_recorded(oomrec, launcher, how):
    run = oomrec("run", "--", launcher, how, "python3", "-c", REFUSED, exits=1)
    assert "without the recorder, which is in what it starts" in run.stderr
    assert oomrec.json("show", run.only_bundle())["holders"][0]["bytes"] >= 44 << 20


def test_a_program_that_a_static_launcher_becomes_and_that_is_killed(oomrec, launcher):
    run = oomrec("run", "--", launcher, "into", "python3", "-c", KILLED, exits=128 + signal.SIGKILL)
    assert "not recorded" not in run.stderr, str(run)
    assert oomrec.json("show", run.only_bundle())["holders"][0]["bytes"] >= 44 << 20


def test_the_recording_of_a_child_whose_end_nobody_saw_stays(oomrec, launcher):
    """The launcher has waited for it, and keeps no record."""
    run = oomrec("run", "--", launcher, "and wait", "python3", "-c", KILLED)
    assert run.exit_code == 128 + signal.SIGKILL and run.bundles() == [], str(run)
    assert oomrec("recover", "--unknown").exit_code == 0
    assert oomrec.json("show", run.only_bundle())["holders"][0]["bytes"] >= 44 << 20


@pytest.mark.parametrize("into", ["2>&-", "2>/dev/full", "2>&- >&- <&-"])
def test_nothing_can_be_said(oomrec, build_dir, into):
    """The program's exit code and the bundle are what counts."""
    line = f'exec "{build_dir}/oomrec" run -- python3 -c "$1" {into}'
    process = subprocess.run(
        ["sh", "-c", line, "sh", KILLED], cwd=oomrec.directory, env=oomrec.environment,
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), process
    assert len(list(oomrec.dump_dir.glob("oom_*/manifest.json"))) == 1


def test_the_reader_of_what_is_said_has_gone(oomrec, build_dir):
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [build_dir / "oomrec", "run", "--", "python3", "-c", KILLED],
        cwd=oomrec.directory, env=oomrec.environment, stderr=writing, timeout=300,
    )  # fmt: skip
    os.close(writing)
    assert process.returncode == 128 + signal.SIGKILL
    assert len(list(oomrec.dump_dir.glob("oom_*"))) == 1


def test_closed_files_stay_closed_for_the_program(oomrec, build_dir):
    script = "import os, sys; sys.exit(sum(1 << n for n in range(3) if not os.path.exists(f'/proc/self/fd/{n}')))"
    line = f'exec "{build_dir}/oomrec" run -- python3 -c "$1" >&- <&-'
    process = subprocess.run(["sh", "-c", line, "sh", script], env=oomrec.environment, timeout=300)
    assert process.returncode == 3


def test_directories_are_those_of_the_command(oomrec, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    words = ["run", "--session-dir", "s", "--dump-dir", "d", "--"]
    none = {"OOMREC_SESSION_DIR": None, "OOMREC_DUMP_DIR": None}
    (tmp_path / "s").mkdir(mode=0o700)
    run = oomrec(*words, "sh", "-c", 'cd elsewhere; exec python3 -c "$1"', "sh", KILLED, env=none)
    assert run.exit_code == 128 + signal.SIGKILL
    assert "not recorded" not in run.stderr, str(run)
    assert len(list((tmp_path / "d").glob("oom_*"))) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_working_directory_that_is_gone(oomrec, build_dir, tmp_path):
    (tmp_path / "gone").mkdir()
    line = f'rmdir ../gone; exec "{build_dir}/oomrec" run -- python3 -c "$1"'
    process = subprocess.run(
        ["sh", "-c", line, "sh", KILLED], cwd=tmp_path / "gone", capture_output=True, text=True,
        env={**oomrec.environment, "OOMREC_DUMP_DIR": "oom_dumps"}, timeout=300,
    )  # fmt: skip
    assert process.returncode == 128 + signal.SIGKILL
    assert "was killed by SIGKILL" in process.stderr and "filesystem error" not in process.stderr
    assert len(list(tmp_path.rglob("oom_*/manifest.json"))) == 1, process.stderr


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
def test_a_death_that_a_watcher_has_recovered_first(oomrec, cgroup, tmp_path):
    log = {"OOMREC_KERNEL_LOG": tmp_path / "kernel.log"}
    code = "import os; block = bytes(44 << 20); print(os.getpid(), flush=True); input()"
    process = oomrec.start(
        "run", "--", "python3", "-c", code,
        stdin=subprocess.PIPE, preexec_fn=cgroup("64M").enter, env={**log, "OOMREC_WARN": "0"},
    )  # fmt: skip
    pid = int(process.stdout.readline())
    watch = Watch(oomrec, **log)
    wait_for(lambda: watch.sees(pid))
    os.kill(process.pid, signal.SIGSTOP)
    report_oom_kill(log["OOMREC_KERNEL_LOG"], pid, "python3", memory_cgroup_of(pid))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: list(oomrec.dump_dir.glob("oom_*/manifest.json")))
    os.kill(process.pid, signal.SIGCONT)
    run = oomrec.finish(process, exits=128 + signal.SIGKILL)
    assert "was killed by the kernel" in run.stderr, str(run)
    assert f"bundle {run.only_bundle()}" in run.stderr and "not recorded" not in run.stderr
    assert not names_launcher(oomrec.json("show", run.only_bundle()))  # it is there


# --- `oomrec run` is killed, and its program goes on alone ------------------------------------------

# Holds 44 MiB until its input says to go on.
HOLDS = """
import os, sys
launcher, block = os.getppid(), b"x" * (44 << 20)
print(os.getpid(), flush=True)
status = int(sys.stdin.readline())
print(os.environ["MINE"], os.getppid() != launcher, flush=True)
sys.exit(status)
"""


def start_holding(oomrec, env: dict, **options) -> tuple[Started, int]:
    process = oomrec.start(
        "run", "--", "python3", "-c", HOLDS, stdin=subprocess.PIPE, env={"MINE": "still", **env},
        **options,
    )  # fmt: skip
    return process, int(process.stdout.readline())


def end_launcher(process: Started) -> str:
    """Kills the launcher. Returns what a bundle says of it afterwards."""
    process.kill()
    process.wait()
    return f"oomrec run (pid {process.pid}), which had started it, was not there to see its end"


def names_launcher(shown: dict) -> list[str]:
    return [line for line in shown["verdict"]["evidence"] if "oomrec run (pid" in line]


@pytest.mark.needs_pid_namespace
def test_a_program_goes_on_without_its_launcher(oomrec):
    process, pid = start_holding(oomrec, {})
    end_launcher(process)
    assert oomrec.json("show", pid)["holders"][0]["bytes"] >= 44 << 20
    process.tell("3\n")
    assert process.stdout.readline() == b"still True\n"
    wait_for(lambda: has_ended(pid))
    assert oomrec.sessions_left() == [] and list(oomrec.dump_dir.glob("oom_*")) == []
    assert process.stderr.read() == b""


@pytest.mark.needs_pid_namespace
def test_an_end_that_nobody_saw_as_the_launcher_had_gone(oomrec):
    process, pid = start_holding(oomrec, {})
    words = end_launcher(process)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: has_ended(pid))
    assert f"with an unknown exit status, as {words}; no evidence" in oomrec("ls").stderr
    assert oomrec("recover", "--unknown").exit_code == 0
    (bundle,) = oomrec.dump_dir.glob("oom_*")
    shown = oomrec.json("show", bundle)
    assert shown["verdict"]["code"] == "unknown" and names_launcher(shown) == [words]


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
@pytest.mark.parametrize("is_launcher_killed", [True, False])
def test_a_kill_for_memory_has_its_verdict_without_the_launcher(
    oomrec, cgroup, tmp_path, is_launcher_killed
):
    log = {"OOMREC_KERNEL_LOG": tmp_path / "kernel.log"}
    log["OOMREC_KERNEL_LOG"].write_text("6,0,0,-;Linux version\n")
    process, pid = start_holding(
        oomrec, {**log, "OOMREC_WARN": "0"}, preexec_fn=cgroup("64M").enter
    )
    words = [end_launcher(process)] if is_launcher_killed else []
    report_oom_kill(log["OOMREC_KERNEL_LOG"], pid, "python3", memory_cgroup_of(pid))
    os.kill(pid, signal.SIGKILL)
    if is_launcher_killed:
        wait_for(lambda: has_ended(pid))
    else:
        assert "was killed by the kernel" in oomrec.finish(process).stderr
    listed = oomrec("ls", env=log)
    assert listed.stdout.count("cgroup_oom_kill") == 1, str(listed)
    (bundle,) = oomrec.dump_dir.glob("oom_*")
    shown = oomrec.json("show", bundle)
    assert (shown["verdict"]["code"], shown["outcome"]) == ("cgroup_oom_kill", "oom_killed")
    assert names_launcher(shown) == words
