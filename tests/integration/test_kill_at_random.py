"""A busy program is killed at random instants: what is left can be read, and its totals are true."""

import json
import mmap
import os
import random
import signal
import struct
import time

from conftest import rounds

KILLS = rounds(40, 200)
AT_ONCE = 10  # recordings for one `oomrec recover`; dead ones beyond 20 are removed
THREADS = 2
LARGEST = 16 + 0x1FFFF  # bytes of a block
BOOKS = struct.Struct("4Q")  # tests/victims/busy.c: allocated, freed, live bytes, live usable
KEPT = 17 << 20  # bytes it holds from its start


def books_of(pages) -> list[int]:
    """The sum over the victim's threads."""
    return [sum(rows) for rows in zip(*(BOOKS.unpack_from(pages, 32 * i) for i in range(THREADS)))]


def run_and_kill(preload, victim, path, chance) -> tuple[int, list[int]]:
    path.write_bytes(bytes(mmap.PAGESIZE))
    process = preload.start(victim("busy"), path, THREADS, env={"OOMREC_MODE": "exact"})
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as pages:
        deadline = time.monotonic() + 10
        while books_of(pages)[2] < KEPT + THREADS * LARGEST:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        assert preload.finish(process).exit_code == 137
        return process.pid, books_of(pages)


def differences(shown: dict, books: list[int]) -> tuple[int, int, int]:
    """The recording's totals less the victim's books: allocated, freed, live bytes."""
    heap = shown["spaces"]["heap"]
    freed = heap["allocated_count"] - heap["live_count"]
    held = sum(holder["bytes"] for holder in shown["holders"] if holder["space"] == "heap")
    return heap["allocated_count"] - books[0], freed - books[1], held - books[2]


def test_totals_are_true_to_one_event_a_thread(preload, oomrec, victim, tmp_path):
    """The books are written after a malloc, and on both sides of a free: they lag by an event."""
    chance = random.Random(200)
    environment = {"OOMREC_MAX_DUMPS": "0", "OOMREC_MAX_TOTAL_MB": "0"}
    killed = {}
    seen = []
    for round_ in range(KILLS):
        pid, books = run_and_kill(preload, victim, tmp_path / "books", chance)
        killed[pid] = books
        if (round_ + 1) % AT_ONCE:
            continue
        recovered = oomrec("recover", "--json", env=environment)
        assert recovered.exit_code == 0 and recovered.stderr == "", str(recovered)
        for bundle in recovered.json()["bundles"]:
            shown = oomrec.json("show", bundle)
            seen.append(differences(shown, killed.pop(shown["process"]["pid"])))
        assert not killed and os.listdir(preload.session_dir / f"oomrec-{os.getuid()}") == []

    assert len(seen) == KILLS
    # The second thread's own start is one block more, of a few hundred bytes.
    for allocated, freed, held in seen:
        assert 0 <= allocated - 1 <= THREADS and 0 <= freed <= THREADS, json.dumps(seen)
        assert abs(held) <= THREADS * LARGEST + 1024, json.dumps(seen)
