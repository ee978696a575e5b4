"""What counts as address space, step by step: the break, shared memory, remaps, reservations."""

from __future__ import annotations

MIB = 1 << 20

# after each step: MiB that count, MiB that are only reserved
STEPS = {
    "start": (0, 0),
    "sbrk +3": (3, 0),
    "brk -2": (1, 0),
    "sbrk -1": (0, 0),
    "shmat +5": (5, 0),
    "shmdt -5": (0, 0),
    "mmap +7": (7, 0),
    "dontunmap +7": (14, 0),
    "munmap -7": (7, 0),
    "reserved over -2": (5, 2),
    "fixed over +1": (6, 1),
    "fixed again 0": (6, 1),
    "munmap -6": (0, 0),
    "noreserve +5": (5, 0),
    "noreserve for later 0": (0, 1029),
    "reserved 0": (0, 100),
    "mprotect +9": (9, 91),
    "mprotect again 0": (9, 91),
    "mprotect +91": (100, 0),
}


def steps_of(oomrec, run) -> dict:
    spaces = {step: oomrec.json("show", run.bundle_at(step))["spaces"]["map"] for step in STEPS}
    return {step: (row["live_bytes"], row["reserved_bytes"]) for step, row in spaces.items()}


def test_each_step_counts_what_it_maps(oomrec, plain, preload, victim):
    run = preload(victim("address_space"), env={"OOMREC_MAX_DUMPS": 0})
    assert (run.stdout, run.exit_code) == (plain(victim("address_space")).stdout, 0), str(run)
    expected = {step: (live * MIB, held * MIB) for step, (live, held) in STEPS.items()}
    assert steps_of(oomrec, run) == expected


def test_a_reservation_made_writable_counts_against_the_limit(oomrec, preload, victim):
    env = {"OOMREC_MAX_DUMPS": 0, "OOMREC_LIMIT": 64 * MIB}
    run = preload(victim("address_space"), env=env)
    assert run.stdout == "refused\n" and run.exit_code == 0, str(run)
    assert steps_of(oomrec, run)["mprotect +91"] == (9 * MIB, 91 * MIB)
    shown = [oomrec.json("show", bundle) for bundle in run.bundles()]
    [refused] = [bundle for bundle in shown if bundle["request"] and bundle["request"]["api"]]
    assert (refused["request"]["api"], refused["request"]["size"]) == ("mprotect", 100 * MIB)
    assert refused["verdict"]["code"] == "soft_limit"


def test_brk_fails_at_the_data_limit(oomrec, preload, victim):
    run = preload(victim("data_limit"))
    assert run.stdout == "grown 3 times, errno 12, brk -1\n", str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["request"]["api"], shown["request"]["size"]) == ("sbrk", 20 * MIB)
    assert shown["verdict"]["code"] == "data_limit"
    assert shown["request"]["aftershocks"]["count"] == 1  # brk
