"""Options of `oomrec run` and variables of the library: a test names each one. The ones without a
file of their own are tested here."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from command_lines import recording_options
from conftest import SOURCE
from sizes import take_up

MIB = 1 << 20
LEAKED_BLOCKS, LEAKED_BYTES = 4000, 4000 * 10007  # tests/victims/leak.c


# --- Completeness ---------------------------------------------------------------------------------


def words_given(source: str) -> set[str]:
    """Options and variables that a test passes to a program: separate words, not part of a sentence."""
    words = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg:
            words.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(re.split(r"[= ]", node.value)[0])
    return words


def test_each_option_is_named_by_a_test():
    files = (SOURCE / "tests" / "integration").rglob("test_*.py")
    given = set().union(*(words_given(path.read_text()) for path in files))
    assert len(recording_options()) > 15
    assert [
        flag for flag, variable in recording_options().items() if not {flag, variable} & given
    ] == []


def test_the_help_has_the_same_options(oomrec):
    shown = oomrec("run", "--help").stdout
    flags = set(re.findall(r"^  (--[a-z-]+)", shown, re.M))
    assert flags - set(recording_options()) == {
        "--cgroup",
        "--live",
        "--jit-names",
        "--help",
    }  # which only the command has


# Names without dashes, so that this does not count as a test of the option.
VALUES = {
    "limit": "1G", "limit_reserve": "8M", "limit_as": "64G", "fail": "malloc:nth=1000000", "limit_gpu": "2G@cuda:1",
    "mode": "exact", "warn": "90", "dump_dir": "elsewhere/%p", "dump_at_exit": None,
    "session_dir": ".", "max_dumps": "7", "max_total_mb": "99", "recording_size": "4M",
    "sample_interval": "4K", "python_objects": None, "python_sampling": "0", "torch_cpu": None, "children": "0",
    "quiet": None, "bundle_seconds": "3", "on_oom_exec": "echo %p", "on_oom": "exit=3",
    "arguments": "names",
}  # fmt: skip


def test_each_option_reaches_the_program_as_its_variable(oomrec):
    values = {f"--{name.replace('_', '-')}": value for name, value in VALUES.items()}
    assert set(values) == set(recording_options())
    words = [word for option in values.items() for word in option if word is not None]
    environment = {"OOMREC_DUMP_DIR": None, "OOMREC_SESSION_DIR": None}
    run = oomrec("run", *words, "--", "env", env=environment)
    given = dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)
    expected = {variable: values[flag] or "1" for flag, variable in recording_options().items()}
    # The program may change its directory.
    expected["OOMREC_DUMP_DIR"] = f"{oomrec.directory}/elsewhere/%p"
    expected["OOMREC_SESSION_DIR"] = f"{oomrec.directory}/"
    assert {name: given.get(name) for name in expected} == expected


# --- Effects --------------------------------------------------------------------------------------

HOARD = """
def hoard():
    return [[i * 1.5] for i in range(50_000)]  # three objects each

kept = hoard()
try:
    bytearray(1 << 46)
except MemoryError:
    pass
"""


def holders(oomrec, bundle: Path, function: str) -> list[dict]:
    return [
        holder
        for holder in oomrec.json("show", "--top", "100000", bundle)["holders"]
        if function in [frame["function"] for frame in holder["stack"]]
    ]


@pytest.mark.parametrize(
    "flag", [[], ["--python-objects"], ["--python-sampling", "0"]], ids=["default", "objects", "no"]
)
def test_python_objects_are_sampled_or_single_blocks_or_arenas(oomrec, flag):
    run = oomrec("run", "--mode", "exact", *flag, "--", sys.executable, "-c", HOARD)
    held = holders(oomrec, run.only_bundle(), "hoard")
    blocks = sum(holder["count"] for holder in held if holder["space"] == "heap")
    sampled = sum(holder["count"] for holder in held if holder["space"] == "python")
    arenas = sum(holder["count"] for holder in held if holder["space"] == "map")
    note = "counted as arenas" in oomrec("show", run.only_bundle()).stdout
    if "--python-objects" in flag:
        assert (blocks >= 3 * 50_000 - 100, sampled, arenas, note) == (True, 0, 0, False), str(run)
    elif flag:
        assert (blocks < 100, sampled, arenas >= 3, note) == (True, 0, True, True), str(run)
    else:
        assert (blocks < 100, arenas, note) == (True, 0, False), str(run)
        assert sampled == pytest.approx(3 * 50_000, rel=0.2)


@pytest.mark.parametrize("interval", ["1", "64K", "64G"])
def test_small_blocks_are_sampled_at_the_given_interval(oomrec, victim, interval):
    run = oomrec("run", "--sample-interval", interval, "--", victim("leak"))
    held = holders(oomrec, run.only_bundle(), "leak")
    count, live = (sum(holder[key] for holder in held) for key in ("count", "bytes"))
    if interval == "1":  # every block is sampled
        assert count == LEAKED_BLOCKS
        assert take_up(live, LEAKED_BYTES // LEAKED_BLOCKS, LEAKED_BLOCKS), live
    elif interval == "64G":
        assert (count, live) == (0, 0)
    else:  # 611 samples: an estimate, within five times what such a number varies by
        assert abs(live - LEAKED_BYTES) < 5 * LEAKED_BYTES / 611**0.5, held
        assert all(holder["estimated"] for holder in held)
    size = oomrec.json("show", run.only_bundle())["recording"]["interval_bytes"]
    assert size == {"1": 1, "64K": 64 << 10, "64G": 64 << 30}[interval]


def size_of(bundle: Path) -> int:
    return sum(path.stat().st_size for path in bundle.iterdir())


def test_the_total_size_bound_removes_the_oldest_bundles(oomrec, victim):
    """Three bundles of over 10 MiB, then a fourth under a bound for two."""
    run = None
    for bound in ("0", "0", "0", "30"):
        run = oomrec("run", "--mode", "exact", "--max-total-mb", bound, "--", victim("leak"))
        assert run.exit_code == 0, str(run)
        if bound == "0":
            newest = run.bundles()[-1]
            assert size_of(newest) > 10 * MIB
    assert len(run.bundles()) == 2 and run.bundles()[0] == newest, run.bundles()


def test_a_bundle_is_cut_to_its_size_bound(oomrec, victim):
    for _ in range(3):
        run = oomrec("run", "--max-total-mb", "1", "--mode", "exact", "--", victim("leak"))
        assert run.exit_code == 0 and len(run.bundles()) > 0, str(run)
        assert sum(map(size_of, run.bundles())) <= MIB
        shown = oomrec.json("show", run.bundles()[-1])
        assert f"bundle oom_dumps/{run.bundles()[-1].name} " in run.stderr, str(run)
        assert shown["request"]["api"] == "malloc"


def test_a_bundle_that_takes_too_long_is_abandoned(preload, victim):
    """With no time at all. A writer may beat the first check of the clock, but not every time."""
    given_up = 0
    for _ in range(5):
        run = preload(victim("three_failures"), env={"OOMREC_BUNDLE_SECONDS": 0})
        assert run.exit_code == 0 and "exit handlers ran" in run.stdout, str(run)
        given_up += "no bundle: it was not written within" in run.stderr
    before = len(run.bundles())
    assert given_up > 0 and before < 5
    run = preload(victim("three_failures"), env={"OOMREC_MAX_DUMPS": 0})
    assert len(run.bundles()) == before + 1 and "given up" not in run.stderr, str(run)


ENDS_WELL = "kept = bytearray(20 << 20)"


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_the_variable_alone_suffices_for_a_bundle_at_exit(preload, oomrec, wanted):
    run = preload(sys.executable, "-c", ENDS_WELL, env={"OOMREC_DUMP_AT_EXIT": wanted})
    assert run.exit_code == 0 and len(run.bundles()) == int(wanted), str(run)
    for bundle in run.bundles():
        shown = oomrec.json("show", bundle)
        assert (shown["trigger"], shown["context"]) == ("request", "at the end of the process")
