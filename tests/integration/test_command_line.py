"""The command line: commands, help, mistakes, exit codes, terminal and pipe."""

import subprocess
import sys
from pathlib import Path

import pytest
from terminal import printed_on_terminal

COMMANDS = [
    "run", "show", "stats", "tree", "timeline", "top", "leaks", "diff", "fragmentation", "export",
    "report", "flamegraph", "table", "merge", "fleet", "redact", "ls", "recover", "watch", "ended", "dump",
    "attach", "monitor", "track", "analyze", "diagnose", "info", "lib", "simulate", "stress", "completion",
]  # fmt: skip
SOURCE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_golden_help(oomrec, golden, command):
    """Every command shows its options and examples, in 100 columns."""
    run = oomrec(command, "--help")

    assert run.exit_code == 0 and run.stderr == ""
    assert "\nexamples:\n" in run.stdout
    assert all(len(line) <= 100 for line in run.stdout.splitlines())
    golden(f"help_{command}.txt", run.stdout)


def test_golden_usage(oomrec, golden):
    run = oomrec("--help", exits=0)
    golden("help.txt", run.stdout)


def test_the_options_page_matches_the_table():
    checked = subprocess.run([sys.executable, SOURCE / "scripts" / "options-page", "--check"])
    assert checked.returncode == 0


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("shwo", "show"),
        ("stat", "stats"),
        ("recovre", "recover"),
        ("train.py", "run train.py"),
        ("--limit", "run --limit …"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(oomrec, typed, meant):
    (oomrec.directory / "train.py").touch()
    run = oomrec(typed, exits=2)
    assert run.stderr.splitlines() == [
        f"oomrec: unknown command '{typed}'",
        f"  Did you mean `oomrec {meant}`?",
    ]


@pytest.mark.parametrize(
    "words, exit_code",
    [
        (["show", "--jsn"], 2),
        (["tree", "--max-depth", "x"], 2),
        (["tree", "--space", "attic"], 2),
        (["show", "nowhere"], 2),
        (["show", "/etc/passwd"], 2),
        (["show", "/"], 2),
        (["dump", "word"], 1),
        (["dump", "999999999"], 1),
        (["show"], 1),
        (["ls"], 1),
        (["ls", "nowhere"], 2),
        (["run"], 125),
        (["run", "--limit", "5X", "--", "true"], 125),
        (["run", "--limit", "-1", "--", "true"], 125),
        (["run", "--mode", "some", "--", "true"], 125),
        (["run", "--max-dumps", "many", "--", "true"], 125),
    ],
)
def test_a_mistake_prints_two_lines(oomrec, words, exit_code):
    """What happened, and what to do; nothing on stdout."""
    run = oomrec(*words, exits=exit_code)
    assert run.stdout == ""
    happened, advice = run.stderr.splitlines()
    assert happened.startswith(f"oomrec {words[0]}: ") and advice.startswith("  ")


@pytest.mark.parametrize(
    "words, happened, advice",
    [
        (
            "tree --min-percent x",
            "invalid value 'x' for --min-percent",
            "Use a number, such as 0.5.",
        ),
        ("tree --min-percent nan", "invalid value 'nan' for --min-percent", "Use a number"),
        ("tree --min-percent -1", "invalid value '-1' for --min-percent", "Use a number"),
        ("tree --max-depth -1", "invalid value '-1' for --max-depth", "Use a whole number."),
        ("show --top x", "invalid value 'x' for --top", "Use a whole number."),
        ("show --top", "--top needs a value", "--top N: show the N largest holders"),
        ("show one two", "unexpected argument 'two'", "`oomrec show --help` lists the options."),
        ("tree --at now", "invalid value 'now' for --at", "Use one of peak, end."),
        ("stats --jsn", "unknown option --jsn", "Did you mean --json?"),
        ("dump", "no process was given", "Give the pid of a running process"),
        ("run --limit", "--limit needs a value", "--limit SIZE: refuse allocations beyond SIZE"),
        ("run --limit -- true", "--limit needs a value", "--limit SIZE: "),
        ("run --limit 8GB -- true", "invalid value '8GB' for --limit", "Use 8G: suffixes are K M"),
        ("run --limit 1.5GiB -- true", "invalid value '1.5GiB' for --limit", "Use 1.5G: "),
        ("run --limit B -- true", "invalid value 'B' for --limit", "Use a size such as 64M"),
        ("run --max-dumps 3B -- true", "invalid value '3B' for --max-dumps", "Use a whole number."),
    ],
)
def test_a_mistake_names_the_commands_own_options(oomrec, words, happened, advice):
    first, second = oomrec(*words.split()).stderr.splitlines()
    assert first == f"oomrec {words.split()[0]}: {happened}"
    assert second.startswith("  " + advice)


def test_the_last_of_a_repeated_option_counts(oomrec):
    oomrec("run", "--limit", "1K", "--limit", "1G", "--quiet", "--quiet", "--", "true", exits=0)


@pytest.mark.parametrize("words", ["--help", "show --help", "show --json"])
def test_a_write_error_fails_the_command(oomrec, words):
    """Whether the disk fills up during the writing or at the end."""
    code = oomrec("run", "--limit", "64M", "--", "python3", "-c", "bytes(1 << 30)").exit_code
    assert code == 1
    with open("/dev/full", "w") as full:
        run = oomrec(*words.split(), stdout=full)
    assert run.exit_code == 2
    assert "could not write the output: No space left on device\n" in run.stderr


def test_a_bad_variable_is_named(oomrec):
    run = oomrec("run", "--", "true", env={"OOMREC_LIMIT": "lots"}, exits=125)
    assert "invalid value 'lots' for OOMREC_LIMIT" in run.stderr


@pytest.mark.parametrize("words", ["--version", "run -- true"])
def test_variables_of_the_programs_allocator_are_not_the_commands(oomrec, words):
    """The command is linked with mimalloc: a limit would end it, and the statistics are not its own."""
    variables = {"MIMALLOC_LIMIT_OS_ALLOC": "1", "MIMALLOC_SHOW_STATS": "1"}
    run = oomrec(*words.split(), env=variables, exits=0)
    assert run.stderr == ""


def test_an_empty_result_is_valid_json(oomrec):
    run = oomrec("ls", "--json", exits=1)
    assert run.json() == {"schema_version": 1, "bundles": [], "recordings": None}


def test_colour_only_on_a_terminal(oomrec, build_dir):
    environment = {**oomrec.environment, "TERM": "xterm"}
    command = [build_dir / "oomrec", "info", "--", "true"]

    assert b"\x1b[" in printed_on_terminal(command, environment)
    assert b"\x1b[" not in printed_on_terminal(command, {**environment, "NO_COLOR": "1"})
    assert "\x1b[" not in oomrec("info", "--", "true").stdout


@pytest.mark.parametrize("command, exit_code", [("ls", 2), ("--version", 2), ("run -- true", 125)])
def test_too_little_address_space_prints_one_line(oomrec, tmp_path, command, exit_code):
    """With any amount from the loader's minimum up, it prints one line or works. It never aborts."""
    failures = 0
    for limit_kib in range(16_000, 104_000, 4_000):
        run = subprocess.run(
            ["sh", "-c", f'ulimit -v {limit_kib}; exec "$0" {command}', oomrec._prefix[0]],
            cwd=tmp_path,
            env=oomrec.environment,
            capture_output=True,
            text=True,
        )
        if run.returncode == 127 and "shared libraries" in run.stderr:
            continue  # the loader's own message
        assert run.returncode in (0, 1, exit_code), (limit_kib, run)
        failures += "there is not enough memory" in run.stderr
    assert failures > 2 and run.returncode in (0, 1)
