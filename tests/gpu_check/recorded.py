"""Runs a program of the check, recorded or not, and reads what it left.

Each run has a folder of its own for bundles, recordings and names, which goes with the check.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .outcome import Failed, Skipped, expect

PROGRAMS = Path(__file__).resolve().parent / "programs"
PROGRAM_S = 90  # time limit of a program


class Lab:
    """The directory and environment of the check's programs."""

    def __init__(self, build: Path, python: str, directory: Path):
        self.build, self.python, self.directory = build, python, directory
        self.ends = math.inf  # end of the checks' time
        self.fills: dict[str, Run] = {}  # by driver: several checks share one run

    def end_after(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds

    def seconds(self) -> float:
        """The time limit for the next program."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise Skipped("no time is left")
        return min(PROGRAM_S, left)

    def environment(self) -> dict[str, str]:
        """The machine's environment without variables that record, or change how a program allocates.

        Nothing is written beside the programs.
        """
        unwanted = ("OOMREC_", "LD_PRELOAD", "PYTORCH_", "XLA_", "CUPY_", "PYTHONMALLOC")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *command: object, recorded: bool = True, **options: str) -> Run:
        """Runs `command`; a .py file by this Python: one of the check's own, or where its path says.

        `options`: further environment.
        """
        words = [str(word) for word in command]
        if words[0].endswith(".py"):
            words = [self.python, str(PROGRAMS / words[0]), *words[1:]]
        folder = Path(tempfile.mkdtemp(dir=self.directory))
        environment = {
            **self.environment(),
            "OOMREC_DUMP_DIR": str(folder / "dumps"),
            "OOMREC_SESSION_DIR": str(folder),
            "OOMREC_MAX_DUMPS": "0",  # keep all bundles
            "OOMREC_QUIET": "1",
            **options,
        }
        if recorded:
            environment["LD_PRELOAD"] = str(self.build / "liboomrec.so")
        seconds = self.seconds()
        with subprocess.Popen(
            words, env=environment, cwd=folder, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                stdout, stderr = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                self.seconds()  # its own time limit, or that of all checks
                raise Failed(f"{words[-1]} still ran after {seconds:.0f} s") from None
        return Run(self, words, folder, stdout, stderr, process.returncode)

    def must(self, *command: object, exit_code: int = 0, **options) -> Run:
        """The same for a program that must end in this way."""
        run = self.run(*command, **options)
        for fact in run.said:
            if "skip" in fact:
                raise Skipped(fact["skip"])
        last = (run.stderr.strip() or "nothing on stderr").splitlines()[-1]
        expect(run.exit_code == exit_code, f"{run.words[-1]}: exit code {run.exit_code}: {last}")
        return run

    def command_environment(self) -> dict[str, str]:
        """For `oomrec`: shared libraries that the machine lacks may lie in BUILD/lib."""
        environment = {**self.environment(), "XDG_CACHE_HOME": str(self.directory / "cache")}
        if (self.build / "lib").is_dir():
            paths = [str(self.build / "lib"), environment.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
        return environment

    def command(self, *words: object, folder: Path) -> str:
        """The output of `oomrec`."""
        environment = self.command_environment()
        done = subprocess.run(
            [str(self.build / "oomrec"), *map(str, words)],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=self.seconds(),
        )  # fmt: skip
        expect(done.returncode == 0, f"oomrec {words[0]}: {done.stderr.strip()}")
        return done.stdout


class Run:
    """A program that has ended."""

    def __init__(self, lab: Lab, words, folder: Path, stdout: str, stderr: str, exit_code: int):
        self.lab, self.words, self.folder = lab, words, folder
        self.stdout, self.stderr, self.exit_code = stdout, stderr, exit_code
        self.said = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]

    def facts(self) -> dict:
        """Its output without its marks."""
        return {k: v for fact in self.said if "mark" not in fact for k, v in fact.items()}

    def marks(self) -> dict[str, dict]:
        return {fact.pop("mark"): fact for fact in map(dict, self.said) if "mark" in fact}

    def bundles(self) -> list[Path]:
        """Bundles, oldest first."""
        found = (self.folder / "dumps").glob("oom_*/manifest.json")
        return sorted((path.parent for path in found), key=lambda path: path.name.split("_")[2:])

    def show(self, bundle: Path) -> dict:
        return json.loads(self.lab.command("show", "--json", bundle, folder=self.folder))

    def device(self, shown: dict, driver: str) -> dict:
        """The first device of a bundle's `show --json`."""
        found = [device for device in shown["devices"] if device["device"] == f"{driver}:0"]
        expect(found, f"{driver}:0 is not among the devices")
        return found[0]

    def metadata(self, bundle: Path) -> dict:
        return json.loads((bundle / "metadata.json").read_text())

    def marked(self, mark: str) -> dict:
        """`show --json` of the bundle that the program requested at this mark."""
        for bundle in self.bundles():
            if self.metadata(bundle)["context"] == mark:
                return self.show(bundle)
        raise Failed(f"no bundle of the mark {mark!r}: the program was not recorded")

    def failures(self, api: str = "") -> list[dict]:
        """`show --json` of the bundles of failed requests, oldest first, optionally only of one function."""
        shown = [self.show(path) for path in self.bundles() if self.is_failure(path)]
        return [one for one in shown if api in ("", one["request"]["api"])]

    def is_failure(self, bundle: Path) -> bool:
        return self.metadata(bundle)["reason"] not in ("request", "near_limit")

    def failure(self, api: str = "") -> dict:
        found = self.failures(api)
        expect(found, f"no bundle of a refused {api or 'request'}: it was not recorded")
        return found[0]


def names_line(stack: list[dict], file: str, function: str) -> bool:
    return any(
        (frame.get("file") or "").endswith(file) and frame.get("function") == function
        for frame in stack
    )
