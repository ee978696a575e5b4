"""A program is killed at a random instant: at its start, at work, while it writes a bundle, at its end.
Its recording is readable, the kill is not blamed on memory, and once reported nothing is left.

Half of them die alone, half together with the helper that writes their bundle, as in a container.
"""

import mmap
import os
import random
import signal
import sys
import time
from collections import Counter

import pytest
from conftest import rounds
from watching import wait_for

CHUNKS = [
    *[("c", seed, rounds(25, 95)) for seed in range(rounds(2, 8))],
    *[("python", seed, rounds(10, 20)) for seed in range(8, rounds(9, 10))],
]
AT_ONCE = 10  # recordings for one `oomrec recover`; dead ones beyond 20 are removed
STARTS, WORKS, IS_REFUSED, ENDS = PHASES = range(4)  # as in tests/victims/phases.c
# Verdicts of the failure, and of a kill that nobody observed.
VERDICTS = {"request_too_large", "unknown"}
OUTCOMES = {"unknown", "recovered"}
# Who is killed a second after its failure had gone on: that is an event of its own.
WENT_ON_S = 1


def killed_in(phase, within_s, preload, words, page, chance):
    """The pid, the phase in which it died, this or a later one, and how long it lived. None: it had
    ended before.
    """
    page[0] = STARTS
    begun = time.monotonic()
    # On a busy machine its start would be over before it is seen to have begun.
    process = preload.start(*words, preexec_fn=lambda: os.nice(10))
    wait_for(lambda: not (page[0] < phase and process.poll() is None), 30)
    time.sleep(chance.random() * within_s)
    if process.poll() is None:
        kill = chance.choice([os.kill, os.killpg])
        kill(process.pid, signal.SIGKILL)
    lived_s = time.monotonic() - begun
    # stderr stays open until its helper has ended, too.
    return (process.pid, page[0], lived_s) if preload.finish(process).exit_code == 137 else None


def make_old(preload) -> None:
    """Makes leftovers of a dead writer so old that they are not taken for a live one's."""
    for path in [*preload.dump_dir.glob(".*"), *preload.session_dir.rglob("*.session")]:
        os.utime(path, (0, 0))


def recover(preload, oomrec, killed: dict) -> None:
    """At most one readable bundle is left of each process, and nothing else."""
    make_old(preload)
    recovered = oomrec("recover", "--unknown", "--json", env={"OOMREC_MAX_DUMPS": "0"})
    assert recovered.exit_code in (0, 1) and recovered.stderr == "", str(recovered)
    assert list(preload.session_dir.rglob("*.session")) == []
    bundles = sorted(preload.dump_dir.iterdir()) if preload.dump_dir.exists() else []
    failures_by_pid = Counter()
    for bundle in bundles:
        assert bundle.name.startswith("oom_"), bundles
        assert [path for path in bundle.iterdir() if path.name.startswith(".")] == []
        shown = oomrec.json("show", bundle)
        assert shown["verdict"]["code"] in VERDICTS and shown["outcome"] in OUTCOMES, shown
        failures_by_pid[shown["process"]["pid"]] += 1
        assert oomrec.json("stats", bundle)["schema_version"] == 1
    assert len(oomrec.json("ls")["bundles"]) == len(bundles)
    for pid, (phase, lived_s) in killed.items():
        most = 2 if lived_s > WENT_ON_S else 1
        least = 0 if phase == STARTS else 1
        assert least <= failures_by_pid.pop(pid, 0) <= most, (pid, phase, lived_s)
    # A process that ended before the kill has written its failure's bundle itself.
    assert set(failures_by_pid.values()) <= {1}
    for bundle in bundles:
        for path in bundle.iterdir():
            path.unlink()
        bundle.rmdir()


@pytest.mark.parametrize("language, seed, kills", CHUNKS)
def test_a_kill_in_any_phase(preload, oomrec, victim, language, seed, kills):
    chance = random.Random(seed)
    file = preload.directory / "page"
    file.write_bytes(bytes(mmap.PAGESIZE))
    program = (
        [victim("phases")] if language == "c" else [sys.executable, victim("python/phases.py")]
    )
    preload.environment.update({"OOMREC_QUIET": "1", "OOMREC_MAX_DUMPS": "0"})
    died_in = Counter(dict.fromkeys(PHASES, 0))
    within_s = [0.02] * len(PHASES)  # their durations, measured below
    killed = {}
    with open(file, "r+b") as opened, mmap.mmap(opened.fileno(), mmap.PAGESIZE) as page:
        for _ in range(20 * kills):
            phase = min(PHASES, key=lambda each: (died_in[each], chance.random()))
            death = killed_in(phase, within_s[phase], preload, [*program, file], page, chance)
            hit = death is not None and death[1] == phase
            within_s[phase] *= 1.2 if hit else 0.8
            if death is not None:
                pid, phase, lived_s = death
                killed[pid] = phase, lived_s
                died_in[phase] += 1
            # On a busy machine a short phase may need more kills.
            done = sum(died_in.values()) >= kills and all(died_in[each] for each in PHASES)
            if len(killed) == AT_ONCE or done:
                recover(preload, oomrec, killed)
                killed = {}
            if done:
                break
    assert sum(died_in.values()) >= kills
    assert all(died_in[phase] >= 1 for phase in PHASES), died_in
