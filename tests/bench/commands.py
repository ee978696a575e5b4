"""How long each command takes to start: from its start to the end of its --help.

Wall time, as who types it waits for it; the files are in the page cache.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from pathlib import Path

NAME = "commands"
GOAL_MS = 30


def measure_all(build: Path, base: dict, scratch: Path, rounds: int, quick: bool) -> list[dict]:
    """A row for each command that `oomrec --help` lists."""
    program = str(build / "oomrec")

    def help_of(*words: str) -> str:
        run = subprocess.run([program, *words, "--help"], env=base, cwd=scratch, check=True,
                             capture_output=True, text=True)  # fmt: skip
        return run.stdout

    def took_ms(name: str) -> float:
        begin = time.perf_counter()
        help_of(name)
        return (time.perf_counter() - begin) * 1000

    listed = help_of().partition("\nexamples:\n")[0]
    rows = []
    for name in re.findall(r"^  (\w+) ", listed, re.M):
        took_ms(name)  # its pages come into memory
        took = [took_ms(name) for _ in range(rounds)]
        rows.append(
            {
                "program": f"oomrec {name} --help",
                "goal_ms": GOAL_MS,
                "took_ms": took,
                "median_ms": statistics.median(took),
            }
        )
    return rows
