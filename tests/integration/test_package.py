"""The Debian package: its metadata, its service, and the contents of the one that scripts/package made."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
UNIT = SOURCE / "debian" / "oomrec-watch@.service"
MULTIARCH = "usr/lib/x86_64-linux-gnu"


def output(*command) -> str:
    return subprocess.check_output([str(word) for word in command], text=True, timeout=60)


def test_its_version_and_build_packages_are_the_builds():
    version = re.search(r"version: '([\d.]+)'", (SOURCE / "meson.build").read_text())
    changelog = (SOURCE / "debian/changelog").read_text()
    assert version and changelog.startswith(f"oomrec ({version[1]}) ")

    listed = re.search(
        r'^build_packages="([^"]+)"', (SOURCE / "scripts/common.sh").read_text(), re.M
    )
    control = (SOURCE / "debian/control").read_text()
    depends = re.search(r"^Build-Depends:((?:.+\n)(?:^ .+\n)*)", control, re.M)
    assert listed and depends
    # g++ and xz-utils are in build-essential.
    wanted = set(listed[1].replace("\\\n", " ").split()) - {"g++", "xz-utils"}
    assert len(wanted) > 8
    assert wanted - {name.strip() for name in depends[1].split(",")} == set()


def test_its_copyright_has_the_licence_of_each_bundled_source():
    text = (SOURCE / "debian/copyright").read_text()
    listed = [
        dict(re.findall(r"^([\w-]+): (.*)", paragraph, re.M)) for paragraph in text.split("\n\n")
    ]
    licences = {one["Files"]: one["License"] for one in listed if "Files" in one}
    texts = {one["License"] for one in listed if list(one) == ["License"]}
    archives = [
        re.search(r"^source_filename = (.*)", wrap.read_text(), re.M)[1]
        for wrap in SOURCE.glob("subprojects/*.wrap")
    ]

    assert len(archives) >= 2
    for name in [*archives, "d3.min.js"]:
        path = f"subprojects/packagefiles/{name}"
        assert [glob for glob in licences if glob != "*" and fnmatch.fnmatch(path, glob)], name
    assert set(licences.values()) == texts


@pytest.mark.needs_program("systemd-analyze")
def test_its_service_is_valid_and_hardened(build_dir, tmp_path):
    """The file is checked where no systemd runs, with this build's command."""
    unit = tmp_path / UNIT.name
    text = UNIT.read_text()
    assert "\nExecStart=/usr/bin/oomrec watch " in text and "\nDocumentation=man:" in text
    text = text.replace("ExecStart=/usr/bin/oomrec", f"ExecStart={build_dir / 'oomrec'}")
    unit.write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.M))

    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    security = ["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20"]
    assert subprocess.run([*security, unit], capture_output=True, timeout=60).returncode == 0


@pytest.fixture(scope="module")
def package() -> Path:
    made = max(
        SOURCE.glob("dist/oomrec_*_amd64.deb"), key=lambda p: p.stat().st_mtime, default=None
    )
    if made is None:
        pytest.skip("no package in dist: scripts/package deb makes it, in minutes")
    return made


def test_its_files_are_where_debian_has_them(package):
    listed = output("dpkg-deb", "-c", package).splitlines()
    files = {line.split()[5].removeprefix("./") for line in listed if line.startswith("-")}

    assert files >= {
        "usr/bin/oomrec",
        f"{MULTIARCH}/oomrec/liboomrec.so",
        "usr/include/oomrec.h",
        "usr/share/man/man1/oomrec.1.gz",
        "usr/share/bash-completion/completions/oomrec.bash",
        "usr/share/zsh/site-functions/_oomrec",
        "usr/share/fish/vendor_completions.d/oomrec.fish",
        "usr/share/doc/oomrec/copyright",
        "usr/share/doc/oomrec/licences/elfutils",
        "usr/share/doc/oomrec/schemas/show.json",
    }
    assert [name for name in files if name.endswith("/oomrec-watch@.service")]
    assert not [name for name in files if name.startswith(("usr/local", "etc"))]
    depends = output("dpkg-deb", "-f", package, "Depends")
    assert {one.split()[0] for one in depends.split(", ")} <= {"libc6", "libgcc-s1", "libgcc1"}


def test_its_command_finds_its_library_and_records(package, plain, tmp_path):
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "root"], check=True, timeout=60)
    command = tmp_path / "root/usr/bin/oomrec"

    assert plain(command, "lib").stdout == f"{tmp_path}/root/{MULTIARCH}/oomrec/liboomrec.so\n"
    run = plain(command, "run", "--limit", "64M", "-c", "bytearray(100_000_000)")
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    assert "soft_limit" in plain(command, "show").stdout
