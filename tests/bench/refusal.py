"""How long a failing call takes to return, because it writes the bundle's data.

Wall time, by the program's own clock: it is what the program waits.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import measure

NAME = "refusal"
TIMEOUT_S = 300
HERE = Path(__file__).resolve().parent


def measure_all(build: Path, base: dict, scratch: Path, rounds: int, quick: bool) -> list[dict]:
    """A row for each program that can run."""
    program = str(build / "oomrec")
    stacks = 60_000 if quick else 600_000
    programs = [
        ("NumPy, batches of 32 MiB", ["--limit", "512M"],
         [str(build / "venv" / "bin" / "python"), str(HERE / "failing_numpy.py")], 50),
        (f"{stacks:,} distinct stacks, exact", ["--mode", "exact", "--recording-size", "2G"],
         [str(build / "tests" / "bench" / "stacks"), "20", str(stacks)], 1000),
    ]  # fmt: skip
    rows = []
    for number, (title, options, words, goal_ms) in enumerate(programs):
        took_ms = []
        for turn in range(rounds):
            where = ["--dump-dir", str(scratch / f"refused-{number}-{turn}"),
                     "--session-dir", str(scratch)]  # fmt: skip
            run = [program, "run", "--quiet", *where, *options, "--", *words]
            used = measure.run(run, base, scratch, TIMEOUT_S)
            if not used.figure:
                print(f"  no figure of {title}: {used.complaint}", file=sys.stderr, flush=True)
                break
            took_ms.append(float(used.figure))
        if took_ms:
            rows.append(
                {
                    "program": title,
                    "goal_ms": goal_ms,
                    "took_ms": took_ms,
                    "median_ms": statistics.median(took_ms),
                }
            )
    return rows
