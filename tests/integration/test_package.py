"""The Debian package: its metadata, its service, and the contents of those that scripts/package made."""

from __future__ import annotations

import fnmatch
import platform
import re
import subprocess
from pathlib import Path

import pytest
from conftest import written

SOURCE = Path(__file__).resolve().parents[2]
UNIT = SOURCE / "debian" / "oomrec-watch@.service"
# By Debian's name of an architecture: its folder of libraries, and what readelf calls its processor.
ARCHITECTURES = {
    "amd64": ("usr/lib/x86_64-linux-gnu", "Advanced Micro Devices X86-64"),
    "arm64": ("usr/lib/aarch64-linux-gnu", "AArch64"),
}
OWN = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
NEWEST_GLIBC = (2, 28)


def output(*command) -> str:
    return subprocess.check_output([str(word) for word in command], text=True, timeout=300)


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


def test_it_is_made_for_each_processor_that_the_build_knows():
    control = (SOURCE / "debian/control").read_text()
    listed = re.search(r"^Architecture: (.*)", control, re.M)
    known = {path.name for path in (SOURCE / "common/machine").iterdir() if path.is_dir()}

    assert listed and set(listed[1].split()) == set(ARCHITECTURES)
    assert {Path(folder).name.split("-")[0] for folder, _ in ARCHITECTURES.values()} == known


@pytest.mark.needs_program("dpkg")
@pytest.mark.parametrize("script", ["package deb", "distributions --package"])
def test_another_architecture_is_refused_before_anything_is_installed(script):
    name, *words = script.split()
    command = [SOURCE / "scripts" / name, *words, "--arch", "riscv64"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert (run.returncode, run.stdout) == (1, "")
    assert "no package is made for the architecture riscv64" in run.stderr
    assert "--arch takes amd64 or arm64" in run.stderr


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


@pytest.mark.needs_program("dpkg")
@pytest.mark.parametrize(
    ("rows", "is_installed"),
    [
        (["installed {own}"], True),
        (["installed all"], True),
        (["installed {other}", "installed {own}"], True),
        (["installed {other}"], False),
        (["config-files {own}"], False),
        ([], False),
    ],
)
def test_the_scripts_ask_for_packages_of_this_machine(tmp_path, rows, is_installed):
    """After a cross build, dpkg lists a library once for each architecture."""
    (other,) = set(ARCHITECTURES) - {OWN}
    listed = "\n".join(row.format(own=OWN, other=other) for row in rows)
    dpkg_query = written(tmp_path / "dpkg-query", f"#!/bin/sh\ncat <<END\n{listed}\nEND\n")
    dpkg_query.chmod(0o755)
    ask = f"PATH={tmp_path}:$PATH; . scripts/common.sh; is_installed libdw-dev"

    assert subprocess.run(["sh", "-c", ask], cwd=SOURCE, timeout=300).returncode == (
        not is_installed
    )


@pytest.mark.needs_program("systemd-analyze")
def test_its_service_is_valid_and_hardened(build_dir, tmp_path):
    """The file is checked where no systemd runs, with this build's command."""
    unit = tmp_path / UNIT.name
    text = UNIT.read_text()
    assert "\nExecStart=/usr/bin/oomrec watch " in text and "\nDocumentation=man:" in text
    text = text.replace("ExecStart=/usr/bin/oomrec", f"ExecStart={build_dir / 'oomrec'}")
    unit.write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.M))

    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=300
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    security = ["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20"]
    assert subprocess.run([*security, unit], capture_output=True, timeout=300).returncode == 0


def package_for(arch: str) -> Path:
    made = max(
        SOURCE.glob(f"dist/oomrec_*_{arch}.deb"), key=lambda p: p.stat().st_mtime, default=None
    )
    if made is None:
        makes_it = "scripts/package deb" + (f" --arch {arch}" if arch != OWN else "")
        pytest.skip(f"no package for {arch} in dist: {makes_it} makes it, in minutes")
    return made


@pytest.fixture(params=ARCHITECTURES)
def arch(request) -> str:
    return request.param


def files_in(package: Path) -> dict[str, str]:
    """Each file's and link's permissions."""
    listed = [line.split() for line in output("dpkg-deb", "-c", package).splitlines()]
    return {row[5].removeprefix("./"): row[0] for row in listed if not row[0].startswith("d")}


def test_its_files_are_where_debian_has_them(arch):
    package = package_for(arch)
    files = files_in(package)

    assert set(files) >= {
        "usr/bin/oomrec",
        f"{ARCHITECTURES[arch][0]}/oomrec/liboomrec.so",
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
    assert "libc6 (>= 2." in depends


def test_both_architectures_have_the_same_files():
    """Each file's name and permissions: what a cross build left out, such as completions, is missed here."""
    amd64, arm64 = (
        {name.replace(folder, "LIBRARIES"): mode for name, mode in files_in(package).items()}
        for package, folder in (
            (package_for(arch), ARCHITECTURES[arch][0]) for arch in ARCHITECTURES
        )
    )

    assert amd64 == arm64
    assert len(amd64) > 50


def test_its_programs_are_stripped_and_of_its_processor(arch, tmp_path):
    folder, processor = ARCHITECTURES[arch]
    subprocess.run(["dpkg-deb", "-x", package_for(arch), tmp_path], check=True, timeout=300)
    for path in [tmp_path / "usr/bin/oomrec", tmp_path / folder / "oomrec/liboomrec.so"]:
        listed = output("readelf", "--wide", "--file-header", "--sections", "--version-info", path)
        # Needed ones: the library also defines a dlsym of a newer version.
        versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+) +Flags: \w+ +Version:", listed)

        assert re.search(r"Machine: +(.*)", listed)[1] == processor
        assert ".note.gnu.build-id" in listed
        assert ".debug_info" not in listed and ".symtab" not in listed
        assert versions and max(tuple(map(int, one)) for one in versions) <= NEWEST_GLIBC


def test_its_command_finds_its_library_and_records(plain, tmp_path):
    subprocess.run(["dpkg-deb", "-x", package_for(OWN), tmp_path / "root"], check=True, timeout=300)
    command = tmp_path / "root/usr/bin/oomrec"
    library = f"{tmp_path}/root/{ARCHITECTURES[OWN][0]}/oomrec/liboomrec.so"

    assert plain(command, "lib").stdout == library + "\n"
    run = plain(command, "run", "--limit", "64M", "-c", "bytearray(100_000_000)")
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    assert "soft_limit" in plain(command, "show").stdout
