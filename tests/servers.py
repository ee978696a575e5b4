"""Servers under load, which `oomrec attach` must not disturb."""

from __future__ import annotations

import contextlib
import http.client
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for_port(port: int, process: subprocess.Popen) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr and process.stderr.read()
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


def children_of(pid: int) -> list[int]:
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(word) for word in words]


def wait_for_children(process: subprocess.Popen, count: int) -> list[int]:
    until = time.monotonic() + 30
    while len(children := children_of(process.pid)) != count:
        assert time.monotonic() < until and process.poll() is None, children
        time.sleep(0.05)
    time.sleep(0.3)  # to come to their work
    return children


class HttpLoad:
    """Asks from several connections until it is ended, and compares each answer with the expected one."""

    def __init__(self, port: int, answer: bytes, connections: int = 4):
        self._port, self._answer = port, answer
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(connections)]
        self.requests, self.failures, self.slowest_s = 0, [], 0.0
        self._lock = threading.Lock()

    def _ask(self) -> None:
        connection = None
        while not self._ends.is_set():
            begin = time.monotonic()
            try:
                connection = connection or http.client.HTTPConnection(
                    "127.0.0.1", self._port, timeout=300
                )
                connection.request("GET", "/")
                answer = connection.getresponse()
                body = answer.read()
                problem = (
                    None
                    if (answer.status, body) == (200, self._answer)
                    else f"{answer.status} {body}"
                )
                if answer.will_close:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                problem, connection = repr(error), None
            took = time.monotonic() - begin
            with self._lock:
                self.requests += 1
                self.slowest_s = max(self.slowest_s, took)
                if problem:
                    self.failures.append(problem)
            time.sleep(0.001)  # as much load again costs the tests beside it

    def __enter__(self) -> HttpLoad:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def open_directory():
    """A directory that every user may write to: pytest's own are private."""
    directory = Path(tempfile.mkdtemp(prefix="oomrec-test-"))
    directory.chmod(0o1777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def find_postgres() -> Path | None:
    """The directory of the newest version's programs, which are not on the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


def database_user() -> int | None:
    """PostgreSQL does not run as root, nor as a user without a name."""
    if os.geteuid() != 0:
        return os.geteuid()
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_uid
    return None


class Postgres:
    """A cluster of its own, with pgbench's tables."""

    def __init__(self, directory: Path):
        programs, uid = find_postgres(), database_user()
        if programs is None or uid is None or shutil.which("pgbench") is None:
            pytest.skip("not installed: postgresql")
        self.log = directory / "log"
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "PGHOST": str(directory),
            "PGPORT": str(free_port()),
            "PGUSER": "tester",
            "PGDATABASE": "postgres",
        }
        options = {"env": self.environment, "cwd": directory, "stdin": subprocess.DEVNULL}
        if os.geteuid() == 0:
            options |= {"user": uid, "group": pwd.getpwuid(uid).pw_gid, "extra_groups": []}
        data = directory / "cluster"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            **options,
        )
        settings = f"-k {directory} -c listen_addresses= -c fsync=off"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [programs / "postgres", "-D", data, *settings.split()],
                stdout=log,
                stderr=log,
                **options,
            )
        until = time.monotonic() + 60
        while self.query("select 1").returncode != 0:
            assert time.monotonic() < until and self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        assert self.bench("-i", "-q", "-s", "2").wait() == 0

    def query(self, text: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["psql", "-XAtc", text],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def bench(self, *words) -> subprocess.Popen:
        return subprocess.Popen(
            ["pgbench", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def backends(self) -> list[int]:
        return children_of(self.process.pid)

    def require_consistent(self) -> None:
        """What pgbench's transactions keep: each adds its delta to four tables."""
        sums = self.query(
            "select (select sum(abalance) from pgbench_accounts) = sum(tbalance), sum(tbalance) = "
            "(select sum(bbalance) from pgbench_branches), sum(tbalance) = "
            "(select sum(delta) from pgbench_history) from pgbench_tellers"
        )
        assert sums.stdout == "t|t|t\n", sums
        text = self.log.read_text()
        assert "terminated by signal" not in text and "PANIC" not in text, text
        assert "exited with exit code" not in text, text

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()


def transactions(run: subprocess.Popen) -> int:
    """How many pgbench has made; none may have failed."""
    output, problems = run.communicate(timeout=300)
    assert run.returncode == 0, problems
    made = int(re.search(r"transactions actually processed: (\d+)", output)[1])
    failed = re.search(r"number of failed transactions: (\d+)", output)
    assert failed is None or failed[1] == "0", output
    assert "aborted" not in problems and "error" not in problems.lower(), problems
    return made


def still_runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
