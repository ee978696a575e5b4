"""The deaths of a server's workers are reported while the server runs, and do not take it along."""

import json
import re
import sys
import time
from pathlib import Path

import pytest
from watching import wait_for

pytestmark = pytest.mark.usefixtures("without_warning", "calm_machine")
MIB = 1 << 20


class Server:
    """`oomrec run` with prefork.py, whose standard error can be read while it runs."""

    def __init__(self, oomrec, script, tmp_path, *words, options=(), **more):
        self.oomrec, self.log = oomrec, tmp_path / "stderr"
        with self.log.open("wb") as errors:
            self.process = oomrec.start("run", *options, "--", sys.executable, script, *words, stdin=-1,
                                        stderr=errors, **more)  # fmt: skip

    def await_line(self):
        return self.process.stdout.readline().decode()

    def said(self, text):
        return [line for line in self.log.read_text().splitlines() if text in line]

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait()


@pytest.fixture
def serve(oomrec, victim, tmp_path):
    def start(*words, **more):
        return Server(oomrec, victim("python/prefork.py"), tmp_path, *words, **more)

    return start


def verdicts(oomrec):
    """Of the bundles there are, oldest first."""
    paths = sorted(oomrec.dump_dir.glob("oom_*"))
    return [json.loads((path / "manifest.json").read_text())["verdict"] for path in paths]


@pytest.mark.needs_cgroup_write
def test_a_worker_that_the_kernel_kills(oomrec, serve, cgroup):
    """Once, with its line and its bundle, before the server ends."""
    server = serve("1", "grows", preexec_fn=cgroup("120M").enter)
    assert server.await_line().startswith("lost ")
    wait_for(lambda: server.said("oomrec: bundle "))
    (line,) = server.said(" was killed by the kernel: its memory cgroup had reached its limit")
    assert re.search(r"; largest holder: .*prefork.py:\d+ grow$", line)
    assert verdicts(oomrec) == ["cgroup_oom_kill"]
    assert server.end() == 0
    assert len(server.said(" was killed by the kernel: ")) == 1
    assert len(server.said("oomrec: bundle ")) == 1
    assert oomrec.sessions_left() == []


@pytest.mark.needs_cgroup_write
def test_without_the_kernels_log(oomrec, serve):
    """The cgroup's counter is the evidence, read when the worker has just died."""
    oomrec.environment["OOMREC_KERNEL_LOG"] = "/nonexistent"
    server = serve("1", "grows", options=["--cgroup", "120M"])
    wait_for(lambda: server.said(" was probably killed by the kernel: "))
    assert server.end() == 0
    codes = verdicts(oomrec)
    assert "cgroup_oom_kill" in codes and "killed_near_limit" not in codes


def test_a_worker_that_somebody_kills(oomrec, serve):
    server = serve("1", "killed")
    wait_for(lambda: server.said("oomrec: bundle "))
    (line,) = server.said(" was killed by SIGKILL")
    assert server.end() == 0
    assert server.said(" was killed by SIGKILL") == [line]


@pytest.mark.parametrize("kind", ["leaves", "stopped"])
def test_a_worker_that_ends_as_usual(oomrec, serve, kind):
    """Nothing is said, however long the server takes to notice."""
    server = serve("2", kind)
    server.await_line()
    time.sleep(1.2)  # two samples
    assert server.end() == 0
    assert server.log.read_text() == "" and verdicts(oomrec) == []


def test_a_worker_that_is_refused_memory(oomrec, serve):
    """The worker's own recorder reports it at once; its end adds nothing."""
    server = serve("1", "refused")
    wait_for(lambda: server.said("oomrec: bundle "))
    assert server.end() == 0
    assert len(server.said(" was refused")) == 1
    assert verdicts(oomrec) == ["request_too_large"]


def test_a_storm_is_counted_and_does_not_fill_the_terminal(oomrec, serve):
    """Of 80 deaths a few have a line each; the others are counted.

    On a busy machine the table of children, which has 64, may be overwritten before it is looked at.
    """
    server = serve("80", "killed")
    for _ in range(80):
        server.await_line()
    assert server.end() == 0
    lines = server.said(" was killed by SIGKILL")
    more = [int(re.search(r"oomrec: (\d+) more", line)[1]) for line in server.said(" more process")]
    assert 8 <= len(lines) <= 16
    assert 64 <= len(lines) + sum(more) <= 80
    assert len(server.log.read_text().splitlines()) <= 2 * len(lines) + len(more)


@pytest.mark.needs_cgroup_write
def test_the_launcher_survives_its_program_s_cgroup(oomrec, serve, cgroup):
    """It runs in the same cgroup, where its workers are killed.

    Few: the kernel reports ten kills in five seconds, of all tests that run now.
    """
    group = cgroup("40M")
    server = serve("6", "grows", preexec_fn=group.enter)
    for _ in range(6):
        assert server.await_line().endswith(" 9\n")
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1])
    assert resident < 8 * 1024
    assert server.end() == 0
    assert group.kills() >= 6


def test_the_program_keeps_its_oom_score(oomrec):
    """Only the launcher is to be killed last."""
    script = "print(open('/proc/self/oom_score_adj').read(), open(f'/proc/{__import__(\"os\").getppid()}/oom_score_adj').read())"
    run = oomrec("run", "--", sys.executable, "-c", script)
    own, launcher = map(int, run.stdout.split())
    assert own == int(Path("/proc/self/oom_score_adj").read_text())
    assert launcher in (-999, own)  # which takes CAP_SYS_RESOURCE
