"""Runs one case in one way, in directories, a cgroup and a session of its own."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import conftest
import machine_isolation
from memory_cgroup import MemoryCgroup

from truth.case import Case, Scene
from truth.grade import Grade, answer, grade
from truth.machine import Machine, Missing, lacks

TIMEOUT_S = 300
WRITES_S = 6  # how long a watcher may take to write what it saw


@dataclass
class Result:
    case: Case
    way: str
    grade: Grade
    code: str = ""
    certainty: str | None = None
    bundles: list[str] = field(default_factory=list)  # all that are left: code and outcome
    directory: str = ""
    seconds: float = 0


class Sandbox:
    """The directories and environment of one case."""

    def __init__(self, machine: Machine, case: Case, way: str, directory: Path):
        self.machine, self.case, self.way, self.directory = machine, case, way, directory
        (directory / "sessions").mkdir(mode=0o700, parents=True)
        (directory / "tmp").mkdir()
        self.environment = {
            **conftest.clean_environment(),
            "OOMREC_DUMP_DIR": str(directory / "oom_dumps"),
            "OOMREC_SESSION_DIR": str(directory / "sessions"),
            "XDG_CACHE_HOME": str(machine.folder / "cache"),
            "TMPDIR": str(directory / "tmp"),
            **case.env,
        }
        if case.pressure:
            (directory / "pressure").write_text(case.pressure)
        if case.fixtures:
            (directory / "fixtures").mkdir()
            self.environment.update(case.fixtures(directory / "fixtures"))
        self.groups: list[MemoryCgroup] = []
        if case.cgroup:
            self.add_cgroup(case.cgroup)
        self.group = self.groups[0] if self.groups else None

    def add_cgroup(self, limit: str) -> Path:
        name = f"oomrec_truth_{os.getpid()}_{self.directory.name}_{len(self.groups)}"
        self.groups.append(MemoryCgroup(name, limit))
        return self.groups[-1].path

    def close(self) -> None:
        for group in self.groups:
            group.remove()

    def enter(self) -> None:
        """In the child, before exec."""
        for number in (signal.SIGINT, signal.SIGQUIT):  # a shell ignores them in the background
            signal.signal(number, signal.SIG_DFL)
        if self.group:
            self.group.enter()
        self.press()
        for kind, size in self.case.limits.items():
            resource.setrlimit(kind, (size, size))

    def press(self) -> None:
        """In a child: the machine's memory pressure is what the case says."""
        if self.case.pressure and not machine_isolation.enter_alone(self.directory / "pressure"):
            os._exit(99)

    def start(self, words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            env=self.environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )

    def oomrec(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value for name, value in self.environment.items() if name != "LD_PRELOAD"
        }
        return subprocess.run(
            [str(self.machine.command), *words],
            env=environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )

    def program(self) -> int:
        """Runs the case's program: its exit code, like a shell's."""
        words = self.machine.expand(self.case.words)
        environment = dict(self.environment)
        if self.way == "run":
            words = [str(self.machine.command), "run", *self.case.options, "--", *words]
        else:
            gate = [] if self.way == "bare" else [self.machine.built("gate.so")]
            environment["LD_PRELOAD"] = ":".join([*gate, str(self.machine.library)])
            environment["TRUTH_GATE"] = str(self.directory / "gate")
        with (self.directory / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                words,
                env=environment,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=self.enter,
            )
        try:
            return self._finish(process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _finish(self, process: subprocess.Popen[bytes]) -> int:
        assert process.stdout
        if self.way == "watch":
            self.open_gate()
        if self.case.event:
            for line in process.stdout:
                if line.startswith(b"ready "):
                    group = self.group.path if self.group else None
                    fixtures = self.directory / "fixtures" if self.case.fixtures else None
                    pid = int(line.split()[1])
                    self.case.event(
                        Scene(self.directory, pid, group, fixtures, self.oomrec, self.add_cgroup)
                    )
                    break
        with (self.directory / "stdout").open("wb") as file:
            file.write(process.communicate(timeout=TIMEOUT_S)[0] or b"")
        return process.returncode if process.returncode >= 0 else 128 - process.returncode

    def open_gate(self) -> None:
        """Lets the program go on once the watcher has seen it: it may end at once."""
        gate = self.directory / "gate"
        pid_file = self.directory / "gate.pid"
        until = time.monotonic() + 10
        while not pid_file.exists() and time.monotonic() < until:
            time.sleep(0.005)
        if pid_file.exists():
            pid = pid_file.read_text().strip()
            while time.monotonic() < until and not watches(self.watcher.pid, pid):
                time.sleep(0.01)
        gate.touch()

    @contextlib.contextmanager
    def watched(self) -> Any:
        """A running `oomrec watch` of this case's recordings only."""
        with (self.directory / "watch.log").open("wb") as log:
            self.watcher = self.start(
                [str(self.machine.command), "watch", str(self.directory / "sessions")],
                stdout=log,
                stderr=log,
                preexec_fn=self.press,
            )
        try:
            yield
            until = time.monotonic() + WRITES_S
            while sessions(self.directory) and time.monotonic() < until:
                time.sleep(0.02)
        finally:
            self.watcher.terminate()
            self.watcher.wait(10)


def sessions(directory: Path) -> list[Path]:
    return list((directory / "sessions").rglob("*.session"))


def watches(watcher: int, pid: str) -> bool:
    """Whether the watcher has a pidfd of this process."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{watcher}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                if f"\nPid:\t{pid}\n" in entry.read_text():
                    return True
    return False


def run_case(machine: Machine, case: Case, way: str, directory: Path) -> Result:
    """Runs it and grades the cause that `oomrec show` opens. Raises Missing."""
    for program in case.needs:
        if lacks(program):
            raise Missing(f"not installed: {program}")
    began = time.monotonic()
    result = Result(case, way, Grade("broken"), directory=str(directory))
    sandbox = Sandbox(machine, case, way, directory)
    try:
        with sandbox.watched() if way == "watch" else contextlib.nullcontext():
            exit_code = sandbox.program()
        if case.ends and ending(exit_code) != case.ends:
            result.grade = Grade("broken", f"it ended with {ending(exit_code)}, not {case.ends}")
            return result
        judge(sandbox, result)
    except subprocess.TimeoutExpired:
        result.grade = Grade("broken", f"still running after {TIMEOUT_S} s")
    finally:
        sandbox.close()
        result.seconds = time.monotonic() - began
    return result


def ending(exit_code: int) -> str:
    is_signal = 128 < exit_code <= 128 + signal.SIGRTMAX
    return f"signal {exit_code - 128}" if is_signal else f"exit {exit_code}"


def judge(sandbox: Sandbox, result: Result) -> None:
    opened = sandbox.oomrec("show", "--json")
    (sandbox.directory / "show.json").write_text(opened.stdout)
    shown = json.loads(opened.stdout) if opened.returncode == 0 else None
    if shown is None and list(sandbox.directory.glob("oom_dumps/*/manifest.json")):
        result.grade = Grade("wrong", f"show failed: {opened.stderr.strip()}")
        return
    result.code, result.certainty = answer(shown)
    result.grade = grade(result.case.truth_for(result.way), shown)
    listed = sandbox.oomrec("ls", "--json")
    if listed.returncode == 0:
        rows = json.loads(listed.stdout)["bundles"]
        result.bundles = [f"{row['verdict']} {row['outcome']}" for row in rows]
    if result.case.only and len(result.bundles) > 1:
        result.grade = Grade("wrong", f"{len(result.bundles)} bundles of one death")
