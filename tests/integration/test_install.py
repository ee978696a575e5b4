"""`meson install`: the installed files, and that they work from there."""

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
    subprocess.run(command, check=True, timeout=60, capture_output=True)
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

    run = plain(installed / "bin" / "oomrec", "run", "--", "sh", "-c", "cat /proc/$$/maps")

    assert run.exit_code == 0, str(run)
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
        ["cc", "-Wall", "-Werror", include, "-o", program, source], check=True, timeout=60
    )

    assert plain(program).stdout == "alone\n"
    assert plain(installed / "bin" / "oomrec", "run", "--", program).stdout == "recorded\n"


def man_page() -> str:
    """The man page's source with its requests, without escapes."""
    page = (SOURCE / "docs" / "man" / "oomrec.1").read_text()
    return re.sub(r"\\f.", "", page).replace("\\-", "-").replace("\\ ", " ")


def test_the_man_page_names_every_option_variable_and_file():
    page = man_page()
    assert len(recording_options()) > 10
    for flag, variable in recording_options().items():
        assert flag in page
        assert variable in page
    further = (SOURCE / "docs" / "options.md").read_text().partition("Further variables:")[2]
    for variable in re.findall(r"`([A-Z]\w+)`", further):
        assert f"\n.B {variable}\n" in page
    bundle = (SOURCE / "docs" / "bundle-format.md").read_text()
    for file in re.findall(r"^ {6}(\w+\.\w+) ", bundle, re.M):
        assert file in page.partition(".SH FILES")[2]


def test_the_man_page_agrees_with_the_help_of_every_command(oomrec):
    """Each option is in its command's paragraph, or among the common ones."""
    page = man_page()
    paragraphs = page.partition(".SH COMMANDS")[2].partition(".SH OPTIONS OF RUN")[0]
    common = paragraphs.partition(".SS Options of several commands")[2]
    commands = oomrec("--help").stdout.partition("\nexamples:")[0]
    names = re.findall(r"^  (\w+) ", commands, re.M)
    assert len(names) >= 8
    for name in names:
        ends = r"(?=^\.TP\n\.BR? \w|^\.PP|\Z)"
        of_several = r'(?:\w+ ", " )*'
        found = re.search(rf"^\.B[IR]? {of_several}{name}\b.*?{ends}", paragraphs, re.M | re.S)
        assert found, f"{name} is not in the man page"
        help_page = oomrec(name, "--help").stdout.partition("\nexamples:")[0]
        offered = set(re.findall(r"^  (--[\w-]+)", help_page, re.M))
        listed = set(re.findall(r"^\.BI? (--[\w-]+)", found.group(), re.M))
        assert listed <= offered, f"{name} has no {listed - offered}"
        elsewhere = page.partition(".SH OPTIONS OF RUN")[2] if name == "run" else ""
        missing = [option for option in offered - listed if option not in common + elsewhere]
        assert not missing, f"{name}: {missing} are not in the man page"
