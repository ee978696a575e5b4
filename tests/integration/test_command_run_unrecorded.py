"""`oomrec run` on programs that it cannot record: it is their parent, and says how they ended."""

import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from command_lines import reading_lines
from conftest import written
from kernel_log import memory_cgroup_of, report_oom_kill

VICTIMS = Path(__file__).resolve().parent.parent / "victims"
NOT_FOR_MEMORY = "and not for lack of memory"

# How a program escapes the recorder: the compiler and its options, the words before the program.
SHAPES = {
    "static": (["gcc", "-static"], []),
    "musl": (["musl-gcc"], []),
    "sanitizer": (["gcc", "-fsanitize=address"], []),
    "cleared environment": (["gcc"], ["env", "-i"]),
    "cleared LD_PRELOAD": (["gcc"], ["env", "-u", "LD_PRELOAD"]),
    "static, by exec": (["gcc", "-static"], ["env", "-i"]),
}


@pytest.fixture
def unrecorded(tmp_path):
    """unrecorded(shape, victim): the words that start it."""

    def words(shape: str, victim: str) -> list[str]:
        (compiler, *options), before = SHAPES[shape]
        if subprocess.run(["which", compiler], capture_output=True).returncode != 0:
            pytest.skip(f"not installed: {compiler}")
        program = tmp_path / victim
        build = [compiler, *options, "-g", "-o", program, VICTIMS / f"{victim}.c"]
        subprocess.run(build, check=True, capture_output=True)
        return [*before, str(program)]

    return words


def said(run) -> list[str]:
    """Lines on stderr, without the one that says, at the start or at the end, that nothing is recorded."""
    lines = run.stderr.splitlines()
    return [
        line
        for line in lines
        if "; it runs without the recorder" not in line and "oomrec: not recorded: " not in line
    ]


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("own_cgroup", [True, False], ids=["--cgroup", "in a cgroup"])
def test_a_kill_by_the_kernel_gets_a_line_and_a_bundle(
    oomrec, unrecorded, cgroup, shape, own_cgroup
):
    words = [*unrecorded(shape, "touched_late"), "200"]
    if own_cgroup:
        run = oomrec("run", "--cgroup", "50M", "--", *words)
    else:
        run = oomrec("run", "--", *words, preexec_fn=cgroup("50M").enter)
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    bundle = run.only_bundle()
    shown = oomrec.json("show", bundle)
    assert (shown["verdict"]["code"], shown["verdict"]["certainty"]) == (
        "cgroup_oom_kill",
        "proven",
    )
    assert shown["outcome"] == "oom_killed" and shown["holders"] == []
    assert Path(shown["process"]["executable"]).name == "touched_late"
    assert "it was not recorded" in shown["verdict"]["summary"]
    assert any(note.startswith("not recorded: touched_late ") for note in shown["notes"])
    line, where = said(run)
    pid = shown["process"]["pid"]
    assert line == (
        f"oomrec: touched_late (pid {pid}) was killed by the kernel: its memory cgroup had reached "
        "its limit of 50.0 MiB"
    )
    assert where.startswith(f"oomrec: bundle {bundle}")


@pytest.mark.needs_cgroup_write
def test_every_command_reads_such_a_bundle(oomrec, unrecorded):
    run = oomrec("run", "--cgroup", "50M", "--", *unrecorded("static", "touched_late"), "200")
    bundle = run.only_bundle()
    lines = reading_lines(oomrec, bundle)
    assert len(lines) >= 10
    for command, words in lines:
        read = oomrec(command, *words)
        assert read.exit_code in (0, 1) and "Traceback" not in read.stderr, str(read)
    assert oomrec("ls", bundle.parent).stdout.count("touched_late") == 1


@pytest.mark.needs_cgroup_write
def test_the_users_command_runs_and_quiet_is_quiet(oomrec, unrecorded):
    words = [*unrecorded("cleared environment", "touched_late"), "200"]
    run = oomrec(
        "run", "--quiet", "--on-oom-exec", "echo killed %b", "--cgroup", "50M", "--", *words
    )
    assert run.stderr == f"killed {run.only_bundle()}\n"


@pytest.mark.parametrize("shape", ["static", "cleared environment"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP])
def test_an_ordinary_end_is_not_worth_a_word(oomrec, unrecorded, shape, number):
    run = oomrec("run", "--", *unrecorded(shape, "raises"), int(number))
    assert run.exit_code == 128 + number and run.bundles() == [] and said(run) == [], str(run)


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize(
    "before, reason, instead",
    [
        (["env", "-i"], "was started without LD_PRELOAD", "env -i oomrec run -- sh …"),
        (
            ["env", "-u", "LD_PRELOAD"],
            "was started without LD_PRELOAD",
            "env -u LD_PRELOAD oomrec run -- sh …",
        ),
        (
            ["env", "LD_PRELOAD=libdl.so.2"],
            "was started with LD_PRELOAD=libdl.so.2 instead of the recorder",
            "env LD_PRELOAD=libdl.so.2 oomrec run -- sh …",
        ),
    ],
)
def test_a_program_that_loses_the_recorder_is_named(oomrec, before, reason, instead, status):
    """However it ends, and however briefly it ran: a recording was asked for."""
    words = [*before, "sh", "-c", f"exit {status}"]
    run = oomrec("run", "--", *words)
    assert run.exit_code == status and run.bundles() == [], str(run)
    assert run.stderr == f"oomrec: not recorded: sh {reason}; to record it: {instead}\n"
    assert oomrec("run", "--quiet", "--", *words).stderr == ""
    assert oomrec("run", "--", *words, env={"OOMREC_CHILDREN": "0"}).stderr == "", "asked for"


def test_what_is_written_instead_records(oomrec, victim, build_dir):
    """The words of the line, with the path of the command."""
    before = ["env", "LD_PRELOAD=libdl.so.2"]
    lost = oomrec("run", "--dump-at-exit", "--", *before, victim("hello"))
    assert "to record it: env LD_PRELOAD=libdl.so.2 oomrec run -- " in lost.stderr, str(lost)
    recorded = subprocess.run(
        [*before, build_dir / "oomrec", "run", "--", "sh", "-c", "echo $LD_PRELOAD"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert "liboomrec.so" in recorded.stdout and "libdl.so.2" in recorded.stdout
    assert "not recorded" not in recorded.stderr, str(recorded)


@pytest.mark.parametrize(
    "script, line",
    [
        (
            "exec env -i sleep 0",
            "sleep was started without LD_PRELOAD; to record it, write oomrec run",
        ),
        (
            "env -i sleep 0; true",
            "sleep was started without LD_PRELOAD; to record it, write oomrec run",
        ),
        # The recording of what ended in the exec is removed by the next one that begins there.
        (
            "env -i sleep 0; python3 -c 1; true",
            "sleep was started without LD_PRELOAD; to record it, write oomrec run",
        ),
        (
            "unset LD_PRELOAD; sleep 0; sleep 0; true",
            "sleep was started without LD_PRELOAD, and 1 process more; to record it, write oomrec run",
        ),
        ("env A=B sleep 0", ""),
        ("exec sleep 0", ""),
        ("LD_PRELOAD=$LD_PRELOAD:libdl.so.2 sleep 0", ""),
    ],
)
def test_what_a_script_starts_without_the_recorder(oomrec, script, line):
    run = oomrec("run", "--", "sh", "-c", script)
    assert run.exit_code == 0, str(run)
    assert line in run.stderr and bool(line) == bool(run.stderr), str(run)


# How a program starts another one with an empty environment.
STARTERS = {
    "vfork": ["python3", "-c", "import subprocess; subprocess.run(['sleep', '0'], env={})"],
    "posix_spawn": [
        "python3", "-c", "import os; os.waitpid(os.posix_spawn('/bin/sleep', ['sleep', '0'], {}), 0)",
    ],
    "posix_spawnp": [
        "python3", "-c", "import os; os.waitpid(os.posix_spawnp('sleep', ['sleep', '0'], {}), 0)",
    ],
    "fork": [
        "python3", "-c",
        "import subprocess; subprocess.run(['sleep', '0'], env={}, preexec_fn=lambda: None)",
    ],
    "node": ["node", "-e", "require('child_process').spawnSync('sleep', ['0'], {env: {}})"],
}  # fmt: skip


@pytest.mark.parametrize("starter", STARTERS)
@pytest.mark.parametrize(
    "variables, reason",
    [
        ("", "was started without LD_PRELOAD"),
        (
            "'LD_PRELOAD': 'libdl.so.2'",
            "was started with LD_PRELOAD=libdl.so.2 instead of the recorder",
        ),
    ],
)
def test_a_child_that_loses_the_recorder_is_named(oomrec, starter, variables, reason):
    words = STARTERS[starter]
    if shutil.which(words[0]) is None:
        pytest.skip(f"not installed: {words[0]}")
    script = words[-1].replace("{}", f"{{{variables}}}")
    run = oomrec("run", "--", *words[:-1], script, exits=0)
    line = (
        f"oomrec: not recorded: sleep {reason}; to record it, write oomrec run where it is started"
    )
    assert run.stderr.splitlines() == [line], str(run)
    assert list(oomrec.session_dir.glob("*/*")) == []


@pytest.mark.parametrize(
    "started",
    [
        "subprocess.run(['sleep', '0'])",
        "os.waitpid(os.posix_spawn('/bin/sleep', ['sleep', '0'], os.environ), 0)",
        # Statically linked: no preload would be of use.
        "subprocess.run(['/sbin/ldconfig', '-p'], env={}, stdout=subprocess.DEVNULL)",
        # It brings the recorder, as the line says.
        "subprocess.run([os.environ['OOMREC'], 'run', '--', 'sleep', '0'], env={})",
    ],
)
def test_a_child_that_lost_nothing_is_not_named(oomrec, build_dir, started):
    script = f"import os, subprocess; {started}"
    run = oomrec("run", "--", "python3", "-c", script, env={"OOMREC": build_dir / "oomrec"})
    assert (run.exit_code, run.stderr) == (0, ""), str(run)


def test_more_children_than_the_notes_hold(oomrec):
    script = "import subprocess\nfor _ in range(1600): subprocess.run(['/bin/true'], env={})"
    run = oomrec("run", "--", "python3", "-c", script, exits=0)
    assert "true was started without LD_PRELOAD, and at least 1," in run.stderr, str(run)
    assert oomrec("run", "--", "env", "-i", "true").stderr.count("not recorded") == 1


def test_a_run_within_a_run_says_it_once(oomrec, build_dir):
    inner = f"{build_dir / 'oomrec'} run --"
    run = oomrec("run", "--", "sh", "-c", f"{inner} env -i sleep 0; env -i true; true", exits=0)
    first, second = run.stderr.splitlines()
    assert first.startswith("oomrec: not recorded: sleep was started without LD_PRELOAD; to"), first
    assert second.startswith("oomrec: not recorded: true was started without LD_PRELOAD; to")


@pytest.mark.parametrize(
    "call, error",
    [
        ("os.execve('/nonexistent/prog', ['prog'], {})", "No such file"),
        ("os.execve('/bin/true', ['x' * 2_000_000], {})", "Argument list too long"),
        ("subprocess.run(['/bin/true', 'x' * 2_000_000], env={})", "Argument list too long"),
        (
            "os.posix_spawn('/bin/true', ['true', 'x' * 2_000_000], {})",
            "Argument list too long",
        ),
    ],
)
def test_a_failed_exec_is_no_loss(oomrec, tmp_path, call, error):
    """Of a program that then goes on, recorded."""
    script = written(
        tmp_path / "tries.py",
        f"import os, subprocess\ntry:\n    {call}\nexcept OSError as error:\n    print(error)\n",
    )
    run = oomrec("run", "--", "python3", script)
    assert error in run.stdout and run.stderr == "", str(run)


@pytest.mark.parametrize("shape", ["static", "cleared environment"])
@pytest.mark.parametrize(
    "number, words",
    [(signal.SIGKILL, "was killed by SIGKILL"), (signal.SIGSEGV, "crashed with SIGSEGV")],
)
def test_another_violent_end_gets_a_line_without_a_bundle(oomrec, unrecorded, shape, number, words):
    run = oomrec("run", "--", *unrecorded(shape, "raises"), int(number))
    assert run.exit_code == 128 + number and run.bundles() == []
    (line,) = said(run)
    assert line.startswith("oomrec: raises (pid ") and words in line, str(run)
    assert "memory" not in line.replace(NOT_FOR_MEMORY, "").replace("observe", "")


# How a process that is killed in its first milliseconds leaves its recording: without its first words.
UNFINISHED = """
import glob, os, signal
[path] = glob.glob(os.environ["OOMREC_SESSION_DIR"] + f"/*/*-{os.getpid()}-*")
with open(path, "r+b") as file:
    file.write(bytes(8))
os.utime(path, (1, 1))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_recording_that_was_never_finished(oomrec, python, tmp_path):
    script = written(tmp_path / "unfinished.py", UNFINISHED)
    run = oomrec("run", "--", python(), script)
    assert run.exit_code == 128 + signal.SIGKILL and run.bundles() == []
    (line,) = said(run)
    assert "was killed by SIGKILL" in line and line.endswith("left no recording"), str(run)
    assert list(oomrec.session_dir.glob("*/*.session")) == []


def test_a_signal_that_was_passed_on_is_said_so(oomrec, unrecorded):
    process = oomrec.start("run", "--", *unrecorded("static", "raises"), 0).once("ready")
    process.send_signal(signal.SIGTERM)
    run = oomrec.finish(process)
    (line,) = said(run)
    assert "was killed by SIGTERM" in line and f"came from process {os.getpid()}" in line, str(run)
    assert run.bundles() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes programs of another user setuid")
def test_a_setuid_program_of_another_user(oomrec, unrecorded, build_dir, tmp_path):
    program = unrecorded("cleared environment", "raises")[-1]
    os.chmod(program, 0o755 | stat.S_ISUID)
    for directory in (tmp_path, *tmp_path.parents[:-1]):
        directory.chmod(directory.stat().st_mode | 0o055)
    run = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         build_dir / "oomrec", "run", "--", program, "9"],
        cwd="/tmp", capture_output=True, text=True, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    first, line = run.stderr.splitlines()
    assert "is setuid" in first and "raises (pid " in line and "SIGKILL" in line


@pytest.mark.parametrize(
    "shape, limit, is_void",
    [("static, by exec", ["--limit", "64M"], True), ("static, by exec", [], False),
     ("cleared environment", ["--limit", "64M"], False)],
)  # fmt: skip
def test_a_limit_that_is_void_after_an_exec(oomrec, unrecorded, shape, limit, is_void):
    """Valgrind's launcher is recorded, and executes a static program."""
    words = unrecorded(shape, "raises")
    process = oomrec.start("run", *limit, "--", *words, 0).once("ready")
    time.sleep(SAMPLED_S)
    process.send_signal(signal.SIGTERM)
    run = oomrec.finish(process)
    executed = f"not recorded: the program has executed {words[-1]}, which is statically linked"
    assert (executed in run.stderr) == (shape == "static, by exec"), str(run)
    assert ("oomrec: --limit has no effect on it" in run.stderr) == is_void, str(run)


# --- children ----------------------------------------------------------------------------------------


def youngest(pid: int) -> int:
    """The last of a chain of processes, each with one child."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
    return pid


def start_in(oomrec, cgroup, log: Path, *words) -> subprocess.Popen:
    """`oomrec run` of a program that says when it is ready, in this cgroup, with this kernel log."""
    process = oomrec.start(
        "run", *words, stdin=subprocess.PIPE, preexec_fn=cgroup.enter,
        env={"OOMREC_WARN": "0", "OOMREC_KERNEL_LOG": log},
    )  # fmt: skip
    assert process.stdout.readline() == b"ready\n"
    return process


def finish_killed(oomrec, process, log: Path):
    """Ends the youngest descendant, a `grows`, as the kernel does when the cgroup is full."""
    pid = youngest(process.pid)
    report_oom_kill(log, pid, "grows", memory_cgroup_of(pid))
    os.kill(pid, signal.SIGKILL)
    return oomrec.finish(process)


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
@pytest.mark.parametrize("status", [7, 0])
@pytest.mark.parametrize("before", ["env -u LD_PRELOAD", ""])
def test_a_killed_child_of_a_shell(oomrec, victim, cgroup, tmp_path, before, status):
    """Once each: without a recording only if the shell fails, too; a recorded child anyway."""
    log = tmp_path / "kernel.log"
    words = ["sh", "-c", f"{before} {victim('grows')}; exit {status}"]
    run = finish_killed(oomrec, start_in(oomrec, cgroup("64M"), log, "--", *words), log)
    assert run.exit_code == status
    if before and status == 0:
        assert run.bundles() == [] and "killed by the kernel" not in run.stderr
        return
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["verdict"]["code"], shown["outcome"]) == ("cgroup_oom_kill", "oom_killed")
    assert (shown["process"]["executable"] == "grows") == bool(before)
    assert run.stderr.count(" was killed by the kernel: its memory cgroup") == 1, str(run)


@pytest.mark.needs_cgroup_write
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes pid namespaces")
@pytest.mark.parametrize("mounts", [[], ["--mount-proc"]], ids=["its parent's /proc", "its own"])
def test_a_recorded_process_of_another_pid_namespace_has_one_bundle(oomrec, victim, mounts):
    """The kernel's log has another pid than its recording."""
    script = '(sleep 1.5; echo go) | "$@"; exit 3'  # it lives for some samples
    words = ["sh", "-c", script, "sh", "unshare", "-pf", *mounts, victim("grows")]
    run = oomrec("run", "--cgroup", "80M", "--warn", "0", "--", *words, exits=3)
    (bundle,) = run.bundles_for("killed")
    shown = oomrec.json("show", bundle)
    # By its pid alone the log does not say that it is this process.
    assert shown["verdict"]["code"] in ("cgroup_oom_kill", "killed_near_limit")
    assert shown["process"]["pid"] == 1
    assert any(frame["function"] == "grow" for frame in shown["holders"][0]["stack"])
    assert oomrec.sessions_left() == []


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
@pytest.mark.parametrize("shells", [1, 2, 4])
def test_a_killed_descendant_below_processes_that_ended_well(
    oomrec, victim, cgroup, tmp_path, shells
):
    """They leave no recording: the chain of parents is broken."""
    log = tmp_path / "kernel.log"
    scripts = [tmp_path / f"{i}.sh" for i in range(shells)]
    for script, inner in zip(scripts, [*scripts[1:], victim("grows")], strict=True):
        script.write_text(f"#!/bin/sh\n{inner}\nexit 0\n")
        script.chmod(0o755)
    words = ["--on-oom-exec", "echo ran", "--", scripts[0]]
    run = finish_killed(oomrec, start_in(oomrec, cgroup("64M"), log, *words), log)
    assert run.exit_code == 0
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "cgroup_oom_kill"
    assert shown["process"]["executable"].endswith("grows")
    assert run.stderr.count(" was killed by the kernel: its memory cgroup") == 1, str(run)
    assert "ran" in run.stdout + run.stderr


SAMPLED_S = 2.4  # four times that between two looks at /proc: a busy machine misses some


def start_a_shell_with_an_unrecorded_child(oomrec, victim, cgroup, log: Path):
    """The child holds 24 MiB, and was seen in /proc; the shell ends with 7 after it."""
    words = ["sh", "-c", f"env -u LD_PRELOAD {victim('grows')}; exit 7"]
    process = start_in(oomrec, cgroup, log, "--", *words)
    time.sleep(SAMPLED_S)
    return process


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
def test_a_kill_that_the_log_omits(oomrec, victim, cgroup, tmp_path):
    """The kernel limits the rate of its reports, but counts each kill."""
    log = written(tmp_path / "kernel.log", "6,0,0,-;Linux version\n")
    process = start_a_shell_with_an_unrecorded_child(oomrec, victim, cgroup("64M"), log)
    run = oomrec.finish(process, input="\n", exits=7)
    shown = oomrec.json("show", run.only_bundle())
    verdict = shown["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("cgroup_oom_kill", "likely"), verdict
    assert shown["process"]["executable"] == "grows"


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
@pytest.mark.parametrize("place", ["beside it", "below it"])
def test_the_kill_of_another_program_in_the_cgroup(oomrec, victim, cgroup, tmp_path, place):
    """Two runs in one container: neither explains the other's kills."""
    log = tmp_path / "kernel.log"
    shared = cgroup("64M")
    process = start_a_shell_with_an_unrecorded_child(oomrec, victim, shared, log)
    other = subprocess.Popen(["sleep", "60"], preexec_fn=shared.enter)
    time.sleep(SAMPLED_S)
    cgroup_path = memory_cgroup_of(other.pid) + ("/inner" if place == "below it" else "")
    report_oom_kill(log, other.pid, "sleep", cgroup_path)
    other.kill()
    other.wait()
    os.kill(youngest(process.pid), signal.SIGTERM)
    run = oomrec.finish(process)
    assert run.exit_code == 7 and run.bundles() == [], str(run)
    assert not any("oomrec" in line for line in said(run)), str(run)


# --- options that the recorder would have to apply in the program -----------------------------------


@pytest.mark.parametrize("shape", ["static", "musl", "sanitizer"])
def test_options_without_effect_are_reported_at_the_start(oomrec, unrecorded, shape):
    words = [*unrecorded(shape, "touched_late"), "8"]
    run = oomrec("run", "--limit", "512M", "--", *words)
    assert run.stdout == "allocated\n"
    lines = [line for line in said(run) if line.startswith("oomrec: ")]  # not the sanitizer's
    assert lines == [
        "oomrec: --limit has no effect on it; to bound its memory, use --cgroup 512M or "
        "--limit-as 512M"
    ]


def test_every_option_without_effect_is_reported(oomrec, unrecorded):
    words = [*unrecorded("static", "touched_late"), "8"]
    several = oomrec("run", "--fail", "malloc:nth=1", "--dump-at-exit", "--", *words)
    assert said(several) == ["oomrec: --fail, --dump-at-exit have no effect on it"]
    assert said(oomrec("run", "--max-dumps", "3", "--", *words)) == []
    assert oomrec("run", "--quiet", "--limit", "512M", "--", *words).stderr == ""


def test_a_limit_of_address_space_takes_effect(oomrec, unrecorded):
    words = [*unrecorded("static", "touched_late"), "200"]
    assert oomrec("run", "--limit-as", "100M", "--", *words).exit_code == 1
    assert oomrec("run", "--limit-as", "400M", "--", *words).exit_code == 0
