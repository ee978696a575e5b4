"""`oomrec run`: exit codes, signals, the terminal, running as pid 1."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import written


@pytest.mark.parametrize("exit_code", [0, 1, 7, 125, 255])
def test_the_programs_exit_code_is_passed_on(oomrec, exit_code):
    assert oomrec("run", "--", "sh", "-c", f"exit {exit_code}").exit_code == exit_code


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM"])
def test_a_signal_gives_128_plus_its_number(oomrec, name):
    run = oomrec("run", "--quiet", "--", "sh", "-c", f"kill -{name} $$")
    assert run.exit_code == 128 + getattr(signal, f"SIG{name}")


def test_a_missing_program_is_127(oomrec):
    run = oomrec("run", "--", "no-such-program", exits=127)
    assert run.stderr.splitlines()[0] == "oomrec run: program not found: no-such-program"


def test_a_dump_directory_that_cannot_be_one_is_named_at_the_start(oomrec, tmp_path):
    (tmp_path / "file").touch()
    said = "Not a directory; bundles will go beside the recordings instead (oomrec info says where)"
    for name in ("file", "file/below"):
        run = oomrec("run", "--dump-dir", name, "--", "true")
        assert (run.exit_code, run.stderr) == (0, f"oomrec: {tmp_path / name}: {said}\n")
        assert oomrec("run", "--quiet", "--dump-dir", name, "--", "true").stderr == ""
    for name in ("new/below", "new/%p", "."):
        assert oomrec("run", "--dump-dir", name, "--", "true").stderr == ""


def test_a_machine_without_python_has_python3(oomrec, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to("/usr/bin/python3")
    run = oomrec("run", "--", "python", "x.py", env={"PATH": str(tmp_path / "bin")})
    said = ["oomrec run: program not found: python", "  Did you mean python3?"]
    assert (run.exit_code, run.stderr.splitlines()) == (127, said)


def test_a_program_that_may_not_be_run_is_126(oomrec, tmp_path):
    (tmp_path / "plain").write_text("text")
    hints = {"./plain": "It needs chmod +x.", "/etc": "It is a directory."}
    for program, hint in hints.items():
        run = oomrec("run", "--", program, exits=126)
        said = [f"oomrec run: {program} is not executable", f"  {hint}"]
        assert run.stderr.splitlines() == said


def test_output_and_input_pass_through(oomrec):
    run = oomrec("run", "--", "cat", input="the program's words\n")
    assert run.stdout == "the program's words\n" and run.stderr == ""


def test_a_signal_sent_to_us_reaches_the_program(oomrec):
    script = "trap 'echo got it; exit 3' USR1; echo ready; while :; do sleep 0.05; done"
    process = oomrec.start("run", "--", "sh", "-c", script).once("ready")
    process.send_signal(signal.SIGUSR1)
    run = oomrec.finish(process)
    assert run.exit_code == 3 and run.stdout == "got it\n"


def test_ctrl_c_reaches_the_program_once(oomrec):
    """The terminal signals the whole group, so `oomrec run` must not pass it on again."""
    script = (
        "import signal, time, sys\n"
        "count = 0\n"
        "def seen(*_):\n"
        "    global count\n"
        "    count += 1\n"
        "signal.signal(signal.SIGINT, seen)\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 0.7\n"
        "while time.monotonic() < end:\n"
        "    time.sleep(0.05)\n"
        "print(count)\n"
    )
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *oomrec._prefix, "run", "--", "python3", "-c", script],
        stdin=theirs,
        stdout=subprocess.PIPE,
        env=oomrec.environment,
    )
    os.close(theirs)
    assert process.stdout.readline() == b"ready\n"
    os.write(ours, b"\x03")
    assert process.stdout.read() == b"1\n"
    assert process.wait(10) == 0
    os.close(ours)


def test_an_unsuitable_program_runs_unrecorded(oomrec):
    run = oomrec("run", "--", "/sbin/ldconfig", "--version")
    assert run.exit_code == 0 and "ldconfig" in run.stdout
    assert len(run.stderr.splitlines()) == 1 and "statically linked" in run.stderr


def test_an_existing_ld_preload_is_kept(oomrec, library):
    run = oomrec("run", "--", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "libm.so.6"})
    assert run.stdout.strip() == f"{library}:libm.so.6"


def test_flags_become_variables(oomrec):
    run = oomrec("run", "--limit", "512M", "--children", "0", "--", "sh", "-c", "env")
    assert "OOMREC_LIMIT=512M" in run.stdout and "OOMREC_CHILDREN=0" in run.stdout


def test_every_invalid_value_is_reported(oomrec, preload, victim):
    bad = {"OOMREC_MODE": "fast", "OOMREC_MAX_DUMPS": "many"}
    run = oomrec("run", "--limit", "8GB", "--", "true", env=bad, exits=125)
    what, advice = run.stderr.splitlines()
    assert what.startswith("oomrec run: invalid values: "), what
    for name, value in (("--limit", "8GB"), ("OOMREC_MODE", "fast"), ("OOMREC_MAX_DUMPS", "many")):
        assert f"'{value}' for {name}" in what and f"{name}: " in advice, str(run)
    ignored = preload(victim("hello"), env=bad).stderr.splitlines()
    assert len(ignored) == 2 and all(
        line.startswith("oomrec: ignoring OOMREC_M") and ": expected " in line for line in ignored
    )


def test_too_small_a_recording_size_is_rejected(oomrec, preload, victim):
    for size in ("1", "0", "511K"):
        run = oomrec("run", "--recording-size", size, "--", "true")
        assert run.exit_code == 125 and f"'{size}' for --recording-size" in run.stderr, str(run)
        assert "Use a size of at least 512K" in run.stderr
        run = preload(victim("hello"), env={"OOMREC_RECORDING_SIZE": size})
        ignored = f"oomrec: ignoring OOMREC_RECORDING_SIZE={size}: expected a size of at least 512K"
        assert run.exit_code == 0 and run.stderr.startswith(ignored), str(run)
    run = oomrec("run", "--recording-size", "8MB", "--", "true")
    assert "Use 8M: suffixes are K M G T" in run.stderr


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_the_smallest_recording_names_the_holder(oomrec, victim, mode):
    script = "held = [bytearray(1 << 20) for _ in range(30)]; bytearray(1 << 46)"
    words = ["--recording-size", "512K", "--mode", mode]
    run = oomrec("run", *words, "--", "python3", "-c", script, exits=1)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "request_too_large"
    assert any(frame["kind"] == "python" for frame in shown["request"]["stack"])
    largest = shown["holders"][0]
    assert 29 << 20 <= largest["bytes"] <= 31 << 20, largest


def directories(run) -> list[str]:
    return [line for line in run.stderr.splitlines() if "recording" in line]


def test_a_fallback_session_directory_is_reported(oomrec, preload, tmp_path):
    wished = tmp_path / "made" / "for it"
    held = "import os; x = bytearray(20 << 20); os.system('true'); pid = os.fork()"
    held += "; x += bytearray(9 << 20)"
    run = oomrec("run", "--session-dir", wished, "--", "python3", "-c", held)
    (line,) = set(directories(run))  # the same for each program that was started
    assert line.startswith(f"oomrec: {wished}: No such file or directory; the recording is in /")
    assert line.endswith(" instead") and not wished.exists()

    wished.parent.mkdir()
    run = oomrec("run", "--session-dir", wished, "--", "python3", "-c", held)
    assert directories(run) == [f"oomrec: made {wished} for recordings"] and wished.is_dir()
    assert directories(oomrec("run", "--session-dir", wished, "--", "python3", "-c", held)) == []

    (tmp_path / "file").write_text("")
    env = {"OOMREC_SESSION_DIR": tmp_path / "file"}
    assert "file: Not a directory; the recording is in " in preload("true", env=env).stderr
    assert preload("true", env={**env, "OOMREC_QUIET": "1"}).stderr == ""


def test_a_mistyped_variable_is_reported(oomrec, preload, victim):
    mistyped = {"OOMREC_LIMTI": "1G", "OOMREC_PROC_ROOT": "/proc"}
    advice = "oomrec: unknown variable OOMREC_LIMTI; did you mean OOMREC_LIMIT?\n"
    run = oomrec("run", "--", victim("hello"), env=mistyped)
    assert (run.exit_code, run.stderr) == (0, advice)
    assert oomrec("info", env=mistyped).stderr == advice
    assert oomrec("run", "--quiet", "--", victim("hello"), env=mistyped).stderr == ""
    assert preload(victim("hello"), env=mistyped).stderr == ""  # it may belong to another library


def test_a_limit_is_reported_as_it_was_given(oomrec):
    script = "held = []\nwhile True: held.append(bytearray(32 << 20))"
    run = oomrec("run", "--limit-as", "600M", "--", "python3", "-c", script)
    assert "(RLIMIT_AS) of 600.0 MiB plus 32.0 MiB for the recorder is reached" in run.stderr
    assert oomrec.json("show")["limit"]["bytes"] == 632 << 20


def test_a_request_beyond_the_whole_limit_is_reported(oomrec, victim):
    run = oomrec("run", "--limit", "64M", "--", victim("dies"), "exits")
    assert "refused: that is more than the soft limit of 64.0 MiB (live 20." in run.stderr


def test_a_missing_preload_library_is_reported(oomrec):
    run = oomrec("run", "--", "true", env={"OOMREC_LIBRARY": "/nowhere.so"})
    assert run.exit_code == 125 and "OOMREC_LIBRARY" in run.stderr


@pytest.mark.needs_pid_namespace
def test_as_pid_1_it_reaps_orphans_and_passes_signals_on(oomrec, build_dir, tmp_path):
    """Orphans leave no zombies, TERM ends the program, and its exit code is passed on."""
    script = (
        "for i in 1 2 3 4 5; do (sleep 0.05 & exit) ; done; sleep 0.4\n"
        "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l\n"
        "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done\n"
    )
    command = ["unshare", "-fp", "--mount-proc", build_dir / "oomrec", "run", "--quiet", "--"]
    process = subprocess.Popen(
        [*command, "sh", "-c", script], stdout=subprocess.PIPE, env=oomrec.environment
    )
    assert process.stdout.readline() == b"0\n"
    assert process.stdout.readline() == b"ready\n"
    inner = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True
    ).stdout.split()[0]
    time.sleep(0.1)
    os.kill(int(inner), signal.SIGTERM)
    assert process.wait(10) == 9


def test_a_small_stack_costs_neither_the_exit_code_nor_the_bundle(oomrec, plain, victim):
    """Symbolizing needs more stack than such a shell gives."""
    command = f"ulimit -s 128; {oomrec._prefix[0]} run --limit 64M -- {victim('dies')} exits"
    run = plain("sh", "-c", f"{command}; echo $?; {oomrec._prefix[0]} show")
    assert run.stdout.startswith("ready\n3\nsoft_limit (proven)\n"), str(run)
    assert "dies" in run.stdout and "refused" in run.stderr


@pytest.mark.parametrize("limit", ["1K", "2M"])
def test_a_limit_too_low_for_main_prints_one_line(oomrec, victim, limit):
    run = oomrec("run", "--limit", limit, "--", victim("early"))
    assert run.exit_code == 3 and run.stdout == ""
    assert run.stderr.splitlines()[-1] == (
        f"oomrec: early was refused memory before main: a limit of {limit[0]}.0 {limit[1]}iB is too low "
        "for it; raise --limit"
    )
    enough = oomrec("run", "--limit", "32M", "--", victim("early"))
    assert enough.stdout == "main\n" and enough.stderr == ""


@pytest.mark.parametrize("option", ["--limit", "--limit-as"])
def test_a_limit_too_low_for_the_interpreter_prints_one_line(oomrec, python, option):
    # The recorder's own mappings are added to --limit-as, and an interpreter alone might fit into that.
    large = {f"FILLER_{number}": "x" * 100_000 for number in range(17)}
    if option == "--limit-as":
        large["LD_PRELOAD"] = "libstdc++.so.6"
    run = oomrec("run", option, "1K", "--", python(), "-c", "print('ran')", env=large)
    assert run.exit_code != 0 and run.stdout == ""
    (line,) = [
        line for line in run.stderr.splitlines() if "refused memory before its first" in line
    ]
    assert line.endswith(f"raise {option}")


def test_no_such_line_once_main_was_reached(oomrec, victim, python):
    run = oomrec("run", "--limit", "1M", "--", victim("dies"), "exits")
    assert run.exit_code == 139 and "before main" not in run.stderr, str(run)
    script = "import json; x = bytearray(1 << 30)"
    run = oomrec("run", "--limit", "64M", "--", python(), "-c", script)
    assert "MemoryError" in run.stderr and "before its first line" not in run.stderr


def test_a_survived_refusal_is_not_said_to_be_the_end(oomrec, python):
    """Its imports failed for lack of memory, were made again, and its own first line ran."""
    script = 'print("ran"); raise SystemExit(3)'
    for limit in ("1500K", "2M", "2500K", "3M"):
        run = oomrec("run", "--limit", limit, "--", python(), "-c", script)
        if run.stdout == "ran\n" and "refused" in run.stderr:
            break
    else:
        pytest.skip("no limit at which this Python survives a refusal in its start")
    assert run.exit_code == 3 and "never reached" not in run.stderr
    assert "was refused memory before its first line" in run.stderr


@pytest.mark.needs_program("gcc")
def test_libraries_that_do_not_fit_are_reported(oomrec, plain, tmp_path):
    """The loader ends the program before our library is loaded."""
    (tmp_path / "big.c").write_text("char big[1 << 30]; int f(void) { return big[0]; }\n")
    (tmp_path / "main.c").write_text("int f(void); int main(void) { return f(); }\n")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", "libbig.so", "big.c"], cwd=tmp_path, check=True
    )
    build = ["gcc", "main.c", "-o", "program", "-L.", "-lbig", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(build, cwd=tmp_path, check=True)
    command = ["sh", "-c", 'ulimit -v 600000; exec "$0" run -- ./program', oomrec._prefix[0]]
    run = plain(*command, exits=127)
    assert run.stderr.splitlines()[-1] == (
        "oomrec: program never reached its main: its libraries do not fit into 585.9 MiB of "
        "address space; raise the limit (ulimit -v)"
    )


ENDS = """
import os, sys
kept = [bytearray(1_000_000) for _ in range(int(sys.argv[1]))]
END
"""


@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)"])
def test_a_bundle_of_a_program_that_exits_normally(oomrec, end):
    """On request, and only for processes that held something."""
    words = ["run", "--dump-at-exit", "--", sys.executable, "-c", ENDS.replace("END", end)]
    small = oomrec(*words, "2")
    assert small.exit_code == 3 and small.bundles() == []

    run = oomrec(*words, "40")

    assert run.exit_code == 3 and run.stdout == ""
    result = oomrec.json("show", run.only_bundle())
    assert (result["trigger"], result["context"]) == ("request", "at the end of the process")
    assert result["verdict"]["summary"] == "bundle requested at exit (--dump-at-exit)"
    at_peak = oomrec.json("tree", "--at", "peak", run.only_bundle())["root"]
    assert at_peak["bytes"] >= 40_000_000


SHOWS_PYTHON = "import os, sys; print(sys.prefix, sys.argv[1:], os.environ.get('OOMREC_PYTHON'))"


@pytest.mark.parametrize(
    "words",
    [
        ["shows_python.py"],
        ["./shows_python.py"],
        ["--", "shows_python.py"],
        ["--quiet", "--limit", "8G", "shows_python.py"],
        ["-m", "shows_python"],
        ["--quiet", "-m", "shows_python"],
        ["--", "-c", SHOWS_PYTHON],
        ["--mode=exact", "-c", SHOWS_PYTHON],
    ],
)
def test_a_python_script_needs_no_interpreter_argument(oomrec, words):
    (oomrec.directory / "shows_python.py").write_text(SHOWS_PYTHON)
    run = oomrec("run", *words, "--limit", "1K", env={"PYTHONPATH": "."})
    assert (run.exit_code, run.stdout) == (0, f"{sys.prefix} ['--limit', '1K'] None\n"), run


def test_the_python_is_the_commands_own_or_the_given_one(
    oomrec, build_dir, library, plain, tmp_path
):
    scripts = tmp_path / "bin"
    scripts.mkdir()
    for name in ("oomrec", "liboomrec.so"):
        try:
            os.link(build_dir / name, scripts / name)
        except OSError:
            shutil.copy2(build_dir / name, scripts / name)
    for name in ("beside", "named"):
        file = scripts / {"beside": "python3"}.get(name, name)
        file.write_text(f"#!/bin/sh\necho {name} $OOMREC_PYTHON $*\n")
        file.chmod(0o755)
    script = written(tmp_path / "train.py", "#!/bin/false\n")
    script.chmod(0o755)

    run = plain(scripts / "oomrec", "run", script, "-v")
    assert run.stdout == f"beside {script} -v\n", run
    run = plain(scripts / "oomrec", "run", script, env={"OOMREC_PYTHON": scripts / "named"})
    assert run.stdout == f"named {script}\n", run


def test_a_script_is_found_on_the_path_or_reported_missing(oomrec, tmp_path):
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "shows_python.py").write_text(SHOWS_PYTHON)
    (scripts / "shows_python.py").chmod(0o755)
    path = f"{scripts}:{oomrec.environment['PATH']}"
    assert oomrec("run", "shows_python.py", env={"PATH": path}).stdout == f"{sys.prefix} [] None\n"

    run = oomrec("run", "nowhere.py")
    assert run.exit_code == 127 and "no such file: nowhere.py" in run.stderr


def test_info_takes_the_same_arguments(oomrec):
    (oomrec.directory / "shows_python.py").write_text(SHOWS_PYTHON)
    for words in (["shows_python.py"], ["-m", "shows_python"]):
        result = oomrec.json("info", *words, env={"PYTHONPATH": "."})
        assert result["recorded"] and "its stacks are read" in result["python"], result
