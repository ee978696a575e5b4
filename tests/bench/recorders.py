"""The recorders: how each is started with a program, and whether it is installed and works.

Recordings go into the folder that a run is given, and with it. Peers are used as their manuals
show, so what one does after the program has ended, or in a second process, counts.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from workloads import Workload

MODES = ("sampled", "exact")


@dataclass(frozen=True)
class Recorder:
    name: str
    title: str
    before: Callable[[list[str], Path], list[str]] | None = None  # (command, folder) -> command
    environment: Callable[[Path], dict[str, str]] = field(default=lambda folder: {})
    ours: bool = False
    python_only: bool = False
    scripts_only: bool = False  # does not support `python -c`
    needs: tuple[str, ...] = ()  # files that must exist

    def takes(self, workload: Workload) -> bool:
        if self.scripts_only and "-c" in workload.command:
            return False
        if workload.ours_alone and not (self.ours or self.name == "none"):
            return False
        return workload.is_python or not self.python_only

    def command(self, workload_command: list[str], folder: Path) -> list[str]:
        return self.before(workload_command, folder) if self.before else workload_command

    def problem(self, folder: Path, base: dict[str, str], python: str) -> str | None:
        """Why it cannot be used here, from one run of an empty program."""
        missing = [path for path in self.needs if not Path(path).exists()]
        if missing:
            return f"not installed: {Path(missing[0]).name}"
        script = folder / "nothing.py"
        script.write_text("pass\n")
        command = self.command([python, str(script)] if self.python_only else ["/bin/true"], folder)
        try:
            tried = subprocess.run(
                command, cwd=folder, env={**base, **self.environment(folder)},
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"does not run: {error}"
        complaints = tried.stderr.strip().splitlines()
        if tried.returncode != 0 or any("cannot be preloaded" in line for line in complaints):
            return f"does not run: {complaints[-1] if complaints else tried.returncode}"
        return None


def earlier(mode: str) -> str:
    """The name of one of our modes in an earlier build."""
    return f"earlier-{mode}"


def recorders(build: Path, against: Path | None, with_peers: bool) -> list[Recorder]:
    library = build / "liboomrec.so"
    tools = build / "venv" / "bin"
    libraries = Path("/usr/lib/x86_64-linux-gnu")

    def preload(path: Path, **settings: str):
        """Preloads the library. {} in a setting is the run's folder."""
        return lambda folder: {
            "LD_PRELOAD": str(path),
            **{name: value.replace("{}", str(folder)) for name, value in settings.items()},
        }

    def memray(*options: str):
        begin = [str(tools / "memray"), "run", "-q", "-f", *options, "-o"]
        return lambda command, folder: [*begin, str(folder / "memray.bin"), *command[1:]]

    def oomrec(name: str, title: str, mode: str, library: Path) -> Recorder:
        return Recorder(
            name, title, needs=(str(library),), ours=True,
            environment=preload(library, OOMREC_MODE=mode),
        )  # fmt: skip

    own = [Recorder("none", "no recorder")]
    for mode in MODES:
        own.append(oomrec(mode, f"oomrec {mode}", mode, library))
        if against:
            title = f"an earlier oomrec {mode}"
            own.append(oomrec(earlier(mode), title, mode, against / "liboomrec.so"))
    if not with_peers:
        return own
    return own + [
        Recorder(
            "heaptrack", "heaptrack",
            before=lambda command, folder: [
                shutil.which("heaptrack") or "heaptrack", "-o", str(folder / "heaptrack"), *command,
            ],
        ),
        Recorder(
            "memray", "memray", before=memray(), python_only=True, needs=(str(tools / "memray"),)
        ),
        Recorder(
            "memray-native", "memray --native", before=memray("--native"), python_only=True,
            needs=(str(tools / "memray"),),
        ),
        Recorder(
            "fil", "Fil", python_only=True, scripts_only=True, needs=(str(tools / "fil-profile"),),
            before=lambda command, folder: [
                str(tools / "fil-profile"), "--no-browser", "-o", str(folder / "fil"), "run", *command[1:],
            ],
        ),
        Recorder(
            "jemalloc", "jemalloc's profiler", needs=(str(libraries / "libjemalloc.so.2"),),
            environment=preload(
                libraries / "libjemalloc.so.2",
                MALLOC_CONF="prof:true,prof_final:true,lg_prof_sample:19,prof_prefix:{}/jemalloc",
            ),
        ),
        Recorder(
            "gperftools", "gperftools HEAPPROFILE", needs=(str(libraries / "libtcmalloc.so.4"),),
            environment=preload(libraries / "libtcmalloc.so.4", HEAPPROFILE="{}/gperftools"),
        ),
    ]  # fmt: skip
