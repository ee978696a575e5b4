"""Arguments with which each command reads one bundle, and the options of `run`, for tests of all.

The commands are those that `oomrec --help` lists. Their usage lines show which ones take a BUNDLE.
A new command without BUNDLE in its usage needs an entry here.
"""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent

# Commands with other arguments than `oomrec COMMAND [--json] BUNDLE`.
WORDS = {
    "ls": lambda bundle, _: [[bundle.parent]],
    "diff": lambda bundle, _: [[bundle, bundle]],
    "export": lambda bundle, json: [
        [bundle] if json else ["--format", name, bundle] for name in TEXT_FORMATS
    ],
    "redact": lambda bundle, _: [],  # writes a bundle and prints its path
    **{
        page: lambda bundle, _: [["--force", bundle]]  # overwrites an earlier page
        for page in ("report", "flamegraph", "table")
    },
}
TEXT_FORMATS = ["folded", "speedscope", "json", "csv", "telemetry", "row"]


def recording_options() -> dict[str, str]:
    """Option → variable, from the generated docs/options.md."""
    page = (SOURCE / "docs" / "options.md").read_text()
    return dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| `(OOMREC_[A-Z_]+)` \|", page, re.M))


def commands(oomrec) -> list[str]:
    """All of them, in the order of `oomrec --help`."""
    listed = oomrec("--help").stdout.partition("\nexamples:\n")[0]
    return re.findall(r"^  (\w+) ", listed, re.M)


def help_of(oomrec, command: str) -> str:
    return oomrec(command, "--help").stdout


def reading_lines(oomrec, bundle: Path, json: bool = False) -> list[tuple[str, list]]:
    """(command, arguments) for each way to read `bundle`. `json`: only commands with --json."""
    lines = []
    for command in commands(oomrec):
        page = help_of(oomrec, command)
        if json and "--json" not in page:
            continue
        by_default = [[bundle]] if re.search(r"^usage: .*\bBUNDLE\b", page) else []
        words = WORDS[command](bundle, json) if command in WORDS else by_default
        lines += [(command, ["--json", *some] if json else some) for some in words]
    return lines
