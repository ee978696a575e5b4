"""``python -m oomrec.gpumemprof``: GPU Memory Profiler's command line, translated for the command oomrec.

Its commands and flags are oomrec's own; this module only fills in defaults that differ. Output and exit codes
are oomrec's.
"""

from __future__ import annotations

import re
import sys
from typing import NoReturn, Sequence

from .._impl.command import exec_command

_COUNTS = ("--oom-buffer-size", "--oom-max-dumps", "--oom-max-total-mb")
_BELOW_0 = re.compile(r"-\d+$")

COMMANDS = ("info", "monitor", "track", "analyze", "diagnose")

USAGE = """\
usage: python -m oomrec.gpumemprof COMMAND [OPTION…]

  info        the system, devices, Python, limits
  monitor     samples of memory for a while
  track       events and alerts, until the command is stopped
  analyze     findings from a file of samples or events, or from a bundle
  diagnose    a directory of evidence; exit 2: memory is at risk

Each runs oomrec's command of that name: `oomrec COMMAND --help` lists its options.
--version prints the version of oomrec.

examples:
  python -m oomrec.gpumemprof info --detailed
  python -m oomrec.gpumemprof track --duration 60 --output events.csv
  python -m oomrec.gpumemprof analyze events.csv --format txt
"""


def translated(arguments: Sequence[str]) -> list[str]:
    """The arguments for oomrec: `track` writes CSV unless a format is given, a negative count becomes 0, and
    the directory of `diagnose` gets the name that programs expect."""
    words = [
        "0" if before in _COUNTS and _BELOW_0.match(word) else word
        for before, word in zip(["", *arguments], arguments)
    ]
    names = {word.partition("=")[0] for word in words}
    if words[0] == "track" and "--output" in names and "--format" not in names:
        words += ["--format", "csv"]
    if words[0] == "diagnose":
        words[1:1] = ["--name", "gpumemprof-diagnose"]
    return words


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command line (of this process if none is given) and exits with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        sys.exit(0)
    if words[0] == "--version":
        exec_command(words)
    if words[0] not in COMMANDS:
        sys.stderr.write(
            f"oomrec.gpumemprof: unknown command {words[0]!r}\n  Use {', '.join(COMMANDS)}.\n"
        )
        sys.exit(2)
    exec_command(translated(words))


__all__ = ["main"]
