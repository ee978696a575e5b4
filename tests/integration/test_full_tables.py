"""A recording with full tables."""

import sys

import pytest

SMALL, LARGE = 4000 * 10_001, 200 * 100_001


def recorded(preload, oomrec, path, modules, **settings):
    preload(sys.executable, path, modules, env={"PYTHONMALLOC": "malloc", **settings})
    (session,) = preload.session_dir.rglob("*.session")
    return session, oomrec.json("show", session)


def held_by(shown, function):
    """Count and bytes of all holders with this Python function on their stacks."""
    holders = [
        holder
        for holder in shown["holders"]
        if any((frame.get("function") or "").startswith(function) for frame in holder["stack"])
    ]
    return sum(h["count"] for h in holders), sum(h["bytes"] for h in holders)


@pytest.mark.parametrize("size", ["4M", "16M"])
def test_exact_mode_falls_back_to_samples_and_reports_it(preload, oomrec, victim, size):
    session, shown = recorded(
        preload, oomrec, victim("python/many_functions.py"), 2000,
        OOMREC_MODE="exact", OOMREC_RECORDING_SIZE=size,
    )  # fmt: skip

    assert shown["recording"]["mode"] == "sampled"
    assert "exact recording fell back to sampling" in oomrec("show", session).stdout
    assert shown["recording"]["dropped_events"] == 0
    # Fine at first, and coarser if samples do not fit.
    assert 16 << 10 <= shown["recording"]["interval_bytes"] <= 512 << 10
    # An estimate: the standard error is 11 % of 40 MiB at most. Large blocks are exact, and one in
    # fifty recordings samples one of the small objects (11 KiB in total) that own them.
    assert held_by(shown, "keep_small")[1] == pytest.approx(SMALL, rel=0.5)
    assert LARGE * 0.98 < held_by(shown, "keep_large")[1] < LARGE * 1.02 + 2 * (512 << 10)


def test_100000_functions_have_names(preload, oomrec, victim):
    _, shown = recorded(
        preload, oomrec, victim("python/many_functions.py"), 50_000, OOMREC_MODE="exact"
    )

    assert shown["recording"]["mode"] == "exact"
    assert held_by(shown, "keep_small")[1] == pytest.approx(SMALL, rel=0.02)
    assert held_by(shown, "keep_large")[1] == pytest.approx(LARGE, rel=0.02)
