"""Stacks that nothing needs any more are forgotten: however many there were, what is live at the end is on
its lines, totals add up, and neither threads, forks nor a SIGKILL at any instant get in the way."""

from __future__ import annotations

import random
import signal
import sys
import time

import pytest
from conftest import full, rounds, written
from python_programs import package_environment
from sizes import held_by, take_up

MIB = 1 << 20
FORGOTTEN = "[forgotten stacks]"
# tests/victims/python/ever_new_expressions.py and tests/victims/ever_new_stacks.cpp, in late_leak() and leak()
LEAKED_BY_PYTHON = 24_000 * 333 + 340 * 100_001
LEAKED = 40 * MIB
MEAN_REQUEST = sum(8 * (20 + number % 100) for number in range(100)) // 100


def show(oomrec, *words) -> dict:
    return oomrec.json("show", "--top", "100000", *words)


def functions(holder: dict) -> list[str]:
    return [frame["function"] for frame in holder["stack"]]


def assert_the_leak_is_found(
    shown: dict, function: str, leaked: int, requests: int, *, exact: bool, tight: bool = False
) -> None:
    recording = shown["recording"]
    stacks, forgotten = recording["stacks"], recording["forgotten_stacks"]
    assert forgotten > 0 and stacks < max(requests, forgotten) / 5, recording
    least, most = (0.97, 1.03) if exact else (0.8, 1.2)
    assert least * leaked <= held_by(shown, function) <= most * leaked, shown["holders"][:5]
    if exact:
        assert recording["mode"] == "exact", shown["notes"]
    if not tight:  # else the tables may be full for a moment
        assert (recording["dropped_events"], recording["truncated_stacks"]) == (0, 0), recording


# --- However many stacks there were ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "size", "requests"),
    [
        ("sampled", "1M", 50_000),
        full("sampled", "4M", 200_000),
        ("sampled", None, 50_000),
        # Each small object is an event, in some 30 stacks of each request.
        ("exact", "8M", 10_000),
        ("exact", "64M", 10_000),
    ],
)
def test_a_late_leak_of_python_is_found(oomrec, victim, mode, size, requests):
    options = ["--mode", mode] + (["--recording-size", size] if size else [])
    options += ["--python-objects"] if mode == "exact" else []
    script = victim("python/ever_new_expressions.py")
    run = oomrec("run", *options, "--", sys.executable, script, "leak", requests)
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    shown = show(oomrec, run.only_bundle())
    exact = (mode, size) == ("exact", "64M")
    assert_the_leak_is_found(
        shown, "late_leak", LEAKED_BY_PYTHON, requests, exact=exact, tight=size == "1M"
    )
    if mode == "exact":
        assert shown["recording"]["forgotten_stacks"] > 10 * requests, shown["recording"]


@pytest.mark.parametrize(
    ("mode", "size", "requests", "bytes_each"),
    [
        ("exact", "8M", 300_000, 100_000),
        ("exact", "64M", 300_000, 1000),
        ("sampled", None, 1_000_000, 70_000),
    ],
)
def test_a_late_leak_of_a_native_program_is_found(oomrec, victim, mode, size, requests, bytes_each):
    options = ["--mode", mode] + (["--recording-size", size] if size else [])
    options += ["--sample-interval", "4K"] if mode == "sampled" else []
    run = oomrec("run", *options, "--", victim("ever_new_stacks"), "leak", requests, bytes_each)
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    shown = show(oomrec, run.only_bundle())
    assert_the_leak_is_found(shown, "leak", LEAKED, requests, exact=mode == "exact")
    if mode == "exact":
        assert shown["recording"]["forgotten_stacks"] > 0.9 * requests, shown["recording"]


# However many stacks are live: what does not fit is sampled, or sampled less. The estimate of so many
# bytes by a sample each interval is wrong by the square root of bytes × interval, typically; four times
# that is once in 16,000 runs.
@pytest.mark.parametrize(
    ("mode", "size", "largest_interval"),
    [
        ("sampled", "1M", 1 * MIB),
        ("sampled", None, 1 * MIB),
        ("exact", "8M", 2 * MIB),
        full("exact", "64M", MIB // 2),
    ],
)
def test_a_leak_is_found_beside_many_live_stacks(oomrec, victim, mode, size, largest_interval):
    sites = 300_000
    options = ["--mode", mode] + (["--recording-size", size] if size else [])
    run = oomrec("run", *options, "--", victim("ever_new_stacks"), "sites", sites, 1000)
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    shown = show(oomrec, run.only_bundle())
    recording = shown["recording"]
    interval = recording["interval_bytes"]
    assert interval <= largest_interval, recording
    for function, bytes_of_it in {"leak": LEAKED, "main": LEAKED + sites * MEAN_REQUEST}.items():
        within = 4 * (bytes_of_it * interval) ** 0.5
        assert abs(held_by(shown, function) - bytes_of_it) < within, shown["holders"][:5]
    assert recording["dropped_events"] + recording["truncated_stacks"] < 10, recording


# --- The sums -------------------------------------------------------------------------------------


def assert_the_sums_add_up(oomrec, bundle) -> list[dict]:
    """Each byte of the spaces' counters is in some function's total. Returns these, the largest first."""
    stats = oomrec.json("stats", "--top", "100000", bundle)
    spaces = oomrec.json("show", bundle)["spaces"].values()
    rows = stats["top_by_bytes"]
    sums = [sum(row[figure] for row in rows) for figure in ("bytes", "count")]
    assert sums == [stats["total_allocated_bytes"], stats["total_allocations"]], rows[:5]
    assert sums == [
        sum(space[key] for space in spaces) for key in ("allocated_bytes", "allocated_count")
    ]
    return rows


def test_what_forgotten_stacks_had_allocated_stays_with_its_line(oomrec, victim):
    requests = 150_000
    # Exact mode must not fall back: then the totals would be estimates.
    options = ["--mode", "exact", "--recording-size", "64M"]
    run = oomrec("run", *options, "--", victim("ever_new_stacks"), "leak", requests, 20_000)
    largest, *others = assert_the_sums_add_up(oomrec, run.only_bundle())
    assert largest["function"] == "request", largest
    # A chunk of glibc's is a multiple of 16 bytes, 8 of which are its header.
    taken = sum((8 * (20 + number % 100) + 23) // 16 * 16 - 8 for number in range(requests))
    assert largest["count"] == requests, largest
    assert largest["bytes"] == pytest.approx(taken, rel=0.001), largest
    assert [row["count"] for row in others if row["function"] == "leak"] == [2098]


def test_forgotten_stacks_of_python_add_up(oomrec, victim):
    """Those of its start lose even their lines, and are one sum."""
    requests = 10_000
    options = ["--mode", "exact", "--python-objects"]
    script = victim("python/ever_new_expressions.py")
    run = oomrec(
        "run", *options, "--", sys.executable, script, "leak", requests,
        env={"OOMREC_FORGET_AT": 2000},
    )  # fmt: skip
    bundle = run.only_bundle()
    rows = assert_the_sums_add_up(oomrec, bundle)
    assert [row["bytes"] for row in rows] == sorted((row["bytes"] for row in rows), reverse=True)
    of_answer = [row for row in rows if row["function"] and "answer" in row["function"]]
    assert rows.index(of_answer[0]) < 3, rows[:5]
    # Six of 333 bytes each (a list has eight), and 600 to 999 more: only with all that was forgotten.
    assert sum(row["bytes"] for row in of_answer) > requests * (6 * 333 + 600)
    [forgotten] = [row for row in rows if row["function"] == FORGOTTEN]
    assert (forgotten["file"], forgotten["line"]) == (None, None) and forgotten["bytes"] > 0
    for command in ("show", "stats"):
        assert FORGOTTEN in oomrec(command, "--top", "1000", bundle).stdout


def test_nothing_is_forgotten_before_it_is_necessary(oomrec, victim):
    run = oomrec(
        "run", "--mode", "exact", "--", victim("ever_new_stacks"), "leak", 5000, 20_000,
        env={"OOMREC_FORGET_AT": 16_000_000},
    )  # fmt: skip
    bundle = run.only_bundle()
    recording = show(oomrec, bundle)["recording"]
    assert recording["forgotten_stacks"] == 0 and recording["stacks"] > 5000, recording
    for command in ("show", "stats", "tree", "leaks"):
        assert FORGOTTEN not in oomrec(command, "--json", bundle).stdout
        assert FORGOTTEN not in oomrec(command, bundle).stdout


# --- Threads, forks and deaths --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "requests", "bytes_each"),
    [
        # Enough room for all stacks: threads that wait for a core in the middle of an event delay forgetting.
        (["--mode", "exact"], 25_000, 20_000),
        (["--mode", "sampled", "--recording-size", "8M"], 500_000, 70_000),  # no sampled blocks
    ],
    ids=["exact", "sampled"],
)
def test_threads_forget_together(oomrec, plain, victim, options, requests, bytes_each):
    words = [victim("ever_new_stacks"), "threads", requests, bytes_each]
    run = oomrec("run", *options, "--", *words, env={"OOMREC_FORGET_AT": 200})
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    assert run.stdout == plain(*words).stdout
    shown = show(oomrec, run.only_bundle())
    assert shown["recording"]["forgotten_stacks"] > 1000, shown["recording"]
    held = {thread: held_by(shown, f"keep<{thread}>") for thread in range(8)}
    for thread in range(8):
        assert take_up(held[thread], bytes_each + 1000 * thread, 100), held
    if "exact" in options:
        assert take_up(held_by(shown, "request"), MEAN_REQUEST, 8 * 2000)
        live = sum(holder["count"] for holder in shown["holders"])
        assert live == shown["spaces"]["heap"]["live_count"]
        assert_the_sums_add_up(oomrec, run.only_bundle())


@pytest.mark.parametrize("mode", ["exact", "sampled"])
@pytest.mark.parametrize(
    ("words", "requests"),
    [(["ever_new_stacks"], 60_000), (["python/ever_new_expressions.py"], 8000)],
)
def test_a_storm_of_forks(preload, plain, victim, mode, words, requests):
    """Whose children and grandchildren go on with the tables that they have got."""
    program = [victim(word) for word in words]
    program = [sys.executable] * program[0].endswith(".py") + program + ["forks", requests]
    variables = {"OOMREC_FORGET_AT": 200, "OOMREC_SAMPLE_INTERVAL": "4K", "OOMREC_MODE": mode}
    run = preload(*program, env=variables)
    assert (run.exit_code, run.stderr) == (0, ""), str(run)
    assert run.stdout == plain(*program).stdout != ""
    assert preload.sessions_left() == []


def test_threads_of_python_forget_together(preload, plain, victim):
    program = [sys.executable, victim("python/ever_new_expressions.py"), "threads", 16_000]
    for mode in ("exact", "sampled"):
        run = preload(*program, env={"OOMREC_FORGET_AT": 200, "OOMREC_MODE": mode})
        assert (run.exit_code, run.stderr) == (0, ""), str(run)
        assert run.stdout == plain(*program).stdout != ""


def test_a_death_at_any_instant_leaves_whole_stacks(preload, oomrec, victim):
    """Also in the middle of a round, or while a stack's entries become another's."""
    chance, forgotten = random.Random(11), 0
    kills = rounds(10, 200)
    for _ in range(kills):
        # A small ring: what is in it is not forgotten.
        variables = {
            "OOMREC_MODE": "exact",
            "OOMREC_FORGET_AT": "100",
            "OOMREC_RECORDING_SIZE": "8M",
        }
        process = preload.start(victim("ever_new_stacks"), "forever", env=variables).once()
        time.sleep(chance.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        assert preload.finish(process).exit_code == 128 + signal.SIGKILL
        recovered = oomrec("recover", "--unknown", "--json", env={"OOMREC_MAX_DUMPS": "0"})
        assert (recovered.exit_code, recovered.stderr) == (0, ""), str(recovered)
        [bundle] = recovered.json()["bundles"]
        shown = show(oomrec, bundle)
        forgotten += shown["recording"]["forgotten_stacks"]
        for holder in shown["holders"]:
            names = functions(holder)
            assert "main" in names or names[-1] == FORGOTTEN, holder
        of_requests = held_by(shown, "request")
        assert 0.99 < of_requests / (2000 * MEAN_REQUEST) < 1.01, shown["holders"][:3]
    assert forgotten > kills * 1000


# --- Labels and marks -----------------------------------------------------------------------------

LABELS, MARKS = 20_000, 6000
LABELS_AND_MARKS = f"""
import os
import oomrec

for i in range({LABELS}):
    with oomrec.context(f"step {{i}}"):
        batch = bytearray(70_000)
    if i < {MARKS}:
        oomrec.mark(f"mark {{i}}")
kept = []
with oomrec.context("the last one"):
    for i in range(40):
        kept.append(bytearray(1 << 20))
oomrec.mark("the end")
os.kill(os.getpid(), 9)
"""


def test_labels_and_marks_of_a_long_run(oomrec, build_dir, tmp_path):
    script = written(tmp_path / "labels_and_marks.py", LABELS_AND_MARKS)
    run = oomrec("run", "--", sys.executable, script, env=package_environment(build_dir))
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    shown = show(oomrec, run.only_bundle())
    first = shown["holders"][0]
    assert functions(first)[-1] == "[the last one]" and first["count"] == 40, first
    assert shown["recording"]["forgotten_stacks"] > LABELS / 2, shown["recording"]
    assert shown["recording"]["dropped_events"] == 0, shown["recording"]
    timeline = oomrec.json("timeline", run.only_bundle())
    texts = [mark["text"] for mark in timeline["marks"]]
    assert (texts[0], texts[-1]) == ("mark 0", "the end")
    numbers = [int(text.split()[1]) for text in texts[:-1]]
    assert numbers == sorted(set(numbers))
    assert numbers[-1000:] == list(range(MARKS - 1000, MARKS))  # of the latest, each one
    assert len(texts) + timeline["dropped_marks"] == MARKS + 1
