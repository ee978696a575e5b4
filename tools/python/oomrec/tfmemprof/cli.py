"""``python -m oomrec.tfmemprof``: tfmemprof's command line, translated for the command oomrec.

It takes devices in TensorFlow's notation, an alert's threshold in MiB, and the file to analyze by --input.
oomrec takes numbers, percentages and a plain argument.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any, NoReturn, Sequence

from .._impl.command import command, exec_command
from ..errors import ConfigurationError
from ..gpumemprof import _proc
from ..gpumemprof._devices import Device, parse_device
from ._tensorflow import MIB

FOREVER_S = 10 * 365 * 86400  # the duration of `monitor` without --duration
RANK = ("job_id", "rank", "local_rank", "world_size")

_EPILOG = """\
examples:
  python -m oomrec.tfmemprof monitor --duration 30 --device /GPU:0
  python -m oomrec.tfmemprof track --threshold 4000 --output events.json
  python -m oomrec.tfmemprof analyze --input events.json --detect-leaks --report report.txt
"""


class _Parser(argparse.ArgumentParser):
    """Exits with 1 for bad input of `diagnose`, where 2 means that memory is at risk."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1 if self.prog.endswith(" diagnose") else 2, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m oomrec.tfmemprof",
        description="The memory of TensorFlow programs. Each command runs oomrec's command of that name.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="all of `info`")
    parser.add_argument("--version", action="store_true", help="print the version of oomrec")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("info", help="the system, devices, Python, limits")

    monitor = commands.add_parser("monitor", help="samples of memory for a while")
    _add_clock(monitor, 1.0, "until the command is stopped")
    monitor.add_argument("--threshold", type=float, metavar="MB", help="alert above so many MiB")
    monitor.add_argument("--output", metavar="FILE", help="write the samples there, as JSON")

    track = commands.add_parser("track", help="events and alerts, until the command is stopped")
    _add_clock(track, 1.0, None)
    track.add_argument(
        "--threshold",
        type=float,
        metavar="MB",
        default=4000.0,
        help="alert above so many MiB (4000)",
    )
    for key in RANK:
        track.add_argument(f"--{key.replace('_', '-')}", metavar="N", help="as for oomrec track")
    track.add_argument("--output", metavar="FILE", required=True, help="write the events there")

    analyze = commands.add_parser("analyze", help="findings from a file of samples or events")
    analyze.add_argument("--input", metavar="FILE", required=True, help="the file, or a bundle")
    for flag in ("--detect-leaks", "--optimize", "--visualize"):
        analyze.add_argument(flag, action="store_true", help="as for oomrec analyze")
    analyze.add_argument("--report", metavar="FILE", help="write the page there as well")

    diagnose = commands.add_parser("diagnose", help="a directory of evidence")
    _add_clock(diagnose, 0.5, "5")
    diagnose.add_argument("--output", metavar="DIR", help="where the directory goes")
    return parser


def _add_clock(parser: argparse.ArgumentParser, interval: float, duration: str | None) -> None:
    parser.add_argument(
        "--interval",
        type=float,
        metavar="SECONDS",
        default=interval,
        help=f"between two samples ({interval:g})",
    )
    if duration is not None:
        parser.add_argument(
            "--duration", type=float, metavar="SECONDS", help=f"how long ({duration})"
        )
    parser.add_argument(
        "--device", metavar="DEVICE", help="/GPU:0 or /CPU:0 (the first GPU, else the host)"
    )


def _total_bytes(device: Device) -> int:
    """A GPU's memory as oomrec reports it, else the host's. Raises ConfigurationError if there is no such GPU."""
    if device.kind != "gpu":
        return _proc.host_limit_bytes()
    number = str(device.number or 0)
    path = command()
    if path is None:
        return _proc.host_limit_bytes()  # exec_command() reports the missing command
    words = [path, "info", "--json", "--device", number]
    run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    try:
        devices = json.loads(run.stdout)["devices"]
        return int(devices[0]["total_bytes"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise ConfigurationError(
            f"the size of /GPU:{number} is unknown, so --threshold cannot be converted to a share of it; "
            "use oomrec track --warning-threshold PERCENT"
        ) from None


def translated(options: argparse.Namespace) -> list[str]:
    """The arguments for oomrec. Raises ConfigurationError for an invalid device."""
    if options.command == "info":
        return ["info", *(["--detailed"] if options.verbose else [])]
    given: dict[str, Any] = vars(options)
    if options.command == "analyze":
        words = ["analyze", options.input]
        words += [
            f"--{flag.replace('_', '-')}"
            for flag in given
            if given[flag] is True and flag != "verbose"
        ]
        return words + (["--report", options.report] if options.report else [])

    device = parse_device(options.device)
    threshold = given.get("threshold")
    duration = given.get("duration")
    name = "track" if options.command == "monitor" and threshold is not None else options.command
    words = [name, "--interval", f"{options.interval:g}"]
    if device.kind:
        words += ["--device", "cpu" if device.kind == "cpu" else str(device.number or 0)]
    if duration is None and name == "monitor":
        duration = FOREVER_S
    if duration is not None:
        words += ["--duration", f"{duration:.15g}"]
    if threshold is not None:
        share = min(100.0, 100.0 * threshold * MIB / max(_total_bytes(device), 1))
        words += ["--warning-threshold", f"{share:.4g}", "--critical-threshold", "100"]
    for key in RANK:
        if given.get(key) is not None:
            words += [f"--{key.replace('_', '-')}", given[key]]
    if options.output:
        words += ["--output", options.output]
        words += ["--format", "json"] if name in ("monitor", "track") else []
    if name == "diagnose":
        words += ["--name", "tfmemprof-diagnose"]
    return words


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command line (of this process if none is given) and exits with its code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        exec_command(["--version"])
    if options.command is None:
        parser.print_help()
        sys.exit(0)
    try:
        words = translated(options)
    except ConfigurationError as error:
        sys.stderr.write(f"oomrec.tfmemprof: {error}\n")
        sys.exit(1 if options.command == "diagnose" else 2)
    exec_command(words)


__all__ = ["main"]
