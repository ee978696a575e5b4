"""A bundle before the kill: the process notices that its cgroup's limit is near."""

import sys

import pytest

MIB = 1 << 20


def only(run, trigger):
    found = run.bundles_for(trigger)
    assert len(found) == 1, f"{len(found)} bundles with trigger {trigger}\n{run}"
    return found[0]


@pytest.mark.needs_cgroup_write
def test_a_growing_python_gets_a_bundle_before_the_kill(preload, oomrec, victim, cgroup):
    """In the bundle before the kill the growing line holds at least 90 % of the live bytes."""
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
    assert growing >= 0.9 * live, shown["holders"]


@pytest.mark.needs_cgroup_write
def test_untouched_memory_counts(preload, oomrec, victim, cgroup):
    """400 MiB in one request under a limit of 200 MiB: only 1 MiB was resident at the last call."""
    run = preload(victim("touched_late"), "400", preexec_fn=cgroup("200M").enter)
    assert (run.exit_code, run.stdout) == (128 + 9, "allocated\n"), str(run)
    shown = oomrec.json("show", only(run, "near_limit"))
    assert "allocated but not yet touched" in shown["verdict"]["summary"]
    assert shown["limit"]["used"] >= 390 * MIB
    assert shown["spaces"]["heap"]["live_bytes"] >= 400 * MIB


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
