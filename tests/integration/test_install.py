"""`meson install`: the installed files, and that they work from there."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from command_lines import recording_options

SOURCE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(build_dir, tmp_path_factory):
    """The prefix of an installation into a new folder."""
    root = tmp_path_factory.mktemp("installed")
    meson = "/usr/bin/meson" if Path("/usr/bin/meson").exists() else "meson"
    command = [meson, "install", "-C", build_dir, "--no-rebuild", "--quiet", "--destdir", root]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    return root / "usr" / "local"


def test_every_file_is_installed(installed):
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    libraries = {name for name in files if name.endswith("/liboomrec.so")}

    assert len(libraries) == 1
    assert files >= {
        "bin/oomrec",
        "include/oomrec.h",
        "share/man/man1/oomrec.1",
        "share/doc/oomrec/examples/train.py",
        "share/doc/oomrec/examples/train_numpy.py",
        "share/doc/oomrec/schemas/show.json",
        "share/doc/oomrec/schemas/definitions.json",
        "share/bash-completion/completions/oomrec.bash",
        "share/zsh/site-functions/_oomrec",
        "share/fish/vendor_completions.d/oomrec.fish",
    }
    others = [
        name for name in files - libraries if not name.startswith(("bin", "include", "share"))
    ]
    assert others == [], "a subproject's files were installed too"


def test_the_installed_command_finds_the_installed_library(installed, plain):
    library = next(installed.rglob("liboomrec.so"))

    run = plain(installed / "bin" / "oomrec", "run", "--", "sh", "-c", "cat /proc/$$/maps", exits=0)
    assert str(library) in run.stdout


@pytest.mark.needs_program("cc")
def test_the_header_works_in_c_without_linking_the_library(installed, plain, tmp_path):
    source = tmp_path / "user.c"
    source.write_text(
        """#include <oomrec.h>
        #include <stdio.h>
        int main(void) {
          puts(oomrec_is_active && oomrec_is_active() ? "recorded" : "alone");
          return 0;
        }"""
    )
    program = tmp_path / "user"
    include = f"-I{installed / 'include'}"
    subprocess.run(
        ["cc", "-Wall", "-Werror", include, "-o", program, source], check=True, timeout=300
    )

    assert plain(program).stdout == "alone\n"
    assert plain(installed / "bin" / "oomrec", "run", "--", program).stdout == "recorded\n"


@pytest.fixture(scope="module")
def man_page(installed) -> str:
    """The page as a terminal shows it, wide enough that no line is wrapped."""
    page = installed / "share" / "man" / "man1" / "oomrec.1"
    shown = subprocess.run(
        ["man", "--warnings", "-l", page],
        env={**os.environ, "MANWIDTH": "2000", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert shown.stderr == ""
    return shown.stdout


@pytest.mark.needs_program("man")
def test_the_man_page_names_every_option_variable_and_file(man_page):
    assert len(recording_options()) > 10
    for flag, variable in recording_options().items():
        assert re.search(rf"^ +{flag}\b", man_page, re.M), flag
        assert f"{variable}: " in man_page
    further = (SOURCE / "docs" / "options.md").read_text().partition("Further variables:")[2]
    for variable in re.findall(r"`([A-Z]\w+)`", further):
        assert re.search(rf"^ +{variable}\b", man_page, re.M), variable
    bundle = (SOURCE / "docs" / "bundle-format.md").read_text()
    for file in re.findall(r"^ {6}(\w+\.\w+) ", bundle, re.M):
        assert file in man_page.partition("\nFILES\n")[2]


@pytest.mark.needs_program("man")
def test_the_man_page_has_the_help_of_every_command(oomrec, man_page):
    """Each option stands once below its command, or among those of several."""
    commands = man_page.partition("\nCOMMANDS\n")[2]
    of_command, _, common = commands.partition("Options of several commands\n")
    starts = list(re.finditer(r"^ {7}(\w+) ", of_command, re.M))
    found = {}
    for start, end in zip(starts, [*starts[1:], None]):
        found.setdefault(start[1], of_command[start.start() : end.start() if end else None])
    for name in re.findall(r"^  (\w+) ", oomrec("--help").stdout.partition("\nexamples:")[0], re.M):
        page = oomrec(name, "--help").stdout.partition("\nexamples:")[0]
        for option in set(re.findall(r"^  (-[\w-]+)", page, re.M)) - {"--help"}:
            listed = found[name] + common + man_page.partition("\nOPTIONS OF RUN\n")[2]
            assert re.search(rf"^ +{option}\b", listed, re.M), f"{name} {option}"
