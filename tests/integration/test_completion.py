"""Completion in real shells: commands, options, values, bundles, processes, programs."""

import re
from pathlib import Path

import pytest
import shells
from command_lines import commands, help_of
from conftest import written

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
SHELLS = [
    pytest.param(name, marks=pytest.mark.needs_program(name)) for name in ("bash", "zsh", "fish")
]


@pytest.fixture(params=SHELLS)
def offered(request, oomrec, tmp_path):
    """offered("oomrec sh") is the set of a shell's completions of the last word."""
    shell = request.param
    made = oomrec("completion", shell)
    assert made.exit_code == 0 and made.stderr == ""
    script = written(tmp_path / f"oomrec.{shell}", made.stdout)

    def words(line: str) -> set[str]:
        if shell != "bash":
            return getattr(shells, shell)(script, line, tmp_path)
        split = re.split(r"(=)|\s", line)  # as bash does: COMP_WORDBREAKS
        split = [word for word in split[:-1] if word] + split[-1:]
        return shells.bash(script, split, tmp_path)

    words.shell = shell
    return words


def options_in(page: str) -> set[str]:
    return set(re.findall(r"^  (-[-\w]+)", page, re.MULTILINE))


def test_commands_are_completed(oomrec, offered):
    names = set(commands(oomrec))
    assert len(names) >= 12
    assert names <= offered("oomrec ")
    assert offered("oomrec simu") in ({"simulate"}, {"simulate "})


def test_every_option_of_every_command_is_offered(oomrec, offered):
    """Those that --help lists. For zsh, which takes a second per line, only of a few commands."""
    names = commands(oomrec)
    for name in names if offered.shell != "zsh" else ["run", "tree"]:
        listed = options_in(help_of(oomrec, name))
        assert "--help" in listed
        assert {word.rstrip("=") for word in offered(f"oomrec {name} --")} >= {
            option for option in listed if option.startswith("--")
        }, name


@pytest.mark.parametrize(
    "line, expected",
    [
        ("oomrec tree --space ", {"all", "heap", "torch"}),
        ("oomrec tree --space=cuda_v", {"cuda_va"}),
        ("oomrec run --limit 8G --mode ", {"sampled", "exact", "off"}),
        ("oomrec simulate soft", {"soft_limit"}),
        ("oomrec completion ", {"bash", "zsh", "fish"}),
        ("oomrec fleet re", {"report", "regressed"}),
        ("oomrec ls oom_d", {"oom_dumps/"}),
        ("oomrec show ", {"oom_dumps/oom_cpu_one"}),
        ("oomrec run --dump-dir oom_d", {"oom_dumps/"}),
        ("oomrec run --limit 8G -- pytho", {"python3"}),
        ("oomrec run -- cat notes", {"notes.txt"}),
    ],
)
def test_values_are_completed_by_their_type(offered, tmp_path, line, expected):
    (tmp_path / "oom_dumps" / "oom_cpu_one").mkdir(parents=True)
    (tmp_path / "notes.txt").touch()
    behind = line.split()[-1].partition("=")[0] + "="  # fish repeats the option
    words = {word.removeprefix(behind).rstrip("/ ") for word in offered(line)}
    assert {word.rstrip("/") for word in expected} <= words
    if not line.endswith(" "):
        typed = re.split(r"[=\s]", line)[-1]
        assert all(word.startswith(typed) for word in words)


def test_recorded_processes_are_completed(offered, preload):
    recorded = preload.start("sleep", "600")
    while "liboomrec" not in Path(f"/proc/{recorded.pid}/maps").read_text():
        assert recorded.poll() is None
    for command in ["dump", "show"]:
        assert str(recorded.pid) in offered(f"oomrec {command} ")


def test_the_programs_options_are_not_completed_as_ours(offered):
    assert "--limit" not in offered("oomrec run -- ls --")
    assert "--json" not in offered("oomrec show --source-dir ")


@pytest.mark.needs_file(str(BASH_COMPLETION))
def test_bash_completes_the_program_by_its_own_rules(oomrec, tmp_path):
    script = written(tmp_path / "oomrec.bash", oomrec("completion", "bash").stdout)
    words = ["oomrec", "run", "--limit", "8G", "--", "kill", "-T"]
    assert "-TERM" in shells.bash(script, words, tmp_path, BASH_COMPLETION)


def test_an_unknown_shell_is_reported(oomrec):
    run = oomrec("completion", "tcsh")
    assert run.exit_code == 2 and run.stdout == ""
    assert run.stderr.splitlines()[1] == "  Give one of bash, zsh, fish."
