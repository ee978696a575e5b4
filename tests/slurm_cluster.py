"""Slurm with one node, this machine: its own controller, node daemon and authentication, in a directory of its own.

Needs root, as slurmd does. Nothing of it stays: not the daemons, nor the node's cgroups.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from conftest import SOURCE, clean_environment
from servers import free_port

EXAMPLES = SOURCE / "docs" / "examples" / "slurm"
SCRIPTS = {"TaskProlog": "task-prolog", "TaskEpilog": "task-epilog", "Epilog": "epilog"}
TIMEOUT_S = 300


class SlurmCluster:
    """`settings` are lines of slurm.conf, `constrains` whether a step's cgroup has its memory limit."""

    def __init__(self, directory: Path, build_dir: Path, *settings: str, constrains: bool = False):
        self.directory = directory
        self.node = f"oomrec{os.getpid()}x{free_port()}"
        self._daemons: list[subprocess.Popen] = []
        for name in ("munge", "state", "spool", "bin", "work"):
            (directory / name).mkdir()
        self.environment = {**clean_environment(), "SLURM_CONF": str(directory / "slurm.conf")}
        self._install_examples(build_dir)
        for attempt in range(3):
            self._write_configuration(settings, constrains)
            try:
                self._start()
                return
            except BaseException:
                self.stop()
                if attempt == 2:
                    raise  # else another program has taken one of the ports meanwhile

    def _install_examples(self, build_dir: Path) -> None:
        """As a site would: with its own paths."""
        for script in SCRIPTS.values():
            text = (EXAMPLES / script).read_text()
            text = text.replace("PATH=/usr/local/bin:", f"PATH={build_dir}:/usr/local/bin:")
            text = text.replace("/var/log/slurm/slurmd.log", str(self.directory / "slurmd.log"))
            text = text.replace("/dev/shm/oomrec-slurm.", f"/dev/shm/{self.node}.")
            (self.directory / script).write_text(text)
            (self.directory / script).chmod(0o755)

    def _write_configuration(self, settings: tuple[str, ...], constrains: bool) -> None:
        at = self.directory
        (at / "munge" / "key").write_bytes(os.urandom(128))
        (at / "munge" / "key").chmod(0o600)
        (at / "munge").chmod(0o711)
        scripts = [f"{setting}={at / script}" for setting, script in SCRIPTS.items()]
        lines = [
            "ClusterName=oomrec",
            f"SlurmctldHost={socket.gethostname().split('.')[0]}(127.0.0.1)",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={at / 'munge' / 'socket'}",
            f"SlurmctldPort={free_port()}",
            f"SlurmdPort={free_port()}",
            f"StateSaveLocation={at / 'state'}",
            f"SlurmdSpoolDir={at / 'spool'}",
            f"SlurmctldPidFile={at / 'slurmctld.pid'}",
            f"SlurmdPidFile={at / 'slurmd.pid'}",
            f"SlurmctldLogFile={at / 'slurmctld.log'}",
            f"SlurmdLogFile={at / 'slurmd.log'}",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=" + ("task/cgroup" if constrains else "task/none"),
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU_Memory",
            "MpiDefault=none",
            "KillWait=2",
            "JobAcctGatherType=jobacct_gather/linux",
            "JobAcctGatherFrequency=task=1",
            *scripts,
            *settings,
            f"NodeName={self.node} NodeHostname={socket.gethostname().split('.')[0]} "
            f"NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=2000",
            f"PartitionName=all Nodes={self.node} Default=YES State=UP",
        ]
        (at / "slurm.conf").write_text("\n".join(lines) + "\n")
        limits = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n"
        (at / "cgroup.conf").write_text(limits if constrains else "")

    def _start(self) -> None:
        at = self.directory
        munge = at / "munge"
        files = [f"--{name}-file={munge / name}" for name in ("key", "pid", "log", "seed")]
        self._daemon("munged", "-F", "--force", f"--socket={munge / 'socket'}", *files)
        self.wait_until(lambda: (munge / "socket").exists(), "munged")
        self._daemon("slurmctld", "-D", "-f", at / "slurm.conf")
        self._daemon("slurmd", "-D", "-f", at / "slurm.conf", "-N", self.node)
        self.wait_until(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T").stdout, "slurmd")

    def _daemon(self, *words) -> None:
        with open(self.directory / f"{words[0]}.out", "wb") as output:
            self._daemons.append(
                subprocess.Popen(
                    [str(word) for word in words],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def wait_until(self, happens, what: str) -> None:
        until = time.monotonic() + TIMEOUT_S
        while not happens():
            if time.monotonic() > until or any(one.poll() is not None for one in self._daemons):
                logs = [path.read_text() for path in self.directory.glob("*.log")]
                outputs = [path.read_text() for path in self.directory.glob("*.out")]
                raise AssertionError("\n".join([f"{what} does not start", *logs, *outputs]))
            time.sleep(0.05)

    def run(self, *words) -> subprocess.CompletedProcess:
        """A command of Slurm's, in the directory of jobs."""
        return subprocess.run(
            [str(word) for word in words],
            env=self.environment,
            cwd=self.directory / "work",
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )

    def wait_for_epilogs(self) -> None:
        """Until no job is left, and its epilog has ended."""
        self.wait_until(lambda: not self.run("squeue", "-h").stdout, "squeue")
        self.wait_until(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T").stdout, "sinfo")

    def bundles(self) -> list[Path]:
        return sorted((self.directory / "work" / "oom_dumps").glob("oom_*/manifest.json"))

    def recordings(self) -> list[Path]:
        return list(Path("/dev/shm").glob(f"{self.node}.*"))

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons = []
        for path in self.recordings():
            shutil.rmtree(path)
        for root in Path("/sys/fs/cgroup").glob(f"*/slurm_{self.node}"):
            for group, _, _ in os.walk(root, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(group)
