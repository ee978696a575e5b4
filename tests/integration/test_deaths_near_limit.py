"""A bundle before the kill: the process notices that its cgroup's limit is near."""

import sys
import tempfile

import pytest
from conftest import rounds
from consistency import contradictions
from watching import eventually

MIB = 1 << 20


def only(run, trigger):
    found = run.bundles_for(trigger)
    assert len(found) == 1, f"{len(found)} bundles with trigger {trigger}\n{run}"
    return found[0]


@pytest.mark.needs_cgroup_write
def test_a_growing_python_gets_a_bundle_before_the_kill(preload, oomrec, victim, cgroup):
    """In the bundle before the kill the growing line holds at least 90 % of the live bytes, free ones in Python's pool aside."""
    run = preload(sys.executable, victim("python/grow_objects.py"), preexec_fn=cgroup("200M").enter)
    assert run.exit_code == 128 + 9, str(run)
    assert run.stderr.count("% of the cgroup's limit of 200.0 MiB") == 1
    shown = oomrec.json("show", only(run, "near_limit"))
    assert (shown["trigger"], shown["verdict"]["code"]) == ("near_limit", "near_limit")
    assert shown["limit"]["kind"] == "cgroup" and shown["limit"]["bytes"] == 200 * MIB
    assert 0.95 * 200 * MIB <= shown["limit"]["used"] <= 1.02 * 200 * MIB
    live = sum(space["live_bytes"] for space in shown["spaces"].values())
    growing = sum(
        holder["bytes"]
        for holder in shown["holders"]
        if any(frame["function"] == "grow" and frame["line"] == 6 for frame in holder["stack"])
    )
    pool = sum(
        holder["bytes"]
        for holder in shown["holders"]
        if (holder["stack"][0]["function"] or "").startswith("[Python's pool")
    )
    assert pool < 0.2 * live and growing >= 0.9 * (live - pool), shown["holders"]


@pytest.mark.needs_cgroup_write
def test_a_recording_on_disk_does_not_delay_the_kill(oomrec, victim, cgroup, build_dir):
    """The kernel drops such a recording's pages before it kills; reading ahead, it dropped those in use, without end."""
    grow = ("run", "--", sys.executable, victim("python/grow_objects.py"))
    for limit in range(20, 121, rounds(20, 5)):
        with tempfile.TemporaryDirectory(dir=build_dir) as on_disk:
            run = oomrec(
                *grow,
                preexec_fn=cgroup(f"{limit}M").enter,
                env={"OOMREC_SESSION_DIR": on_disk, "OOMREC_DUMP_DIR": on_disk},
            )
        assert run.exit_code == 128 + 9, f"{limit} MiB: {run}"


@pytest.mark.needs_cgroup_write
def test_untouched_memory_is_a_promise(preload, oomrec, victim, cgroup):
    """400 MiB in one request under a limit of 200 MiB, touched later without another call.

    At the request nothing is near: there is no warning. The kernel kills it later, and the bundle
    tells what was not touched by then from what was resident at the last check.
    """
    run = preload(victim("touched_late"), "400", preexec_fn=cgroup("200M").enter)
    assert (run.exit_code, run.stdout, run.stderr) == (128 + 9, "allocated\n", ""), str(run)
    assert run.bundles() == []
    oomrec("recover")
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "cgroup_oom_kill"
    assert shown["spaces"]["heap"]["live_bytes"] >= 400 * MIB
    assert any(
        line.startswith("allocated but not in memory at its last check: ")
        and "only once it is touched" in line
        for line in shown["verdict"]["evidence"]
    ), shown["verdict"]
    assert contradictions(shown) == []


LAZY = """
import mmap, sys
reserved = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
reserved[: 20 << 20] = bytes(20 << 20)
for _ in range(50): bytearray(2 << 20)  # each allocation is an occasion to check
print("done")
"""


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-c", LAZY],
        ["sh", "-c", "seq 50000 | sort -S 90% -r | tail -1 && echo done"],
    ],
    ids=["mapping", "sort"],
)
@pytest.mark.parametrize("way", ["run", "bare"])
def test_a_reservation_larger_than_the_limit_is_not_near_it(preload, oomrec, cgroup, command, way):
    """A lazily touched mapping of 1 GiB, and sort's buffer of 90 % of the RAM, in 256 MiB."""
    words = ["run", "--", *command] if way == "run" else command
    run = (oomrec if way == "run" else preload)(*words, preexec_fn=cgroup("256M").enter)
    assert run.exit_code == 0 and run.stdout.endswith("done\n"), str(run)
    assert (run.stderr, run.bundles()) == ("", [])


# 97 %: as far from the limit as from the warning, since what the bundle takes counts, too.
TOUCHED_LATE_THEN_FREED = """
import mmap, time
held = mmap.mmap(-1, 376 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block = bytearray(4 << 20)
time.sleep(0.2)  # the last check by the clock is over
for page in range(0, len(held), 4096): held[page] = 1  # no call of an allocator
del block
print("done")
"""


@pytest.mark.needs_cgroup_write
def test_a_large_free_is_an_occasion_to_check(preload, cgroup):
    run = preload(sys.executable, "-c", TOUCHED_LATE_THEN_FREED, preexec_fn=cgroup("400M").enter)
    assert run.stdout == "done\n"
    assert len(run.bundles_for("near_limit")) == 1, str(run)


@pytest.mark.needs_cgroup_write
def test_far_below_the_limit_nothing_is_written(preload, victim, cgroup):
    run = preload(victim("touched_late"), "20", preexec_fn=cgroup("200M").enter)
    assert (run.exit_code, run.bundles(), run.stderr) == (0, [], "")


@pytest.mark.needs_cgroup_write
def test_it_can_be_switched_off(preload, victim, cgroup):
    run = preload(
        victim("touched_late"), "400", env={"OOMREC_WARN": "0"}, preexec_fn=cgroup("200M").enter
    )
    assert run.exit_code == 128 + 9
    assert run.bundles_for("near_limit") == []


@pytest.mark.parametrize(
    "steps, expected",
    [
        ([100, 150], 0),
        ([185], 1),
        ([185, 178, 185], 1),  # it stays near
        ([185, 100, 185], 2),  # two approaches
    ],
)
def test_once_per_approach(preload, victim, steps, expected):
    run = preload(
        sys.executable,
        victim("python/up_and_down.py"),
        *steps,
        env={"OOMREC_LIMIT": "200M", "OOMREC_WARN": "90", "OOMREC_MAX_DUMPS": "0"},
    )
    assert run.stdout == "done\n", str(run)
    assert len(run.bundles_for("near_limit")) == expected, str(run)
    assert len(run.bundles()) == expected


def test_a_large_block_that_makes_way_for_the_next_is_no_departure(preload):
    """The recorder samples at the free: nothing else happens in a tenth of a second."""
    earlier = set()

    @eventually  # on a busy machine the next block comes too late
    def has_one_bundle():
        run = preload(
            sys.executable,
            "-c",
            "import time\n"
            "for mib in (185, 178, 185):\n"
            "    held = bytearray(mib << 20)\n"
            "    time.sleep(0.15)\n"
            "    del held\n",
            env={"OOMREC_LIMIT": "200M", "OOMREC_WARN": "90", "OOMREC_MAX_DUMPS": "0"},
        )
        written = set(run.bundles_for("near_limit")) - earlier
        earlier.update(written)
        assert len(written) == 1, str(run)


def test_the_soft_limit_is_watched_only_on_request(preload, victim):
    run = preload(
        sys.executable, victim("python/up_and_down.py"), 195, env={"OOMREC_LIMIT": "200M"}
    )
    assert (run.stdout, run.bundles()) == ("done\n", [])


def test_address_space_is_watched_only_on_request(oomrec, victim):
    run = oomrec(
        "run", "--limit-as", "400M", "--warn", "50",
        "--", sys.executable, victim("python/up_and_down.py"), 300,
    )  # fmt: skip
    shown = oomrec.json("show", only(run, "near_limit"))
    assert shown["limit"]["kind"] == "rlimit_as"


def test_an_invalid_percentage_is_rejected(oomrec):
    run = oomrec("run", "--warn", "101", "--", "true")
    assert run.exit_code != 0 and "from 0 to 100" in run.stderr
