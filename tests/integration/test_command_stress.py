"""`oomrec stress` grows under a limit, is recorded, and reports by its exit code how far it got."""

import pytest


def test_beyond_the_limit_it_fails_and_is_recorded(oomrec):
    run = oomrec("stress", "--limit", "64M", "--max", "256M", "--step", "16M", exits=3)
    *steps, last = run.stdout.splitlines()
    assert steps == [f"{held}.0 MiB of 256.0 MiB" for held in (16, 32, 48)]
    assert last == "refused at 48.0 MiB: Cannot allocate memory"
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["trigger"], shown["verdict"]["code"]) == ("soft_limit", "soft_limit")
    assert (shown["request"]["api"], shown["request"]["size"]) == ("malloc", 16 << 20)
    assert shown["outcome"] == "exited 3"


def test_within_the_limit_it_gets_everything(oomrec):
    run = oomrec("stress", "--limit", "64M", "--max", "40M", "--step", "16M", "--hold", "0.1")
    assert run.exit_code == 0 and run.bundles() == []
    assert run.stdout.splitlines()[-1] == "40.0 MiB of 40.0 MiB"


def test_as_mappings(oomrec):
    run = oomrec("stress", "--limit", "64M", "--max", "1G", "--space", "map", "--no-touch")
    shown = oomrec.json("show", run.only_bundle())
    assert run.exit_code == 3 and shown["request"]["space"] == "map"
    assert shown["spaces"]["map"]["live_bytes"] >= 48 << 20


def test_the_address_space_is_a_cap(oomrec, plain):
    shell = 'ulimit -v 300000; exec "$0" stress --max 1G --step 32M --no-touch'
    run = plain("sh", "-c", shell, oomrec._prefix[0])
    assert run.exit_code == 3 and run.stdout.splitlines()[-1].startswith("refused at ")
    assert oomrec.json("show")["verdict"]["code"] == "address_space_limit"


def test_only_touched_pages_take_memory(oomrec):
    def resident(*words):
        run = oomrec("stress", "--limit", "96M", "--max", "200M", *words)
        (line,) = [
            line
            for line in oomrec.json("show", run.bundles()[-1])["verdict"]["evidence"]
            if line.startswith("resident ")
        ]
        number, unit = line.split()[1:3]
        return float(number) if unit == "MiB" else 0

    assert resident() > 80 and resident("--no-touch") < 40


def test_a_cap_is_required(oomrec):
    if oomrec.json("info")["limits"]:
        pytest.skip("a limit is in force here")
    run = oomrec("stress", "--max", "64M")
    assert run.exit_code == 2 and run.stdout == ""
    assert run.stderr.splitlines() == [
        "oomrec stress: no limit is set: the machine itself would run out of memory",
        "  Set a limit: oomrec stress --limit 256M --max 1G",
    ]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--max", "64X"],
        ["--max", "0"],
        ["--max", "64M", "--step", "0"],
        ["--max", "64M", "--limit", "much"],
        ["--max", "64M", "--space", "attic"],
        ["--max", "64M", "--limit", "64M", "--touch", "--no-touch"],
    ],
)
def test_a_mistake_prints_two_lines(oomrec, words):
    run = oomrec("stress", *words)
    assert run.exit_code == 2 and run.stdout == "" and len(run.stderr.splitlines()) == 2
