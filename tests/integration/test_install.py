"""What `meson install` puts where, and that it works from there."""

import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(build_dir, tmp_path_factory):
    """The prefix of an install into a folder of its own."""
    root = tmp_path_factory.mktemp("installed")
    meson = "/usr/bin/meson" if Path("/usr/bin/meson").exists() else "meson"
    command = [meson, "install", "-C", build_dir, "--no-rebuild", "--quiet", "--destdir", root]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    return root / "usr" / "local"


def test_everything_is_there(installed):
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    libraries = {name for name in files if name.endswith("/liboomrec.so")}

    assert len(libraries) == 1
    assert files >= {
        "bin/oomrec",
        "include/oomrec.h",
        "share/man/man1/oomrec.1",
        "share/doc/oomrec/examples/train.py",
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
def test_the_header_works_in_c_without_linking(installed, plain, tmp_path):
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


def test_the_man_page_names_every_option_and_command(oomrec):
    page = (SOURCE / "docs" / "man" / "oomrec.1").read_text().replace("\\-", "-").replace("\\", " ")
    rows = re.findall(
        r"^ +X\((\w+), +(OOMREC_\w+)", (SOURCE / "recorder" / "options.h").read_text(), re.M
    )

    assert len(rows) > 10
    for flag, variable in rows:
        assert f"--{flag.replace('_', '-')}" in page
        assert variable in page
    for command in re.findall(r"^  (\w+) ", oomrec("--help").stdout.partition("ommands")[2], re.M):
        assert re.search(rf"^\.B[IR]? {command}\b", page, re.M), f"{command} is not in the man page"
