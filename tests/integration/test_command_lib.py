"""How the command finds its library: `oomrec lib`, and installations in awkward directories."""

import os
import platform
import shutil
from pathlib import Path

import pytest

SHOW = "import os; print(os.environ['LD_PRELOAD'])"


def put(file: Path, place: Path) -> Path:
    """Puts a file at another path. It is large, so a hard link is made if possible."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, place)
    except OSError:
        shutil.copy2(file, place)
    return place


@pytest.fixture
def install(build_dir, library, tmp_path):
    """install("bin/oomrec", "lib/…/liboomrec.so") is the command in a separate installation."""

    def make(command: str, *libraries: str, root: Path = tmp_path) -> Path:
        for place in libraries:
            put(library, root / place)
        return put(build_dir / "oomrec", root / command)

    return make


def test_the_path_is_printed_for_the_loader(oomrec, plain, library):
    run = oomrec("lib")
    assert (run.exit_code, run.stdout) == (0, f"{library}\n")
    recorded = plain(
        "python3",
        "-c",
        "import ctypes; ctypes.CDLL(None).oomrec_is_active; print(1)",
        env={"LD_PRELOAD": run.stdout.strip()},
    )
    assert recorded.stdout == "1\n", recorded


@pytest.mark.parametrize(
    "place",
    [
        "bin/liboomrec.so",
        "lib/liboomrec.so",
        f"lib/{platform.machine()}-linux-gnu/liboomrec.so",
        "lib/python3.12/site-packages/oomrec/liboomrec.so",
        "lib/python3/dist-packages/oomrec/liboomrec.so",
        "lib64/python3.9/site-packages/oomrec/liboomrec.so",
        "oomrec/liboomrec.so",
    ],
)
def test_it_is_found_in_every_kind_of_installation(install, plain, tmp_path, place):
    command = install("bin/oomrec", place)
    assert plain(command, "lib").stdout == f"{tmp_path / place}\n"


def test_the_newest_library_of_this_version_is_chosen(install, plain, oomrec, tmp_path):
    version = oomrec("--version").stdout.split()[1]
    places = {name: f"lib/python{name}/site-packages" for name in ("3.9", "3.10", "3.11", "3.12")}
    command = install("bin/oomrec", *(f"{place}/oomrec/liboomrec.so" for place in places.values()))
    for name, kind, at_s in (
        ("3.9", version, 2_000_000_000),
        ("3.10", version, 2_000_000_100),
        ("3.11", version, 1_000_000_000),
        ("3.12", "0.0.1", 2_000_000_200),
    ):
        facts = tmp_path / places[name] / f"oomrec-{kind}.dist-info"
        facts.mkdir()
        os.utime(facts, (at_s, at_s))
    assert plain(command, "lib").stdout.strip() == str(
        tmp_path / places["3.10"] / "oomrec" / "liboomrec.so"
    )


def test_a_missing_library_is_reported(install, plain):
    run = plain(install("bin/oomrec"), "lib")
    assert run.exit_code != 0 and run.stdout == ""
    assert "there is no liboomrec.so near" in run.stderr


AWKWARD = ["with blank", "with:colon", "with$ORIGIN", "with\ttab"]


@pytest.mark.parametrize("name", AWKWARD)
def test_a_path_that_ld_preload_cannot_hold_is_explained(install, plain, tmp_path, name):
    command = install("bin/oomrec", "lib/liboomrec.so", root=tmp_path / name)
    run = plain(command, "lib")
    assert run.exit_code == 1 and run.stdout == ""
    what, advice = run.stderr.splitlines()
    assert "LD_PRELOAD cannot hold" in what
    assert "`oomrec run`" in advice and "ln -s" in advice


@pytest.mark.parametrize("name", AWKWARD)
def test_run_works_from_an_awkward_path(install, plain, tmp_path, victim, name):
    """Programs and their children are recorded through a link, which a second run reuses."""
    command = install("bin/oomrec", "lib/liboomrec.so", root=tmp_path / name)
    links = tmp_path / "links"
    links.mkdir()
    there = {"TMPDIR": links}
    family = (
        "import os, subprocess, sys; print(os.environ['LD_PRELOAD'], flush=True);"
        "sys.exit(subprocess.call([sys.argv[1], 'exits']))"
    )
    paths = set()
    for _ in range(2):
        run = plain(command, "run", "--limit", "64M", "-c", family, victim("dies"), env=there)
        assert run.exit_code == 3 and "refused" in run.stderr, run
        assert "ld.so" not in run.stderr
        paths.add(run.stdout.split()[0])
    assert len(run.bundles()) == 2
    (path,) = paths
    assert Path(path).is_relative_to(links) and Path(path).name == "liboomrec.so"
    assert Path(path).resolve() == tmp_path / name / "lib" / "liboomrec.so"


def test_a_directory_writable_by_others_is_not_used(install, plain, tmp_path):
    command = install("bin/oomrec", "lib/liboomrec.so", root=tmp_path / "with blank")
    links = tmp_path / "links"
    own = links / f"oomrec-library-{os.geteuid()}"
    own.mkdir(parents=True)
    own.chmod(0o777)
    run = plain(command, "run", "-c", SHOW, env={"TMPDIR": links})
    assert run.exit_code == 0 and str(links) not in run.stdout
    assert list(own.iterdir()) == []
