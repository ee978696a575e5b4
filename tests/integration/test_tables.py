"""Tables that are full keep what is latest or live: libraries, threads, failures."""

from __future__ import annotations

import json
import signal

import pytest
from conftest import full, rounds
from sizes import take_up

MIB = 1 << 20


def show(oomrec, *words) -> dict:
    return oomrec.json("show", "--top", "100000", *words)


# --- Libraries ------------------------------------------------------------------------------------

KEPT_EVERY, KEPT_BYTES = 500, 100_003  # tests/victims/many_libraries.c


def libraries_of(holder: dict) -> list[str]:
    modules = [frame["module"] or "" for frame in holder["stack"]]
    return [module.rpartition("/")[2] for module in modules]


def is_kept(holder: dict) -> bool:
    return KEPT_BYTES <= holder["bytes"] < KEPT_BYTES + 4096 + 16


@pytest.mark.parametrize(
    ("mode", "size"),
    [("sampled", "1M"), ("exact", "4M"), full("sampled", None), full("exact", None)],
)
def test_ever_new_libraries(oomrec, victim, tmp_path, mode, size):
    """Each has the same addresses as the one before. Blocks that live longer keep their library's name."""
    count = rounds(6000, 20_000)
    options = ["--mode", mode] + (["--recording-size", size] if size else [])
    plugin = victim("plugin_that_allocates.so")
    run = oomrec("run", *options, "--", victim("many_libraries"), plugin, tmp_path, count)
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    bundle = run.only_bundle()
    shown = show(oomrec, bundle)
    recording = shown["recording"]
    assert (recording["dropped_events"], recording["truncated_stacks"]) == (0, 0), recording
    assert recording["mode"] == mode, shown["notes"]

    leak, *others = shown["holders"]
    assert take_up(leak["bytes"], MIB, 40) and leak["count"] == 40, leak
    assert leak["stack"][0]["function"] == "plugin_allocate", leak
    assert libraries_of(leak)[:2] == ["the_last.so", "many_libraries"], leak
    kept = {libraries_of(holder)[0]: holder for holder in others if is_kept(holder)}
    assert set(kept) == {f"kept_{number:05}.so" for number in range(0, count, KEPT_EVERY)}
    assert all(holder["stack"][0]["function"] == "plugin_allocate" for holder in kept.values())
    # Of a library that was unloaded and left no block, nothing is live.
    assert not [name for holder in others for name in libraries_of(holder) if "passing" in name]
    modules = json.loads((bundle / "environment.json").read_text())["modules"]
    assert all(module["path"] for module in modules)
    if size:  # else there is room for all that the lines of forgotten stacks and the ring name
        assert len(modules) < 3000


@pytest.mark.full
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_more_libraries_than_frames_can_name(oomrec, victim, tmp_path, mode):
    count, plugin = 70_000, victim("plugin_that_allocates.so")
    words = [victim("many_libraries"), plugin, tmp_path, count]
    run = oomrec("run", "--mode", mode, "--", *words)
    leak, *others = show(oomrec, run.only_bundle())["holders"]
    assert libraries_of(leak)[:2] == ["the_last.so", "many_libraries"], leak
    kept = [libraries_of(holder)[0] for holder in others if is_kept(holder)]
    assert sorted(kept) == [f"kept_{number:05}.so" for number in range(0, count, KEPT_EVERY)]


# --- Threads --------------------------------------------------------------------------------------


def assert_the_last_thread_leaks(shown: dict) -> None:
    leak = shown["holders"][0]
    assert take_up(leak["bytes"], MIB, 40) and leak["count"] == 40, leak
    assert leak["stack"][0]["function"] == "leak", leak


def run_threads(oomrec, victim, mode: str, *words) -> tuple[dict, list[dict]]:
    """What `show` finds, and the events."""
    run = oomrec("run", "--mode", mode, "--", victim("many_threads"), *words)
    if run.exit_code == 77:
        pytest.skip(run.stderr)
    assert run.exit_code == 128 + signal.SIGKILL, str(run)
    bundle = run.only_bundle()
    return show(oomrec, bundle), json.loads((bundle / "events.json").read_text())


@pytest.mark.parametrize("mode", [full("sampled"), "exact"])
def test_ever_new_threads(oomrec, victim, mode):
    """More than an event's number of its thread can tell apart."""
    count = rounds(70_000, 200_000)
    shown, events = run_threads(oomrec, victim, mode, "one_by_one", count)
    assert_the_last_thread_leaks(shown)
    assert shown["recording"]["dropped_events"] == 0, shown["recording"]
    leaking = {event["thread"] for event in events if event["size"] == MIB}
    passing = {event["thread"] for event in events if event["size"] == 100_003}
    assert len(leaking) == 1 and None not in leaking | passing
    assert not leaking & passing


@pytest.mark.parametrize("mode", ["sampled", full("exact")])
def test_threads_come_when_many_have_gone(oomrec, victim, mode):
    count = rounds(6000, 20_000)
    shown, _ = run_threads(oomrec, victim, mode, "at_once", count)
    assert_the_last_thread_leaks(shown)
    # Also those that were not recorded have freed what they had.
    assert 40 * MIB <= shown["spaces"]["heap"]["live_bytes"] < 41 * MIB, shown["spaces"]["heap"]
