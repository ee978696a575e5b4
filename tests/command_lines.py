"""The words that make each command do something with one bundle, and the options of `run`: for tests
that go over them all.

The commands are those that `oomrec --help` lists, and what they take is read from their own pages:
a new one is taken in by itself if its usage names a BUNDLE, else it needs an entry here.
"""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent

# Commands that read a bundle in another way than `oomrec COMMAND [--json] BUNDLE`.
WORDS = {
    "ls": lambda bundle, _: [[bundle.parent]],
    "diff": lambda bundle, _: [[bundle, bundle]],
    "export": lambda bundle, json: [
        [bundle] if json else ["--format", name, bundle] for name in TEXT_FORMATS
    ],
    "redact": lambda bundle, _: [],  # writes a bundle, and tells where
    **{
        page: lambda bundle, _: [["--force", bundle]]  # writes a page, in place of an earlier one
        for page in ("report", "flamegraph", "table")
    },
}
TEXT_FORMATS = ["folded", "speedscope", "json", "csv", "telemetry"]


def recording_options() -> dict[str, str]:
    """Flag → variable of each, as docs/options.md has them, which is generated."""
    page = (SOURCE / "docs" / "options.md").read_text()
    return dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| `(OOMREC_[A-Z_]+)` \|", page, re.M))


def commands(oomrec) -> list[str]:
    """All of them, in the order of `oomrec --help`."""
    listed = oomrec("--help").stdout.partition("\ncommands:\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


def help_of(oomrec, command: str) -> str:
    return oomrec(command, "--help").stdout


def reading_lines(oomrec, bundle: Path, json: bool = False) -> list[tuple[str, list]]:
    """(command, its words) of each way to read `bundle`; with --json of those that have it."""
    lines = []
    for command in commands(oomrec):
        page = help_of(oomrec, command)
        if json and "--json" not in page:
            continue
        by_default = [[bundle]] if re.search(r"^usage: .*\bBUNDLE\b", page) else []
        words = WORDS[command](bundle, json) if command in WORDS else by_default
        lines += [(command, ["--json", *some] if json else some) for some in words]
    return lines
