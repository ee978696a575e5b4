"""What the reading commands cost: for a recording with a million stacks, and for a training script.

Not the recorder's cost: nothing is compared, a command has a bound of CPU time.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import measure

NAME = "reading"
TIMEOUT_S = 300
EXAMPLE = Path(__file__).resolve().parent.parent.parent / "docs" / "examples" / "train_numpy.py"


def measure_all(build: Path, base: dict, scratch: Path, rounds: int, quick: bool) -> list[dict]:
    """A row for each command and recording, except recordings that could not be made."""
    program = str(build / "oomrec")
    levels = 15 if quick else 20
    stacks = [str(build / "tests" / "bench" / "stacks"), str(levels)]
    python = str(build / "venv" / "bin" / "python")
    recordings = [
        (f"{2**levels:,} distinct stacks", ["--mode", "exact", "--recording-size", "2G"], stacks,
         {"stats": 2, "show": 2, "tree": 2, "tree --top-down": 2}),
        ("100,000 distinct stacks", ["--mode", "exact", "--recording-size", "2G"],
         [*stacks[:1], "17", "100000"], {"report --force": 2}),
        ("docs/examples/train_numpy.py", ["--limit", "512M"], [python, str(EXAMPLE)],
         {"show": 0.5}),
    ]  # fmt: skip
    environment = {**base, "XDG_CACHE_HOME": str(scratch)}
    rows = []
    for number, (title, options, recorded, goals) in enumerate(recordings):
        bundles = scratch / f"bundles-{number}"
        where = ["--dump-dir", str(bundles), "--session-dir", str(scratch)]
        made = measure.run(
            [program, "run", "--quiet", *where, *options, "--", *recorded],
            environment, scratch, TIMEOUT_S,
        )  # fmt: skip
        found = sorted(bundles.glob("*/manifest.json"))
        if not found:
            print(f"  no recording of {title}: {made.complaint}", file=sys.stderr, flush=True)
            continue
        for command, goal_s in goals.items():
            words = [program, *command.split(), str(found[0].parent)]
            measure.run(words, environment, scratch, TIMEOUT_S)  # fills the symbol cache
            used = [measure.run(words, environment, scratch, TIMEOUT_S) for _ in range(rounds)]
            assert all(one.exit_code == 0 for one in used), used[0].complaint
            rows.append(
                {
                    "command": command,
                    "recording": title,
                    "goal_s": goal_s,
                    "cpu_s": [one.cpu_s for one in used],
                    "median_s": statistics.median(one.cpu_s for one in used),
                    "rss_mib": used[-1].rss_mib,
                }
            )
    return rows
