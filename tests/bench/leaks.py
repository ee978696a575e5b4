"""Precision and recall of leak detection, on the labelled programs of tests/leaks, in both modes.

No rounds: a row is one run of one program in one mode.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "leaks"))
import cases  # noqa: E402

NAME = "leaks"
AT_ONCE = 4  # they mostly sleep
GOAL = 0.9


def measure_all(build: Path, base: dict, scratch: Path, rounds: int, quick: bool) -> list[dict]:
    """A row for each program and mode, except programs whose module is not installed."""
    python = str(build / "venv" / "bin" / "python")
    if not Path(python).exists():
        python = sys.executable
    here = [case for case in cases.CASES if case.module is None or has_module(python, case.module)]
    seconds = 4 if quick else 8
    sessions = scratch / "leaks"
    sessions.mkdir(mode=0o700)
    environment = {
        **base,
        "OOMREC_SESSION_DIR": str(sessions),
        "OOMREC_DUMP_DIR": str(scratch / "leaks-dumps"),
        "XDG_CACHE_HOME": str(scratch),
    }

    def row_of(run: tuple[cases.Case, str]) -> dict:
        case, mode = run
        judged = cases.run_case(build, case, mode, seconds, environment, python)
        return {
            "program": case.name,
            "what": case.what,
            "leaks": case.culprit is not None,
            "mode": mode,
            "right": len(judged.right),
            "wrong": len(judged.wrong),
            "bytes_per_second": sum(leak["bytes_per_second"] for leak in judged.result["leaks"]),
            "confidence": max(
                (leak["confidence"] for leak in judged.result["leaks"]), default=None
            ),
        }

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(row_of, [(case, mode) for case in here for mode in cases.MODES]))


def has_module(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def precision_and_recall(rows: list[dict]) -> tuple[float, float]:
    """The share of reported leaks that is right, and the share of leaking programs with a report."""
    right, wrong = sum(row["right"] for row in rows), sum(row["wrong"] for row in rows)
    leaking = [row for row in rows if row["leaks"]]
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = sum(row["right"] > 0 for row in leaking) / len(leaking) if leaking else 1.0
    return precision, recall
