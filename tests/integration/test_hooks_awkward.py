"""Where a recorder must not wait for anything: a bundle or a clean refusal, never a deadlock.

The runner's timeout is the watchdog.
"""

import signal

import pytest

# Where: the failing thread holds its own locks and stdio's, the loader's or the allocator's, is in a
# signal handler on a stack of its own, has 16 KiB of stack, is ending, or its process is.
PLACES = [
    "main", "locks", "loader", "allocator", "handler", "small_stack", "tls", "exit", "fork", "vfork",
]  # fmt: skip
SEGV, ABRT = 128 + signal.SIGSEGV, 128 + signal.SIGABRT


def codes_of(oomrec, run) -> list[str]:
    return [oomrec.json("show", bundle)["verdict"]["code"] for bundle in run.bundles()]


def assert_told(oomrec, run, place: str, code: str) -> None:
    """What a handler asks for that has interrupted an allocation is part of that, and told by none."""
    told = codes_of(oomrec, run)
    assert told == [code] or (place == "allocator" and told == []), str(run)


@pytest.mark.parametrize("place", PLACES)
def test_the_null_is_used(oomrec, plain, preload, victim, place):
    without = plain(victim("awkward"), place, "use_null")
    run = preload(victim("awkward"), place, "use_null")
    assert run.exit_code == without.exit_code == SEGV, str(run)
    assert_told(oomrec, run, place, "request_too_large" if place == "vfork" else "null_dereference")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("action, exit_code", [("continue", 0), ("exit=7", 7), ("abort", ABRT)])
def test_the_action_is_done(oomrec, preload, victim, tmp_path, place, action, exit_code):
    told = tmp_path / "told"
    run = preload(
        victim("awkward"), place, "refuse",
        env={"OOMREC_ON_OOM": action, "OOMREC_ON_OOM_EXEC": f"echo %p >> {told}"},
    )  # fmt: skip
    assert run.exit_code == exit_code, str(run)
    assert len(told.read_text().splitlines()) == 1
    assert "request_too_large" in codes_of(oomrec, run), str(run)


@pytest.mark.parametrize("place", [place for place in PLACES if place != "vfork"])
def test_the_limit_comes_near(oomrec, preload, victim, place):
    run = preload(
        victim("awkward"), place, "grow", env={"OOMREC_LIMIT": "100M", "OOMREC_WARN": "90"}
    )
    assert run.exit_code == 0, str(run)
    assert_told(oomrec, run, place, "near_limit")
