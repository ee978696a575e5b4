"""Killed inside the call: a request that touches its memory is in the bundle, though it never returned."""

import ctypes.util
import os
import re

import pytest
from sizes import held_by, take_up

MIB = 1 << 20


@pytest.fixture
def killed(oomrec, victim, cgroup):
    def run(what: str, env: dict | None = None):
        done = oomrec(
            "run", "--", victim("in_flight"), what, env=env, preexec_fn=cgroup("200M").enter
        )
        assert done.exit_code == 128 + 9, str(done)
        return oomrec.json("show", done.bundles_for("killed")[0])

    return run


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("what, api", [("populate", "mmap"), ("locked", "malloc")])
def test_the_request_is_named_and_held(killed, what, api):
    if what == "locked" and os.geteuid() != 0:
        pytest.skip("locks more memory than RLIMIT_MEMLOCK allows")
    shown = killed(what)
    request = shown["in_flight"]
    assert (request["api"], request["size"]) == (api, 500 * MIB)
    assert what in {frame["function"] for frame in request["stack"]}
    assert f"it was inside {api} of 500.0 MiB" in shown["verdict"]["summary"]
    assert held_by(shown, what) == 500 * MIB and take_up(held_by(shown, "keep"), MIB, 40)
    needed = [
        int(m) for hint in shown["advice"] for m in re.findall(r"--cgroup (\d+)M", hint["text"])
    ]
    assert all(value >= 540 for value in needed), shown["advice"]


@pytest.mark.needs_cgroup_write
def test_a_realloc_that_copies_still_has_its_old_block(killed):
    """glibc moves the pages instead; jemalloc copies them, and is killed while it does."""
    jemalloc = ctypes.util.find_library("jemalloc")
    if jemalloc is None:
        pytest.skip("jemalloc is not installed: apt-get install libjemalloc2")
    shown = killed("resize", {"LD_PRELOAD": jemalloc})
    assert shown["in_flight"]["api"] == "realloc" and shown["in_flight"]["size"] == 150 * MIB
    # jemalloc, whose realloc copies, has no size between 80 and 96 MiB.
    assert 90 * MIB <= held_by(shown, "old_block") <= 96 * MIB
    assert held_by(shown, "resize") == 150 * MIB


@pytest.mark.needs_cgroup_write
def test_a_call_that_returned_is_not_in_flight(killed):
    shown = killed("afterwards")
    assert shown["in_flight"] is None and "it was inside" not in shown["verdict"]["summary"]
    assert held_by(shown, "main") >= 540 * MIB
