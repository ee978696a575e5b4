"""The time of an empty block of the Python package, compared with an empty `with`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

NAME = "python"
HERE = Path(__file__).resolve().parent
GOALS_NS = {"context": 2000, "capture_oom": 3000}
MODES = {
    "alone": None,
    "sampled": "sampled",
    "exact": "exact",
}  # alone: without the library preloaded
TIMEOUT_S = 120


def measure_all(build: Path, base: dict, scratch: Path, rounds: int, quick: bool) -> list[dict]:
    """A row for each kind of block, with its figures in each mode."""
    python = str(build / "venv" / "bin" / "python")
    if not Path(python).exists():
        python = sys.executable
    figures: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for mode, setting in MODES.items():
            environment = {
                **base,
                "PYTHONPATH": str(HERE.parent.parent / "tools" / "python"),
                "OOMREC_LIBRARY": str(build / "liboomrec.so"),
                "OOMREC_SESSION_DIR": str(scratch),
                "OOMREC_DUMP_DIR": str(scratch / "python-dumps"),
            }
            if setting:
                environment.update(LD_PRELOAD=str(build / "liboomrec.so"), OOMREC_MODE=setting)
            run = subprocess.run(
                [python, str(HERE / "python_calls.py"), "100" if quick else "1000"],
                env=environment, capture_output=True, text=True, timeout=TIMEOUT_S,
            )  # fmt: skip
            if run.returncode != 0:
                print(f"  no figures ({mode}): {run.stderr[-300:]}", file=sys.stderr, flush=True)
                continue
            for name, took_ns in json.loads(run.stdout).items():
                figures.setdefault(name, {}).setdefault(mode, []).append(took_ns)
    return [
        {
            "call": name,
            "goal_ns": GOALS_NS.get(name),
            "median_ns": {mode: median(took) for mode, took in by_mode.items()},
        }
        for name, by_mode in figures.items()
    ]
