"""How python -m oomrec.gpumemprof and python -m oomrec.tfmemprof call the oomrec command.

The command here is a script that prints each argument in brackets and exits with 7. The tests of
the commands check what the real one does with the arguments.
"""

from __future__ import annotations

import json
import re
import sys

import pytest
from conftest import written
from python_programs import package_environment

MIB = 1 << 20
ECHO = """#!/bin/sh
[ "$1 $2" != "info --json" ] || { echo '{"devices": [{"total_bytes": %d}]}'; exit 0; }
for word; do printf '[%%s]' "$word"; done
exit 7
"""


@pytest.fixture
def ask(plain, build_dir, tmp_path):
    """ask("tfmemprof", "track", …) is the run, with our script as the command."""
    command = written(tmp_path / "oomrec", ECHO % (8000 * MIB))
    command.chmod(0o755)
    environment = {**package_environment(build_dir), "OOMREC_COMMAND": str(command)}

    def run(module, *words, **env):
        return plain(sys.executable, "-m", f"oomrec.{module}", *words, env={**environment, **env})

    return run


def in_brackets(*words) -> str:
    return "".join(f"[{word}]" for word in words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["info", "--device", "0", "--detailed"], None),
        (["monitor", "--duration", "1", "--output", "a b.csv", "--format", "json"], None),
        (["track", "--watchdog", "--oom-max-dumps", "2"], None),
        (
            ["track", "--oom-max-dumps", "-1", "--watchdog"],
            ["track", "--oom-max-dumps", "0", "--watchdog"],
        ),
        (["track", "--output", "f", "--format", "json"], None),
        (["track", "--output", "f"], ["track", "--output", "f", "--format", "csv"]),
        (["track", "--output=f"], ["track", "--output=f", "--format", "csv"]),
        (["analyze", "f", "--visualization"], None),
        (
            ["diagnose", "--nonsense"],
            ["diagnose", "--name", "gpumemprof-diagnose", "--nonsense"],
        ),
        (["--version"], None),
        (["info", "--help"], None),
    ],
)
def test_gpumemprof_passes_its_arguments_on(ask, words, expected):
    run = ask("gpumemprof", *words)
    assert run.stdout == in_brackets(*(expected or words)), str(run)
    assert run.exit_code == 7 and run.stderr == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("info", "info"),
        ("--version", "--version"),
        ("-v info", "info --detailed"),
        ("monitor --duration 30", "monitor --interval 1 --duration 30"),
        ("monitor", "monitor --interval 1 --duration 315360000"),
        (
            "monitor --device /CPU:0 --duration 2.5 --output m",
            "monitor --interval 1 --device cpu --duration 2.5 --output m --format json",
        ),
        (
            "monitor --device /GPU:1 --threshold 4000 --interval 0.5",
            "track --interval 0.5 --device 1 --warning-threshold 50 --critical-threshold 100",
        ),
        (
            "track --output t --device /GPU:0",
            "track --interval 1 --device 0 --warning-threshold 50 --critical-threshold 100"
            " --output t --format json",
        ),
        (
            "track --output t --device /GPU:0 --job-id j --rank 1 --local-rank 0 --world-size 2",
            "track --interval 1 --device 0 --warning-threshold 50 --critical-threshold 100"
            " --job-id j --rank 1 --local-rank 0 --world-size 2 --output t --format json",
        ),
        (
            "track --output t --device /GPU:0 --threshold 9000",
            "track --interval 1 --device 0 --warning-threshold 100 --critical-threshold 100"
            " --output t --format json",
        ),
        ("analyze --input f", "analyze f"),
        (
            "analyze --input f --detect-leaks --optimize --visualize --report r",
            "analyze f --detect-leaks --optimize --visualize --report r",
        ),
        (
            "diagnose --duration 0 --output d --device /GPU:0",
            "diagnose --interval 0.5 --device 0 --duration 0 --output d --name tfmemprof-diagnose",
        ),
    ],
)
def test_tfmemprof_translates_its_arguments(ask, words, expected):
    run = ask("tfmemprof", *words.split())
    assert run.stdout == in_brackets(*expected.split()), str(run)
    assert run.exit_code == 7 and run.stderr == ""


@pytest.mark.parametrize("module", ["gpumemprof", "tfmemprof"])
@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help(ask, module, words):
    run = ask(module, *words)
    assert run.exit_code == 0 and run.stderr == "" and "examples:" in run.stdout
    for command in ("info", "monitor", "track", "analyze", "diagnose"):
        assert f"  {command} " in run.stdout


@pytest.mark.parametrize(
    ("module", "words", "exit_code", "problem"),
    [
        ("gpumemprof", "profile", 2, "unknown command 'profile'"),
        ("tfmemprof", "profile", 2, "invalid choice"),
        ("tfmemprof", "track", 2, "--output"),
        ("tfmemprof", "analyze", 2, "--input"),
        ("tfmemprof", "monitor --device /TPU:0", 2, "is not a device"),
        ("tfmemprof", "diagnose --device mps", 1, "/CPU:0|cpu"),
        ("tfmemprof", "diagnose --interval x", 1, "--interval"),
    ],
)
def test_bad_input(ask, module, words, exit_code, problem):
    run = ask(module, *words.split())
    assert run.exit_code == exit_code and run.stdout == "", str(run)
    assert any(word in run.stderr for word in problem.split("|"))


@pytest.mark.parametrize(("module", "device"), [("gpumemprof", "cpu"), ("tfmemprof", "/CPU:0")])
def test_diagnose_writes_the_expected_directory(plain, build_dir, tmp_path, module, device):
    """The real command writes to the working directory, an existing directory, or the given one."""
    (tmp_path / "there").mkdir()
    words = ["diagnose", "--device", device, "--duration", "0.1", "--interval", "0.1"]
    for output in ([], ["--output", "there"], ["--output", "mine"]):
        run = plain(
            sys.executable,
            "-m",
            f"oomrec.{module}",
            *words,
            *output,
            env=package_environment(build_dir),
        )
        assert run.exit_code in (0, 2) and "Status: " in run.stdout, str(run)
    dated = re.compile(rf"{module}-diagnose-\d{{8}}-\d{{6}}")
    for directory in (tmp_path, tmp_path / "there"):
        [made] = [path for path in directory.iterdir() if "-diagnose-" in path.name]
        assert dated.fullmatch(made.name)
        assert (made / "manifest.json").exists()
    assert (tmp_path / "mine" / "manifest.json").exists()


def test_a_threshold_for_a_gpu_of_unknown_size(ask, tmp_path):
    (tmp_path / "oomrec").write_text("#!/bin/sh\nexit 2\n")
    run = ask("tfmemprof", "track", "--output", "t", "--device", "/GPU:0")
    assert run.exit_code == 2 and "oomrec track --warning-threshold" in run.stderr


@pytest.mark.parametrize("words", ["gpumemprof info", "tfmemprof info"])
def test_the_commands_python_parts_use_this_python(ask, tmp_path, words):
    """A plot is drawn by the matplotlib of the environment that runs the module."""
    (tmp_path / "oomrec").write_text('#!/bin/sh\nprintf %s "$OOMREC_PYTHON"\n')
    assert ask(*words.split()).stdout == sys.executable


def test_a_missing_command(ask):
    run = ask("gpumemprof", "info", OOMREC_COMMAND="", PATH="/nowhere")
    assert run.exit_code == 127 and "OOMREC_COMMAND" in run.stderr, str(run)


def test_the_scripts_arguments_are_passed_unchanged(ask):
    run = ask("gpumemprof", "monitor", "--output", json.dumps({"a b": "ü"}))
    assert run.stdout == in_brackets("monitor", "--output", json.dumps({"a b": "ü"}))
