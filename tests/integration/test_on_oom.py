"""--on-oom and --on-oom-exec: a bundle, then the command, then continue, exit or abort."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from watching import wait_for

LIVES_ON = "begun\nchildren: none, signals: 0\nexit handlers ran\n"


def outcome(oomrec, run):
    return oomrec.json("show", run.bundles()[0])["outcome"]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_the_command_runs_once_after_the_bundle(preload, victim, tmp_path):
    """It gets the pid and a finished bundle. The program sees neither a child nor a signal."""
    log = tmp_path / "log"
    command = f"echo %p %b 100%% >> {log}; ls %b >> {log}; echo spoken"
    run = preload(victim("three_failures"), env={"OOMREC_ON_OOM_EXEC": command})
    assert (run.exit_code, run.stdout) == (0, LIVES_ON), str(run)
    first, *files = lines_of(log)
    assert first == f"{run.pid} {run.bundles()[0]} 100%"
    assert (
        "manifest.json" in files and files.count("manifest.json") == 1
    )  # once, for three failures
    assert len(run.bundles()) == 1  # which tells the two failures that followed
    assert run.stderr.splitlines().count("spoken") == 1  # never on the program's stdout


def test_the_command_is_not_recorded_itself(preload, victim, tmp_path):
    log = tmp_path / "log"
    command = f"env > {log}; cat /proc/$$/status | grep -E 'Sig(Blk|Cgt)' >> {log}"
    preload(
        victim("three_failures"),
        env={"OOMREC_ON_OOM_EXEC": command, "HOME": "/home/of/mine", "SECRET": "1"},
    )
    environment = lines_of(log)
    assert "HOME=/home/of/mine" in environment and any(x.startswith("PATH=") for x in environment)
    assert not any(x.startswith(("LD_PRELOAD", "SECRET")) for x in environment)
    ours = {x.split("=")[0] for x in environment if x.startswith("OOMREC_")}
    assert ours == {"OOMREC_PID", "OOMREC_BUNDLE"}
    signals = dict(x.split(":\t") for x in environment if x.startswith("Sig"))
    assert int(signals["SigBlk"], 16) == 0
    assert int(signals["SigCgt"], 16) & (1 << 5) == 0  # the program's SIGABRT handler


@pytest.mark.parametrize("way", ["run", "preload"])
def test_the_exit_action(oomrec, preload, victim, tmp_path, way):
    """Immediately after the command, without exit handlers. The bundle has the outcome."""
    log = tmp_path / "log"
    if way == "run":
        run = oomrec("run", "--on-oom-exec", f"echo %p >> {log}", "--on-oom", "exit=7",
                     "--", victim("three_failures"))  # fmt: skip
    else:
        run = preload(
            victim("three_failures"),
            env={"OOMREC_ON_OOM": "exit=7", "OOMREC_ON_OOM_EXEC": f"echo %p >> {log}"},
        )
    assert (run.exit_code, run.stdout) == (7, "begun\n"), str(run)
    assert len(lines_of(log)) == 1
    assert outcome(oomrec, run) == "exited 7"
    assert len(run.bundles()) == 1
    assert preload.sessions_left() == []


@pytest.mark.parametrize("way", ["run", "preload"])
def test_the_abort_action_is_a_real_sigabrt(oomrec, preload, victim, way):
    """It dies of SIGABRT, and the program's handler does not run."""
    if way == "run":
        run = oomrec("run", "--on-oom", "abort", "--", victim("three_failures"))
    else:
        run = preload(victim("three_failures"), env={"OOMREC_ON_OOM": "abort"})
    assert (run.exit_code, run.stdout) == (128 + 6, "begun\n"), str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["outcome"], shown["verdict"]["code"]) == ("signal 6", "request_too_large")


def test_a_slow_command_does_not_block_the_program(preload, victim):
    began = time.monotonic()
    run = preload(
        victim("three_failures"),
        env={"OOMREC_ON_OOM_EXEC": "exec >&- 2>&-; sleep 600", "OOMREC_BUNDLE_SECONDS": "1"},
    )
    os.killpg(run.pid, signal.SIGKILL)  # the command, which still runs
    assert (run.exit_code, run.stdout) == (0, LIVES_ON), str(run)
    assert time.monotonic() - began > 0.9
    assert len(run.bundles()) == 1  # which tells the two failures that followed


def test_python_ends_at_its_first_failure(preload, oomrec, victim):
    run = preload(
        sys.executable, victim("python/over_limit.py"), "bytes",
        env={"OOMREC_LIMIT": "100M", "OOMREC_ON_OOM": "exit=9"},
    )  # fmt: skip
    assert run.exit_code == 9 and "Traceback" not in run.stderr, str(run)
    assert outcome(oomrec, run) == "exited 9"


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("way", ["run", "watch"])
def test_a_kill_runs_the_command_from_outside(oomrec, preload, victim, cgroup, tmp_path, way):
    """The launcher or the watcher runs it, once, with the kill's bundle."""
    log = tmp_path / "log"
    command = f'echo %p >> {log}; oomrec_bundle=%b; grep -o \'"code": "[a-z_]*"\' $oomrec_bundle/metadata.json >> {log}'
    grow = [sys.executable, victim("python/grow_objects.py")]
    group = cgroup("100M")
    if way == "run":
        run = oomrec("run", "--on-oom-exec", command, "--", *grow, preexec_fn=group.enter)
    else:
        watching = oomrec.start("watch", "--on-oom-exec", command)
        run = preload(*grow, preexec_fn=group.enter)
        wait_for(lambda: len(lines_of(log)) >= 2)
        watching.terminate()
        assert watching.wait(10) == 0
    assert run.exit_code == 128 + 9
    pid, verdict = lines_of(log)
    assert verdict == '"code": "cgroup_oom_kill"', str(run)
    assert int(pid) == run.pid or way == "run"


# Directories whose names a shell would run, split, expand or take for an option.
ODD_NAMES = [
    "a$(touch RAN)b", "a`touch RAN`b", "it's", 'say "so"', "two  words", "line\nfeed", "a;touch RAN;",
    "-n $(touch RAN)", "'$(touch RAN)'", "\"$(touch RAN)\"", "back\\slash", "* ?", "a&touch RAN&",
]  # fmt: skip

# Each position writes the path and a NUL.
POSITIONS = ["%b", '"%b"', "'%b'", '"$2"', '"$OOMREC_BUNDLE"']


def writes_each_position(log: Path) -> str:
    command = "; ".join(f"printf '%%s\\0' {position}" for position in POSITIONS)
    return f'cd {log.parent}; {{ {command}; printf \'%%s\\0\' %p "$1" "$OOMREC_PID"; }} > {log}.new; mv {log}.new {log}'


def check_positions(log: Path, bundle: Path, pid: int | None):
    *paths, end = log.read_text().split("\0")
    paths, pids = paths[: len(POSITIONS)], paths[len(POSITIONS) :]
    assert (paths, end) == ([str(bundle)] * len(POSITIONS), "")
    assert len(pids) == 3 and len(set(pids)) == 1 and pid in (None, int(pids[0]))
    assert not list(log.parent.rglob("RAN*"))


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_name_of_a_directory_is_not_run(preload, victim, tmp_path, name):
    """In the dying process: the shell gets the path in each quoting, and none of it as code."""
    log = tmp_path / "log"
    dumps = tmp_path / name
    run = preload(
        victim("three_failures"),
        env={"OOMREC_ON_OOM_EXEC": writes_each_position(log), "OOMREC_DUMP_DIR": str(dumps)},
    )
    assert (run.exit_code, run.stdout) == (0, LIVES_ON), str(run)
    [bundle] = dumps.iterdir()
    check_positions(log, bundle, run.pid)


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("name", ODD_NAMES[:3])
@pytest.mark.parametrize("way", ["run", "watch"])
def test_the_name_of_a_directory_is_not_run_from_outside(
    oomrec, preload, victim, cgroup, tmp_path, way, name
):
    log = tmp_path / "log"
    dumps = tmp_path / name
    grow = [sys.executable, victim("python/grow_objects.py")]
    group = cgroup("100M")
    env = {"OOMREC_DUMP_DIR": str(dumps)}
    command = writes_each_position(log)
    if way == "run":
        oomrec("run", "--on-oom-exec", command, "--", *grow, preexec_fn=group.enter, env=env)
    else:
        watching = oomrec.start("watch", "--on-oom-exec", command)
        preload(*grow, preexec_fn=group.enter, env=env)
        wait_for(lambda: log.exists())
        watching.terminate()
        assert watching.wait(10) == 0
    bundles = sorted(path for path in dumps.iterdir() if path.is_dir())
    [bundle] = [path for path in bundles if str(path) == log.read_text().split("\0")[0]]
    check_positions(log, bundle, None)


def test_a_command_that_is_too_long_is_reported(preload, victim):
    run = preload(victim("three_failures"), env={"OOMREC_ON_OOM_EXEC": "true " + "x" * 9000})
    assert (run.exit_code, run.stdout) == (0, LIVES_ON), str(run)
    assert "--on-oom-exec: the command was not started: it is longer than 8 KiB" in run.stderr


@pytest.mark.parametrize("value", ["exit", "exit=256", "exit=-1", "kill", "abort=1"])
def test_an_invalid_action_is_rejected(oomrec, value):
    run = oomrec("run", "--on-oom", value, "--", "true")
    assert run.exit_code != 0 and "continue, exit=N" in run.stderr, str(run)
