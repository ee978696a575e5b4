"""The wheel of scripts/wheel: its contents, and that it works in every Python's environment."""

from __future__ import annotations

import platform
import re
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_lines import commands, reading_lines
from conftest import Runner, clean_environment
from pythons import PACKAGE_PYTHON_VERSIONS

SOURCE = Path(__file__).resolve().parents[2]
MACHINE = platform.machine()
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
LOADER = LOADERS[MACHINE]

# Linked-in libraries, by the names of their licence files.
WORKS = {
    *("libunwind", "mimalloc", "elfutils", "zlib", "xz", "bzip2", "ncurses", "fmt", "spdlog"),
    *("nlohmann-json", "CLI11", "gcc-runtime", "d3"),
}

# This Python's bundled pip, which runs faster than an installation would take.
PIP = """
import ensurepip, pathlib, runpy, sys
places = [pathlib.Path(ensurepip.__file__).parent / "_bundled", pathlib.Path("/usr/share/python-wheels")]
sys.path.insert(0, str(next(wheel for place in places for wheel in place.glob("pip-*.whl"))))
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__")
"""

TRAIN = """
import sys
print(sys.prefix, sys.argv[1:])
batches = []
while True:
    batches.append(bytearray(4_000_000))
"""

HOLDS = """
import os, time
held = bytearray(40_000_000)
print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def wheel(build_dir) -> Path:
    return wheel_for(MACHINE, build_dir)


def wheel_for(machine: str, build: Path) -> Path:
    made = max(
        SOURCE.glob(f"dist/oomrec-*_{machine}.whl"),
        key=lambda path: path.stat().st_mtime,
        default=None,
    )
    if made is None:
        pytest.skip(f"no wheel for {machine} in dist: scripts/wheel makes it")
    inputs = [
        build / "oomrec",
        build / "liboomrec.so",
        *package_files(),
        SOURCE / "pyproject.toml",
        SOURCE / "tools/python/README.md",
    ]
    newer = [path for path in inputs if path.stat().st_mtime > made.stat().st_mtime]
    assert not newer, f"{made.name} is older than {newer[0]}: scripts/wheel makes it anew"
    return made


def package_files() -> list[Path]:
    """The package's files that git tracks."""
    listed = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard", "tools/python/oomrec"],
        cwd=SOURCE,
        text=True,
    )
    return [SOURCE / name for name in listed.splitlines()]


def output(*command) -> str:
    return subprocess.check_output([str(word) for word in command], text=True, timeout=300)


def test_it_has_the_whole_package_and_the_licences(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    assert not [name for name in names if "/purelib/" in name], "machine code is not pure"
    packaged = {name for name in names if name.startswith("oomrec/")}
    sources = {str(path.relative_to(SOURCE / "tools/python")) for path in package_files()}
    assert "oomrec/py.typed" in sources
    assert packaged == sources | {"oomrec/liboomrec.so"}
    licences = {Path(name).name for name in names if ".dist-info/licenses/" in name}
    assert licences >= WORKS
    texts = "".join(
        zipfile.ZipFile(wheel).read(name).decode()
        for name in names
        if ".dist-info/licenses/" in name
    )
    named = set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", texts))
    assert named and named <= licences, "a licence is only named"
    assert {name.split("/data/")[1] for name in names if "/data/" in name} >= {
        "share/man/man1/oomrec.1",
        "share/bash-completion/completions/oomrec.bash",
    }


def test_links_in_its_description_have_targets(wheel):
    """A package index shows only this page, where links to files of the repository are dead."""
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    headers, _, text = archive.read(name).decode().partition("\n\n")
    assert "\nDescription-Content-Type: text/markdown" in headers
    assert text.startswith("# oomrec\n") and "oomrec run" in text
    targets = re.findall(r"\]\(([^)]*)\)|(?:src|href)=\"([^\"]*)\"", text)
    assert [target for pair in targets for target in pair if target and "://" not in target] == []


def test_its_name_matches_what_its_files_need(wheel, tmp_path):
    """Any Python 3, any glibc from the named version on, and no other library."""
    with zipfile.ZipFile(wheel) as archive:
        binaries = [
            archive.extract(name, tmp_path)
            for name in archive.namelist()
            if name.endswith(("/liboomrec.so", "/scripts/oomrec"))
        ]
    assert len(binaries) == 2

    needed = set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", *binaries)))
    # All but libgcc_s belong to the C library. Chart axes need libm.
    libc = {f"lib{name}" for name in ("c.so.6", "dl.so.2", "m.so.6", "pthread.so.0")}
    assert needed <= libc | {"libgcc_s.so.1", LOADER}
    symbols = output("objdump", "-T", *binaries)
    versions = re.findall(r"^.*\*UND\*.*GLIBC_(\d+)\.(\d+)", symbols, re.M)
    newest = max(tuple(map(int, version)) for version in versions)
    assert newest <= (2, 28)
    assert wheel.name.endswith(f"-py3-none-manylinux_{newest[0]}_{newest[1]}_{MACHINE}.whl")
    assert ".debug_info" not in output("readelf", "-SW", *binaries)


@pytest.mark.needs_module("auditwheel")
@pytest.mark.parametrize("machine", LOADERS)
def test_auditwheel_agrees_with_its_name(build_dir, machine):
    wheel = wheel_for(machine, build_dir if machine == MACHINE else SOURCE / f"build-{machine}")

    shown = " ".join(output(sys.executable, "-m", "auditwheel", "show", wheel).split())

    named = wheel.name.removesuffix(".whl").rpartition("-")[2]
    assert f'is consistent with the following platform tag: "{named}"' in shown


def test_the_documented_installation_names_one_wheel(tmp_path):
    """Also beside the wheel that scripts/cross makes for another processor."""
    (tmp_path / "dist").mkdir()
    made = {name: f"dist/oomrec-0.1.0-py3-none-manylinux_2_28_{name}.whl" for name in LOADERS}
    for name in made.values():
        (tmp_path / name).touch()
    words = [
        word
        for page in [SOURCE / "README.md", *SOURCE.glob("docs/**/*.md")]
        for word in re.findall(r"^ +pip install (dist/\S+(?: -m\)\S+)?)", page.read_text(), re.M)
    ]
    assert len(words) > 4
    for word in set(words):
        expanded = subprocess.check_output(["sh", "-c", f"echo {word}"], cwd=tmp_path, text=True)
        assert expanded == made[MACHINE] + "\n"


# The oldest and the newest. The wheel treats the ones in between alike.
@pytest.fixture(
    params=[
        pytest.param(version, marks=[pytest.mark.full] * (version in PACKAGE_PYTHON_VERSIONS[1:-1]))
        for version in PACKAGE_PYTHON_VERSIONS
    ]
)
def installed(request, wheel, python, tmp_path):
    """The bin directory of a new environment with the wheel. Runs have only this in the PATH."""
    environment = tmp_path / "environment"
    bare = {**clean_environment(), "PATH": "/nowhere", "PIP_NO_INDEX": "1"}
    for command in (
        [python(request.param), "-m", "venv", "--without-pip", environment],
        [environment / "bin" / "python", "-c", PIP, "install", "-q", "--no-deps", wheel],
    ):
        done = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    runner = Runner(tmp_path, [], {"PATH": str(environment / "bin")})
    yield runner, environment
    runner.end_all()


class Command:
    """The installed command, with the interface of the fixture `oomrec`."""

    def __init__(self, runner: Runner, scripts: Path):
        self.runner, self.path = runner, scripts / "oomrec"

    def __call__(self, *words, **options):
        return self.runner(self.path, *words, **options)


def test_every_installed_command_works(installed):
    runner, environment = installed
    scripts = environment / "bin"
    oomrec = Command(runner, scripts)
    assert (scripts / "oomrec").read_bytes()[:4] == b"\x7fELF"

    library = oomrec("lib").stdout.strip()
    assert (
        Path(library).parent.parent.name == "site-packages" and environment in Path(library).parents
    )
    said = runner(scripts / "python", "-c", "import oomrec; print(oomrec.LIBRARY)")
    assert said.stdout.strip() == library, said
    assert runner(scripts / "python", "-m", "oomrec", "--version").stdout.startswith("oomrec ")

    (runner.directory / "train.py").write_text(TRAIN)
    limit = ["--quiet", "--limit", "64M"]
    for start in (
        [scripts / "oomrec", "run", *limit, "train.py", "--epochs", "5"],
        [scripts / "oomrec", "run", *limit, "-m", "train", "--epochs", "5"],
        [scripts / "oomrec", "run", *limit, "-c", TRAIN, "--epochs", "5"],
        [scripts / "python", "-m", "oomrec", "run", *limit, "train.py", "--epochs", "5"],
    ):
        run = runner(*start, env={"PYTHONPATH": "."})
        assert run.exit_code == 1 and "MemoryError" in run.stderr, run
        assert run.stdout == f"{environment} ['--epochs', '5']\n"
    preloaded = {"LD_PRELOAD": library, "OOMREC_LIMIT": "64M"}
    run = runner(scripts / "python", "train.py", env=preloaded)
    assert "MemoryError" in run.stderr
    bundles = run.bundles()
    assert len(bundles) == 5

    tried = read_by_every_command(oomrec, bundles[-1])
    assert oomrec("diff", *bundles[:2]).exit_code == 0
    tried |= started_and_watched(oomrec)
    assert tried | {"run", "lib", "attach"} >= set(commands(oomrec)), "a command is not tried here"


def read_by_every_command(oomrec, bundle: Path) -> set[str]:
    lines = reading_lines(oomrec, bundle) + [
        ("redact", [bundle]),
        ("merge", [bundle, "-o", "job"]),
        ("completion", ["bash"]),
    ]
    for command, words in lines:
        run = oomrec(command, *words)
        assert run.exit_code == 0 and (run.stdout or run.stderr), run
    return {command for command, _ in lines}


def started_and_watched(oomrec) -> set[str]:
    """Runs the commands for live processes, and those that start one."""
    program = oomrec.runner.start(oomrec.path, "run", "-c", HOLDS)
    pid = program.stdout.readline().decode().strip()
    lines = [
        ("top", ["--once", "--json", pid], 0),
        ("dump", [pid], 0),
        ("ended", [pid, "--by", "the test", "--reason", "other"], 0),
        ("info", ["train.py"], 0),
        ("simulate", ["soft_limit"], 0),
        ("stress", ["--limit", "64M", "--max", "128M", "--step", "16M"], 3),
        ("watch", ["--once"], 1),
        ("recover", [], 1),
        ("monitor", ["--device", "cpu", "--duration", "0.3", "--output", "memory.csv"], 0),
        ("analyze", ["memory.csv"], 0),
        ("fleet", ["top"], 2),  # it says which package is missing
        ("track", [pid, "--duration", "0.3", "--output", "events.json"], 0),
        ("diagnose", [pid, "--duration", "0.3", "--output", "evidence"], 0),
    ]
    for command, words, exit_code in lines:
        run = oomrec(command, *words)
        assert run.exit_code == exit_code, run
    program.terminate()
    assert program.wait(30) != 0
    return {command for command, _, _ in lines}


def test_the_command_starts_in_three_milliseconds(wheel, tmp_path):
    """CPU time, the least of twenty runs, so that other load does not count."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/scripts/oomrec")]
        command = Path(archive.extract(name, tmp_path))
    command.chmod(0o755)
    used_s = []
    for _ in range(20):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([command, "--version"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(used_s) <= 0.003, used_s
