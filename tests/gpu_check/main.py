"""The command line of scripts/check-gpu, and what it prints."""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from . import attach_checks, driver_checks, exports, program_checks
from .outcome import Failed, Skipped, size
from .recorded import Lab

SOURCE = Path(__file__).resolve().parents[2]
DRIVERS = {"cuda": "CUDA", "hip": "HIP"}


class Report:
    """Prints one line for each check, immediately."""

    def __init__(self, lab: Lab) -> None:
        self.counts = dict.fromkeys(("PASS", "FAIL", "SKIP"), 0)
        self._lab = lab

    def line(self, result: str, name: str, remark: str = "") -> None:
        if result in self.counts:
            self.counts[result] += 1
        print(f"{result}  {name}{': ' if remark else ''}{remark}", flush=True)

    def check(self, name: str, call) -> None:
        started = time.monotonic()
        try:
            result, remark = "PASS", self._within_time(call)
        except Skipped as reason:
            result, remark = "SKIP", str(reason)
        except Failed as reason:
            result, remark = "FAIL", str(reason)
        except (subprocess.TimeoutExpired, OSError, KeyError, StopIteration, ValueError) as error:
            result, remark = "FAIL", f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - started
        self.line(result, name, f"{remark} ({seconds:.1f} s)" if seconds >= 1 else remark)

    def _within_time(self, call) -> str:
        self._lab.seconds()
        try:
            return call()
        except subprocess.TimeoutExpired:
            self._lab.seconds()  # its own time limit, or that of all checks
            raise

    def info(self, text: str) -> None:
        self.line("INFO", text)


def identify(lab: Lab, driver: str) -> dict | None:
    run = lab.run("identify.py", driver, recorded=False)
    return run.facts() if run.exit_code == 0 and run.facts().get("devices") else None


def describe(driver: str, machine: dict) -> None:
    release = f", release {machine['release']}" if machine["release"] else ""
    print(f"{DRIVERS[driver]} {machine['version']}{release}, {machine['library']}")
    for number, device in enumerate(machine["devices"]):
        free = f"{size(device['free'])} of {size(device['total'])} free"
        print(f"  {driver}:{number}  {device['name']}, {free}, UUID {device['uuid']}")
    if machine["simulated"]:
        print("  simulated devices: of a driver for tests, not of a GPU")


def checks_of(report: Report, lab: Lab, driver: str, machine: dict) -> dict:
    """The checks by name."""

    def names() -> str:
        remark, lines = exports.compare(driver, machine["library"], machine["version"])
        for line in lines:
            report.info(f"{DRIVERS[driver]}, {line}")
        return remark

    checks = {f"{DRIVERS[driver]}: names": names}
    for name, check in driver_checks.CHECKS.items():
        checks[f"{DRIVERS[driver]}: {name}"] = partial(check, lab, driver)
    if driver == "cuda":
        for name, check in (program_checks.CHECKS | attach_checks.CHECKS).items():
            checks[name] = partial(check, lab, machine)
    return checks


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/check-gpu",
        description="Checks the recorder on this machine's GPUs, with what is installed. Fills the"
        " first device for seconds at a time: not beside other work. CUDA_VISIBLE_DEVICES chooses"
        " another. The exit code is 1 when a check failed, 2 when there is nothing to check.",
    )
    parser.add_argument("build", nargs="?", default=SOURCE / "build", type=Path,
                        help="folder of liboomrec.so and oomrec (build)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=300, help="at most (300)")
    parser.add_argument("--check", action="append", default=[], metavar="TEXT",
                        help="only checks whose line has this text; several are allowed")  # fmt: skip
    chosen = parser.parse_args(arguments)
    build = chosen.build.resolve()
    for name in ("liboomrec.so", "oomrec"):
        if not (build / name).exists():
            print(f"scripts/check-gpu: no {name} in {build}", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="check-gpu-") as directory:
        lab = Lab(build, sys.executable, Path(directory))
        try:
            version = lab.command("--version", folder=lab.directory).strip()
        except Failed as reason:
            print(f"scripts/check-gpu: {reason}", file=sys.stderr)
            print(f"  Put the libraries that it lacks into {build / 'lib'}.", file=sys.stderr)
            return 2
        try:
            machines = {driver: identify(lab, driver) for driver in DRIVERS}
        except Failed as reason:
            print(f"scripts/check-gpu: {reason}", file=sys.stderr)
            return 2
        found = {driver: machine for driver, machine in machines.items() if machine}
        if not found:
            print("scripts/check-gpu: no driver with a device here", file=sys.stderr)
            return 2
        lab.end_after(chosen.seconds)
        report = Report(lab)
        checks = {}
        for driver, machine in found.items():
            checks |= checks_of(report, lab, driver, machine)
        for text in chosen.check:
            if not any(text in name for name in checks):
                print(f"scripts/check-gpu: no check here has {text!r}; there are", file=sys.stderr)
                print(*(f"  {name}" for name in checks), sep="\n", file=sys.stderr)
                return 2
        now = datetime.datetime.now(datetime.timezone.utc)
        print(f"{version}, on {now:%Y-%m-%d %H:%M} UTC, Python {sys.version.split()[0]}")
        for driver, machine in found.items():
            describe(driver, machine)
        for name, check in checks.items():
            if not chosen.check or any(text in name for text in chosen.check):
                report.check(name, check)
    print(", ".join(f"{count} {result}" for result, count in report.counts.items()))
    return 1 if report.counts["FAIL"] else 0
