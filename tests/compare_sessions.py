"""compare_sessions.py LIBRARY BUILD: the fast path of exact mode records what the slow path records.

Runs each program twice with the same addresses, once as it is and once with a rule of --fail that
never matches, which keeps every event of the heap off the fast path. Each ends by a SIGKILL. The
sessions must be equal, entry by entry: holders, counters, tallies, live blocks and latest events.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

NEVER = "malloc:nth=999999999999"
LARGE = 130_000  # bytes: M_MMAP_THRESHOLD is 128 KiB

PROGRAMS = {
    "all_events": ["{build}/tests/sessions/all_events"],
    "python": ["{python}", "-S", "-c", """
import json, os, signal
kept = []
for i in range(300):
    kept.append(json.loads(json.dumps({"list": list(range(i % 40)), "text": "x" * i, "n": [[i]] * 9})))
    if i % 3 == 0:
        kept.pop(i // 5)
os.kill(os.getpid(), signal.SIGKILL)
"""],
}  # fmt: skip


def lines(
    library: Path, build: Path, command: list[str], directory: Path, rule_name: str
) -> list[str]:
    """The session of one run in a new directory; `rule_name`: the variable that holds the rule."""
    directory.mkdir()
    try:
        subprocess.run(
            [shutil.which("setarch") or "setarch", "-R", *command],
            stdout=subprocess.DEVNULL,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "LD_PRELOAD": str(library),
                "OOMREC_MODE": "exact",
                "OOMREC_SESSION_DIR": str(directory),
                "OOMREC_DUMP_DIR": str(directory),
                "PYTHONMALLOC": "malloc",
                "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "1",
                rule_name: NEVER,
            },
        )
        sessions = sorted(path for path in directory.rglob("*") if path.is_file())
        assert len(sessions) == 1, sessions
        text = subprocess.run(
            [build / "tests" / "sessions" / "session_lines", sessions[0]],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return without_places(text).splitlines()
    finally:
        shutil.rmtree(directory)


def without_places(text: str) -> str:
    """Without the addresses of large blocks. malloc maps these, and where depends on what the recorder
    has mapped before: a busy thread's larger caches come when it has been slow often enough.
    """
    blocks = (line.split() for line in text.splitlines() if line.startswith("block "))
    sizes = {address: size for _, address, size in blocks if int(size) >= LARGE}

    def named(word: re.Match) -> str:
        is_whole = not text[word.start() - 1].isalnum()
        return f"of-{sizes[word[0]]}" if is_whole else word[0]

    # Only these addresses, which begin alike: a pattern of every address takes seconds.
    return re.sub(rf"(?:{'|'.join(sizes)})\b", named, text) if sizes else text


def difference(library: Path, build: Path, command: list[str]) -> tuple[int, list[str]]:
    """How many entries were compared, and those that are in one session only."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name) / "run"  # the same for both, because paths are recorded
        fast = lines(library, build, command, run, "XOMREC_FAIL")
        slow = lines(library, build, command, run, "OOMREC_FAIL")
    fast_count, slow_count = Counter(fast), Counter(slow)
    only_in_one = (fast_count - slow_count) + (slow_count - fast_count)
    return len(slow), sorted(only_in_one.elements())


def command_of(name: str, build: Path, python: str = sys.executable) -> list[str]:
    return [
        part.replace("{build}", str(build)).replace("{python}", python) for part in PROGRAMS[name]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="compares the sessions of both paths of exact mode"
    )
    parser.add_argument("library", type=Path)
    parser.add_argument("build", type=Path)
    arguments = parser.parse_args()
    wrong = 0
    for name in PROGRAMS:
        command = command_of(name, arguments.build.resolve())
        entries, different = difference(
            arguments.library.resolve(), arguments.build.resolve(), command
        )
        print(f"{name}: {entries} entries, {len(different)} different")
        for line in different[:10]:
            print("  " + line)
        wrong += len(different)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
