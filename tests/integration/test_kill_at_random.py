"""A busy program is killed at random instants: its recording is readable, its totals are exact."""

import json
import mmap
import os
import random
import signal
import struct
import time

from conftest import rounds

KILLS = rounds(20, 200)
AT_ONCE = 10  # recordings for one `oomrec recover`; dead ones beyond 20 are removed
THREADS = 2
LARGEST = 16 + 0x1FFFF  # largest block, in bytes
COUNTERS = struct.Struct("4Q")  # tests/victims/busy.c: allocated, freed, live bytes, live usable
KEPT = 17 << 20  # bytes that it holds from its start


def counters_of(pages) -> list[int]:
    """The sum of the counters of the victim's threads."""
    return [
        sum(rows) for rows in zip(*(COUNTERS.unpack_from(pages, 32 * i) for i in range(THREADS)))
    ]


def run_and_kill(preload, victim, path, chance) -> tuple[int, list[int]]:
    path.write_bytes(bytes(mmap.PAGESIZE))
    process = preload.start(victim("busy"), path, THREADS, env={"OOMREC_MODE": "exact"})
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as pages:
        deadline = time.monotonic() + 10
        while counters_of(pages)[2] < KEPT + THREADS * LARGEST:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        assert preload.finish(process).exit_code == 137
        return process.pid, counters_of(pages)


def differences(shown: dict, counters: list[int]) -> tuple[int, int, int]:
    """The recording's totals minus the victim's counters: allocated, freed, live bytes."""
    heap = shown["spaces"]["heap"]
    freed = heap["allocated_count"] - heap["live_count"]
    held = sum(holder["bytes"] for holder in shown["holders"] if holder["space"] == "heap")
    return heap["allocated_count"] - counters[0], freed - counters[1], held - counters[2]


def test_totals_are_exact_to_one_event_per_thread(preload, oomrec, victim, tmp_path):
    """The victim counts after a malloc and around a free, so its counters lag by one event."""
    chance = random.Random(200)
    environment = {"OOMREC_MAX_DUMPS": "0", "OOMREC_MAX_TOTAL_MB": "0"}
    killed = {}
    seen = []
    for round_ in range(KILLS):
        pid, counters = run_and_kill(preload, victim, tmp_path / "counters", chance)
        killed[pid] = counters
        if (round_ + 1) % AT_ONCE:
            continue
        recovered = oomrec("recover", "--unknown", "--json", env=environment)
        assert recovered.exit_code == 0 and recovered.stderr == "", str(recovered)
        for bundle in recovered.json()["bundles"]:
            shown = oomrec.json("show", bundle)
            seen.append(differences(shown, killed.pop(shown["process"]["pid"])))
        assert not killed and os.listdir(preload.session_dir / f"oomrec-{os.getuid()}") == []

    assert len(seen) == KILLS
    # The second thread's start allocates one more block of a few hundred bytes.
    for allocated, freed, held in seen:
        assert 0 <= allocated - 1 <= THREADS and 0 <= freed <= THREADS, json.dumps(seen)
        assert abs(held) <= THREADS * LARGEST + 1024, json.dumps(seen)
