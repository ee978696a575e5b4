"""instructions.py BUILD: instructions that a malloc and its free execute, by path of the recorder.

They are counted by single steps, so they do not depend on the machine's load. "Added" is what the
recorder adds to the same pairs without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = (
    4  # in one count: so few that some counts do not contain the clock's reading, each 16th event
)
ROUNDS = 40

# Mode, pattern (descents.h) and depth; and how many instructions a pair may add: a quarter above what
# gcc 12's code takes.
ROWS = {
    ("exact", "a", 16): 660,
    ("exact", "a", 36): 760,
    ("exact", "a", 106): 1120,
    ("exact", "c", 36): 760,
    ("exact", "d", 16): 1000,
    ("sampled", "a", 36): 160,
}


def count(build: Path, mode: str | None, pattern: str, depth: int, pairs: int = PAIRS) -> float:
    """Instructions a pair; `mode` None: without the recorder. OSError: single steps are not allowed, or too slow."""
    bench = build / "tests" / "bench"
    with tempfile.TemporaryDirectory() as directory:
        recorder = [
            f"LD_PRELOAD={build / 'liboomrec.so'}", f"OOMREC_MODE={mode}",
            f"OOMREC_SESSION_DIR={directory}", f"OOMREC_DUMP_DIR={directory}",
        ]  # fmt: skip
        try:
            done = subprocess.run(
                [
                    bench / "count_steps", "/usr/bin/env", *(recorder if mode else []),
                    bench / "micro", pattern, str(depth), str(pairs), str(ROUNDS),
                ],
                capture_output=True, text=True, timeout=100, check=False,
                env={"PATH": os.environ["PATH"]},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise OSError("too slow") from error
    if done.returncode != 0:
        raise OSError(done.stderr)
    return int(done.stdout.removeprefix("figure: ")) / pairs


def added(build: Path, mode: str, pattern: str, depth: int) -> float:
    return count(build, mode, pattern, depth) - count(build, None, pattern, depth)


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    print("| mode | stack | frames | added instructions | bound |\n| --- | --- | --- | --- | --- |")
    for (mode, pattern, depth), bound in ROWS.items():
        figure = added(build, mode, pattern, depth)
        print(f"| {mode} | {pattern} | {depth} | {figure:.0f} | {bound} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
