"""compare_sessions.py LIBRARY BUILD: the fast path of exact mode records what the slow path records,
and forgetting stacks changes nothing of those that are live.

Runs each program three times with the same addresses: as it is; with a rule of --fail that never
matches, which keeps every event of the heap off the fast path; and with a round of forgetting for
every 50 new nodes. Each ends by a SIGKILL. The sessions must be equal, entry by entry: holders,
counters, tallies, live blocks and latest events. Forgotten stacks are left out of the last
comparison, but what they had allocated must be in the sums.
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

FORGOTTEN = "special 8 "  # a frame
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


# As long as each other, so that addresses are the same. What is forgotten when depends on the path.
AS_IT_IS = {"XOMREC_FAIL": NEVER, "OOMREC_FORGET_AT": "16000000"}
SLOW = {"OOMREC_FAIL": NEVER, "OOMREC_FORGET_AT": "16000000"}
FORGETFUL = {"XOMREC_FAIL": NEVER, "OOMREC_FORGET_AT": "00000050"}


def lines(
    library: Path, build: Path, command: list[str], directory: Path, variables: dict[str, str]
) -> list[str]:
    """The session of one run in a new directory, with these variables."""
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
                **variables,
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


HOLDER = re.compile(
    r"holder (?P<space>\d+) live (?P<live>(?P<bytes>-?\d+) \d+) total (?P<allocated>\d+) (?P<count>\d+)"
    r" temporary (?P<temporary>\d+) (?P<stack>of \w+)"
)


def needed(session: list[str]) -> list[str]:
    """What must not be forgotten: all but stacks without live memory, and their sum with all others."""
    kept, sums = [], Counter()
    for line in session:
        if holder := HOLDER.match(line):
            for figure in ("allocated", "count", "temporary"):
                sums[holder["space"], figure] += int(holder[figure])
            if int(holder["bytes"]):
                kept.append(f"holder {holder['space']} live {holder['live']} {holder['stack']}")
        elif not line.startswith("stack "):
            kept.append(line)
    return kept + [f"sum {key}: {value}" for key, value in sums.items()]


def only_in_one(a: list[str], b: list[str]) -> list[str]:
    return sorted(((Counter(a) - Counter(b)) + (Counter(b) - Counter(a))).elements())


def difference(library: Path, build: Path, command: list[str]) -> tuple[int, list[str]]:
    """How many entries were compared, and those that are in one session only."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name) / "run"  # the same for all, because paths are recorded
        fast, slow, forgetful = (
            lines(library, build, command, run, variables)
            for variables in (AS_IT_IS, SLOW, FORGETFUL)
        )
    assert any(FORGOTTEN in line for line in forgetful), "nothing was forgotten"
    return len(slow), only_in_one(fast, slow) + only_in_one(needed(fast), needed(forgetful))


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
