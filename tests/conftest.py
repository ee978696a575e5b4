"""Fixtures of the integration tests: run what the user runs, and read what it leaves behind.

Each test has its own directory, with bundles in ./oom_dumps, sessions in ./sessions and the
command's symbol cache in ./cache. Programs get a clean environment (none of the machine's OOMREC_*,
LD_PRELOAD or PYTHON*) and are ended after a timeout. Machine-wide state that affects verdicts, such
as memory pressure, is private to each worker (tests/machine_isolation.py). A test with unmet requirements
is skipped by a marker, with the reason. The build folder is ./build, or OOMREC_TEST_BUILD.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import machine_isolation
import pytest
from framework_modules import fake_torch, hide_frameworks
from holding import Held
from memory_cgroup import MemoryCgroup
from other_users import two_accounts
from pythons import SIMILAR_VERSIONS, find_python, has_module
from requirements import MARKERS
from started import Started
from virtual_terminal import VirtualTerminal
from ways import Ways

SOURCE = Path(__file__).resolve().parent.parent
TIMEOUT_S = 300  # only a hang takes as long, whatever else the machine does


@dataclass
class Run:
    """A program that has ended: its output, exit code and bundles."""

    args: list[str]
    stdout: str
    stderr: str
    exit_code: int  # like a shell's: 128 + N after signal N
    dump_dir: Path
    pid: int

    def bundles(self) -> list[Path]:
        """Finished bundles, oldest first: their names begin with the time and end with a number."""
        return sorted(manifest.parent for manifest in self.dump_dir.glob("oom_*/manifest.json"))

    def bundle_at(self, mark: str) -> Path:
        """The bundle that the program requested with this context."""
        return next(path for path in self.bundles() if metadata(path)["context"] == mark)

    def bundles_for(self, trigger: str) -> list[Path]:
        return [path for path in self.bundles() if metadata(path)["reason"] == trigger]

    def only_bundle(self) -> Path:
        found = self.bundles()
        assert len(found) == 1, f"{len(found)} bundles in {self.dump_dir}\n{self}"
        return found[0]

    def json(self) -> dict:
        """The output, parsed as JSON."""
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise AssertionError(f"not JSON: {error}\n{self}") from error

    def __str__(self) -> str:
        return f"$ {' '.join(self.args)}\nexit code {self.exit_code}\n{self.stdout}\n{self.stderr}"


class Runner:
    """Runs programs in the test's directory. Those that `start` left running end with the test."""

    def __init__(self, directory: Path, prefix: list[str], environment: dict[str, str]):
        self.directory = directory
        self.dump_dir = directory / "oom_dumps"
        self.session_dir = directory / "sessions"
        self.session_dir.mkdir(mode=0o700, exist_ok=True)
        # Of symbols. The tests of a run share it, as a user's commands do: most record the same programs.
        self.cache_dir = directory.parent / "cache"
        self.cache_dir.mkdir(exist_ok=True)
        self.environment = {
            **clean_environment(),
            "OOMREC_DUMP_DIR": str(self.dump_dir),
            "OOMREC_SESSION_DIR": str(self.session_dir),
            "XDG_CACHE_HOME": str(self.cache_dir),
            **environment,
        }
        self._prefix = prefix
        self._started: list[subprocess.Popen] = []

    def start(self, *args, env: dict | None = None, cwd=None, **options) -> Started:
        """Starts a program in a new session. A None in `env` removes the variable."""
        environment = {**self.environment, **(env or {})}
        process = Started(
            self._prefix + [str(arg) for arg in args],
            env={name: str(value) for name, value in environment.items() if value is not None},
            cwd=cwd or self.directory,
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "start_new_session": True,
                **options,
            },
        )
        self._started.append(process)
        return process

    def finish(
        self,
        process: subprocess.Popen,
        *,
        input: str | None = None,
        timeout: float = TIMEOUT_S,
        exits: int | None = None,
    ) -> Run:
        """Waits for a program that `start` started, and which must exit with `exits`."""
        try:
            stdout, stderr = process.communicate(
                input.encode() if input is not None else None, timeout
            )
        except subprocess.TimeoutExpired:
            end(process)
            stdout, stderr = process.communicate()
            pytest.fail(
                f"still running after {timeout} s: {process.args}\n{text(stdout)}\n{text(stderr)}"
            )
        exit_code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        run = Run(process.args, text(stdout), text(stderr), exit_code, self.dump_dir, process.pid)
        assert exits in (None, exit_code), str(run)
        return run

    def __call__(self, *args, input=None, timeout=TIMEOUT_S, exits=None, **options) -> Run:
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*args, **options)
        return self.finish(process, input=input, timeout=timeout, exits=exits)

    def json(self, *args, **options) -> dict:
        """The command's output with --json. The command must succeed."""
        run = self(args[0], "--json", *args[1:], **options)
        assert run.exit_code == 0, str(run)
        return run.json()

    def sessions_left(self, within_s: float = 20) -> list[Path]:
        """Sessions that remain after the last orphaned child should have ended.

        A shell ends before its coprocess, and a program closes stdout before its exit handlers.
        """
        until = time.monotonic() + within_s
        while (left := list(self.session_dir.rglob("*.session"))) and time.monotonic() < until:
            time.sleep(0.02)
        return left

    def end_all(self) -> None:
        for process in self._started:
            end(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


def rounds(short: int, whole: int) -> int:
    """The number of rounds: the whole number with `scripts/test --full`."""
    return whole if os.environ.get("OOMREC_TEST_FULL") else short


def full(*values, **options):
    """A case of `parametrize` that only `scripts/test --full` runs: others show the same."""
    return pytest.param(*values, marks=pytest.mark.full, **options)


def distinct_versions(versions: list[str]) -> list:
    """Cases of `parametrize`: Pythons whose frames are read as a neighbour's, at other offsets, run only with --full."""
    return [full(version) if version in SIMILAR_VERSIONS else version for version in versions]


def written(path: Path, content: str) -> Path:
    """The path, with a new file of this content."""
    path.write_text(content)
    return path


def built(directory: Path, name: str, text: str, *options: str) -> Path:
    """A program, compiled from this text of C."""
    made, source = directory / name, written(directory / f"{name}.c", text)
    subprocess.run(["gcc", "-w", "-O1", source, "-o", made, "-pthread", *options], check=True)
    return made


def metadata(bundle: Path) -> dict:
    return json.loads((bundle / "metadata.json").read_text())


def end(process: subprocess.Popen) -> None:
    """Kills a program and its children, unless it was waited for: then its pid may be reused."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def children_cpu_s() -> float:
    """CPU time of all children that were waited for, which does not depend on the machine's load."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")


def clean_environment() -> dict[str, str]:
    """The machine's environment without variables that change programs. `python3` is the tests' own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(
            ("OOMREC_", "LD_", "PYTHON", "PYENV_", "VIRTUAL_ENV", "MALLOC_", "PYTEST")
        )
    }
    kept["PATH"] = f"{Path(sys.executable).parent}:{kept.get('PATH', '/usr/bin:/bin')}"
    kept["LC_ALL"] = "C.UTF-8"
    # Threads of OpenMP, such as torch's, wait asleep: beside other tests they would mostly spin for each other.
    kept["OMP_WAIT_POLICY"] = "passive"
    return kept


@pytest.fixture(scope="session")
def build_dir() -> Path:
    path = Path(os.environ.get("OOMREC_TEST_BUILD", SOURCE / "build")).resolve()
    if not (path / "build.ninja").exists():
        pytest.exit(f"nothing is built in {path}: run scripts/build", returncode=2)
    return path


@pytest.fixture(scope="session", autouse=True)
def command_of_the_package(build_dir):
    """The package, imported by a test, asks the command of this build. Programs get a clean environment."""
    os.environ["OOMREC_COMMAND"] = str(build_dir / "oomrec")


def pytest_collection_modifyitems(items):
    """Last those for whose program scripts/test may still be compiling."""
    items.sort(key=lambda item: "sanitized_dir" in item.fixturenames)


@pytest.fixture(scope="session")
def sanitized_dir(build_dir) -> Path:
    path = build_dir.with_name(build_dir.name + "-asan")
    while (build_dir / "sanitizing").exists():  # scripts/test is still building it
        time.sleep(1)
    if not (path / "oomrec").exists():
        pytest.skip(f"no command in {path}: scripts/test builds it")
    return path


@pytest.fixture
def fuzz(sanitized_dir, tmp_path):
    """fuzz(target, rounds, seeds): mutates them; returns how many inputs were read, and how many accepted."""

    def run(target: str, count: int, seeds: Path) -> tuple[int, int]:
        program = sanitized_dir / "tests" / "fuzz" / "fuzz"
        run = subprocess.run(
            [program, target, "--rounds", str(count), "--findings", tmp_path, seeds],
            capture_output=True,
            text=True,
            timeout=900,
            env={"PATH": "/usr/bin", "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        )
        assert run.returncode == 0, run.stderr[-4000:]
        tally = re.search(r"(\d+) inputs, (\d+) accepted, slowest \S+ s, \d+ MiB\n$", run.stderr)
        assert tally, run.stderr[-2000:]
        return int(tally[1]), int(tally[2])

    return run


@pytest.fixture(scope="session")
def library(build_dir) -> Path:
    """liboomrec.so, as built."""
    path = build_dir / "liboomrec.so"
    assert path.exists(), f"{path} is not built"
    return path


@pytest.fixture
def oomrec(build_dir, tmp_path):
    """The command: oomrec("show", bundle) is a Run, oomrec.json("show", bundle) its JSON output."""
    runner = Runner(tmp_path, [str(build_dir / "oomrec")], {})
    yield runner
    runner.end_all()


@pytest.fixture
def preload(library, tmp_path):
    """A program with the library preloaded: preload("ls", "-l", env={"OOMREC_LIMIT": "64M"})."""
    runner = Runner(tmp_path, [], {"LD_PRELOAD": str(library)})
    yield runner
    runner.end_all()


@pytest.fixture
def recorded(oomrec, preload):
    """recorded(way, PROGRAM, …) runs it in one of the three WAYS (ways.py)."""
    return Ways(oomrec, preload)


@pytest.fixture
def plain(tmp_path):
    """A program without the recorder, to compare a preloaded run with."""
    runner = Runner(tmp_path, [], {})
    yield runner
    runner.end_all()


@pytest.fixture(scope="session")
def victim(build_dir):
    """victim(NAME) is the path of a program of tests/victims: a script, or the built executable."""

    def path_of(name: str) -> str:
        script = SOURCE / "tests" / "victims" / name
        path = (
            script
            if script.suffix in (".py", ".sh", ".pl")
            else build_dir / "tests" / "victims" / name
        )
        assert path.exists(), f"no victim {name}: {path} does not exist"
        return str(path)

    return path_of


@pytest.fixture
def running(plain, victim):
    """running(NAME, …) is the victim, without the recorder, at its first line of output."""

    def start(name: str, *words, **options) -> Started:
        return plain.start(victim(name), *words, stdin=subprocess.PIPE, **options).once()

    return start


@pytest.fixture
def users(build_dir, library):
    """users.victim and users.attacker are accounts of this test (other_users.py)."""
    with two_accounts(build_dir, library) as accounts:
        yield accounts


@pytest.fixture
def held(preload, victim):
    """held() is the running victim, recorded in exact mode, with its blocks allocated."""

    def start(script=None) -> Held:
        script = script or victim("python/holds.py")
        return Held(preload.start("python3", script, env={"OOMREC_MODE": "exact"}, stdin=-1))

    return start


@pytest.fixture
def terminal(oomrec, build_dir):
    """terminal("top", pid, columns=80, rows=24) is the command on a virtual terminal."""
    opened = []

    def start(*words, env=None, **options) -> VirtualTerminal:
        environment = {**oomrec.environment, **(env or {})}
        opened.append(
            VirtualTerminal(
                [build_dir / "oomrec", *words], environment, oomrec.directory, **options
            )
        )
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def fake_gpu(build_dir):
    """The environment of a program that uses the fake GPU drivers (tests/fake_gpu/README.md)."""
    return {"LD_LIBRARY_PATH": str(build_dir / "tests" / "fake_gpu")}


@pytest.fixture
def no_frameworks(monkeypatch):
    """In the test process no module with GPU support is imported or importable."""
    hide_frameworks(monkeypatch)


@pytest.fixture
def torch(no_frameworks, monkeypatch):
    """In the test process a module that answers like PyTorch."""
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def on_disk():
    """A new directory whose files are not in memory, as those of `tmp_path` may be."""
    disk = "/var/tmp"
    kind = subprocess.run(["stat", "-f", "-c", "%T", disk], capture_output=True, text=True).stdout
    if kind.strip() in ("tmpfs", "ramfs"):
        pytest.skip(f"{disk} is not on a disk")
    with tempfile.TemporaryDirectory(dir=disk) as directory:
        yield directory


@pytest.fixture
def start_thrashing(victim, cgroup, on_disk):
    """start_thrashing(RUNNER, *WORDS BEFORE IT) is a program that waits for its pages to come back."""

    def start(runner: Runner, *before) -> Started:
        words = [sys.executable, victim("python/thrashes.py"), on_disk, 96]
        env = {"OOMREC_WARN": "0"}
        return runner.start(*before, *words, preexec_fn=cgroup("48M").enter, env=env).once("ready")

    return start


@pytest.fixture
def cgroup():
    """cgroup("200M") is a new memory cgroup with that limit. Its `enter` is a preexec_fn."""
    made = []

    def make(limit: str) -> MemoryCgroup:
        made.append(MemoryCgroup(f"oomrec_test_{os.getpid()}_{len(made)}", limit))
        return made[-1]

    yield make
    for group in made:
        group.remove()


@pytest.fixture
def without_warning(oomrec, preload) -> None:
    """Switches off the bundle near a limit, before the kill: test_deaths_near_limit.py has that one."""
    for runner in (oomrec, preload):
        runner.environment["OOMREC_WARN"] = "0"


@pytest.fixture
def calm_machine() -> None:
    """Waits until memory pressure by other tests has faded. Its average covers ten seconds."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            lines = Path("/proc/pressure/memory").read_text().splitlines()
        except OSError:
            return  # this kernel does not report pressure
        if all(float(line.split()[1].removeprefix("avg10=")) < 5 for line in lines):
            return
        time.sleep(0.5)


@pytest.fixture(autouse=True)
def own_sessions(tmp_path, monkeypatch) -> None:
    """A private session directory for programs without a Runner, and for the test process."""
    # pytest gives the name of a removed directory to the next test.
    directory = tempfile.mkdtemp(prefix=f"{tmp_path.name}-sessions-", dir=tmp_path.parent)
    monkeypatch.setenv("OOMREC_SESSION_DIR", directory)
    machine_isolation.forget_recordings()


@pytest.fixture
def apart(plain, build_dir, library):
    """apart("oomrec top") runs a shell script in a pid namespace without other processes.

    `recorded PROGRAM…` starts a program there and returns once it is recorded; its pid is $!.
    """
    start = (
        f'oomrec() {{ "{build_dir}/oomrec" "$@"; }}\n'
        f'recorded() {{ LD_PRELOAD="{library}" "$@" & '
        "until oomrec top --once $! > top 2>&1; do sleep 0.02; done; }\n"
    )
    namespace = ["unshare", "-fp", "--kill-child", "--mount-proc"]
    possible = subprocess.run([*namespace, "true"], capture_output=True, text=True, check=False)
    if possible.returncode != 0:  # not root, or in a chroot, whose root is no mount
        pytest.skip(possible.stderr.strip())
    return lambda script: plain(*namespace, "sh", "-c", start + script)


@pytest.fixture(scope="session")
def golden():
    """golden(name, text) compares text with tests/golden/NAME. scripts/golden rewrites the files."""

    def compare(name: str, actual: str) -> None:
        path = SOURCE / "tests" / "golden" / name
        if os.environ.get("OOMREC_WRITE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(actual)
        expected = path.read_text() if path.exists() else ""
        difference = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), str(path), "now", lineterm=""
        )
        assert actual == expected, "scripts/golden rewrites it\n" + "\n".join(difference)

    return compare


@pytest.fixture(scope="session")
def python():
    """python("3.8") is the interpreter of a version, not a wrapper. Skips if it is not installed.

    Without a version it is the machine's own, for tests that do not depend on the version.
    """

    def interpreter(version: str | None = None, *needed_modules: str) -> str:
        path = find_python(version) if version else os.path.realpath("/usr/bin/python3")
        if path is None:
            pytest.skip(f"no Python {version} here")
        for module in needed_modules:
            if not has_module(path, module):
                pytest.skip(f"Python {version} has no {module} here")
        return path

    return interpreter


def stop_ignoring_signals() -> None:
    """`nohup` and a script's background jobs ignore them, and the tests' programs would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses the directory of temporary files
def pytest_configure(config) -> None:
    stop_ignoring_signals()
    # In memory, the tests' files never wait for the disk, and vanish at the end even after a failure.
    if machine_isolation.enter() and os.environ.get("OOMREC_TEST_IN_MEMORY"):
        config.option.basetemp = f"{machine_isolation.directory_in_memory()}/tests"
    for name, (meaning, _) in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: needs {meaning}")


def pytest_runtest_setup(item) -> None:
    for name, (_, skip_reason) in MARKERS.items():
        for marker in item.iter_markers(name.partition("(")[0]):
            reason = skip_reason(*marker.args)
            if reason:
                pytest.skip(reason)
