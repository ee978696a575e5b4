"""What happens to a program from outside, once it has printed "ready PID"."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Mapping

from kernel_log import memory_cgroup_of

from truth.case import Scene

# A line of a daemon in the log: "earlyoom[312]: …".
DAEMON = re.compile(r"[\w-]+\[\d+\]: ")
Event = Callable[[Scene], None]
CALM = "".join(f"{who} avg10=0.00 avg60=0.00 avg300=0.00 total=0\n" for who in ("some", "full"))
GIB = 1 << 30


def sends(number: int, after_s: float = 0.3) -> Event:
    """A person, or a service manager, sends a signal."""

    def event(scene: Scene) -> None:
        time.sleep(after_s)  # the recorder's last check is over, as that of a program at rest
        os.kill(scene.pid, number)

    return event


def neighbour(mib: int, then: Event | None = None) -> Event:
    """Another process of the cgroup, unrecorded, takes memory and stays."""

    def event(scene: Scene) -> None:
        assert scene.cgroup
        script = f"x = bytearray(b'x') * ({mib} << 20); import time; time.sleep(8)"
        procs = scene.cgroup / "cgroup.procs"
        subprocess.Popen(
            ["/usr/bin/python3", "-c", script],
            preexec_fn=lambda: procs.write_text(str(os.getpid())) and None,
            start_new_session=True,
        )
        time.sleep(0.8)
        if then:
            then(scene)

    return event


def logs(text: str, then: Event | None = None) -> Event:
    """The kernel's or a daemon's log gets a line; {pid}, {comm} and {cgroup} are the program's."""

    def event(scene: Scene) -> None:
        assert scene.fixtures
        comm = Path(f"/proc/{scene.pid}/comm").read_text().strip()
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        with (scene.fixtures / "kernel.log").open("a") as log:
            for number, line in enumerate(text.splitlines()):
                level = 30 if DAEMON.match(line) else 3
                words = line.format(pid=scene.pid, comm=comm, cgroup=memory_cgroup_of(scene.pid))
                log.write(f"{level},{number + 2},{now_us},-;{words}\n")
        if then:
            then(scene)

    return event


def tells(pid: str, *words: str, then: Event | None = None) -> Event:
    """Who ends processes says why; {pid} is the program's."""

    def event(scene: Scene) -> None:
        said = scene.oomrec("ended", pid.format(pid=scene.pid), *words)
        (scene.directory / "ended").write_text(f"{said.returncode} {said.stdout}{said.stderr}")
        if then:
            then(scene)

    return event


def limits(mib: int) -> Event:
    """Its cgroup gets another limit."""

    def event(scene: Scene) -> None:
        assert scene.cgroup
        for name in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes", "memory.max"):
            with contextlib.suppress(OSError):
                (scene.cgroup / name).write_text(str(mib << 20))

    return event


def moves(limit: str, then: Event | None = None) -> Event:
    """It goes on in another cgroup."""

    def event(scene: Scene) -> None:
        (scene.add_cgroup(limit) / "cgroup.procs").write_text(str(scene.pid))
        if then:
            then(scene)

    return event


def empty_log(directory: Path) -> Mapping[str, str]:
    """Fixture: a kernel's log since boot without any kill."""
    (directory / "kernel.log").write_text("6,0,0,-;Linux version 6.1\n")
    return {"OOMREC_KERNEL_LOG": str(directory / "kernel.log")}


def unreadable_log(directory: Path) -> Mapping[str, str]:
    return {"OOMREC_KERNEL_LOG": "/nowhere"}


KILL, TERM, INTERRUPT = sends(signal.SIGKILL), sends(signal.SIGTERM), sends(signal.SIGINT)
