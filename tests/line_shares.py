"""Compares the lines of a recording with tracemalloc's: line_shares.py OOMREC PYTHON SCRIPT [OPTION…].

Runs SCRIPT under `oomrec run OPTION…` with tracemalloc on top. A SCRIPT that calls attach() runs without the recorder;
there `oomrec attach OPTION…` comes, and tracemalloc is started. At its end it writes a bundle and a snapshot of the
same moment. Prints which share of tracemalloc's live bytes the recording has on the same line: the sum over all
lines of the smaller figure, divided by all bytes; then the same for lines that hold at least 4 KiB and 64 KiB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ENDING = """
import gc as _gc, json as _json, os as _os, tracemalloc as _tracemalloc
_gc.collect()
_os.spawnv(_os.P_WAIT, {oomrec!r}, ["oomrec", "dump", "--to", {bundles!r}, str(_os.getpid())])
_rows = [
    (row.traceback[0].filename, row.traceback[0].lineno, row.size)
    for row in _tracemalloc.take_snapshot().statistics("lineno")
]
with open({rows!r}, "w") as _file:
    _json.dump(_rows, _file)
_os._exit(0)
"""

ATTACHING = """
def attach():
    import os, tracemalloc
    words = [{oomrec!r}, "attach", "--dump-dir", {directory!r}, *{options!r}, str(os.getpid())]
    if os.spawnv(os.P_WAIT, words[0], words) != 0:
        os._exit(1)
    tracemalloc.start()

"""

Lines = Counter  # bytes by (file, line)


def recorded_lines(oomrec: str, bundle: Path) -> Lines:
    """Live bytes by the innermost Python line."""
    shown = subprocess.check_output(
        [oomrec, "show", "--json", "--top", "10000000", "--at", "end", bundle]
    )
    lines: Lines = Counter()
    for holder in json.loads(shown)["holders"]:
        if holder["space"] not in ("heap", "python"):
            continue
        for frame in holder["stack"]:
            if frame["kind"] == "python":
                lines[(frame["file"], frame["line"])] += holder["bytes"]
                break
    return lines


def compare(
    oomrec: str, python: str, script: str, options: list[str], directory: Path
) -> tuple[Lines, Lines]:
    """The recording's lines and tracemalloc's."""
    bundles, rows = directory / "bundles", directory / "rows.json"
    program = directory / "program.py"
    ending = ENDING.format(oomrec=str(oomrec), bundles=str(bundles), rows=str(rows))
    command = [oomrec, "run", "--quiet", "--dump-dir", directory, *options, "--", python, program]
    environment = {**os.environ, "PYTHONTRACEMALLOC": "1"}
    if "attach()" in script:
        script = (
            ATTACHING.format(oomrec=str(oomrec), directory=str(directory), options=options) + script
        )
        command, environment = [python, program], dict(os.environ)
    program.write_text(script + ending)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    (bundle,) = bundles.iterdir()
    theirs: Lines = Counter()
    for file, line, size in json.loads(rows.read_text()):
        if not file.endswith("tracemalloc.py"):
            theirs[(file, line)] += size
    return recorded_lines(oomrec, bundle), theirs


def share(ours: Lines, theirs: Lines, least_bytes: int = 0) -> float:
    """Of the bytes on lines that hold at least so many."""
    lines = {line: size for line, size in theirs.items() if size >= least_bytes}
    return sum(min(size, ours[line]) for line, size in lines.items()) / sum(lines.values())


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    oomrec, python, script, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = compare(
            os.path.abspath(oomrec), python, Path(script).read_text(), options, Path(directory)
        )
    print(
        f"{sum(theirs.values()) / 2**20:.1f} MiB on {len(theirs)} lines:",
        ", ".join(
            f"{share(ours, theirs, least):.1%} {what}"
            for what, least in (
                ("of all", 0),
                ("from 4 KiB a line", 4096),
                ("from 64 KiB", 65536),
            )
        ),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
