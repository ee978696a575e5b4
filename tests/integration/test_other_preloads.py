"""Preloads that answer for the clock or the allocator's sizes: the recorder believes neither."""

import sys

MIB = 1 << 20


def test_a_clock_that_stands_still_delays_no_bundle(oomrec, victim):
    """libfaketime answers so: the failing thread waited until a deadline of the false clock."""
    run = oomrec(
        "run", "--limit", "100M", "--", sys.executable, "-c", "bytearray(1 << 40)",
        env={"LD_PRELOAD": victim("false_clock.so")},
    )  # fmt: skip
    assert "was not written within" not in run.stderr, run.stderr
    (bundle,) = run.bundles()
    assert oomrec.json("show", bundle)["request"]["size"] >= 1 << 40


def test_the_time_line_goes_on_under_a_clock_that_stands_still(oomrec, victim, tmp_path):
    (tmp_path / "waits.py").write_text(
        "import ctypes\n"
        "sleep = ctypes.CDLL(None).usleep\n"
        "kept = []\n"
        "for i in range(20): kept.append(bytearray(1 << 20)); sleep(50_000)\n"
    )
    run = oomrec(
        "run", "--dump-at-exit", "--", sys.executable, "waits.py",
        env={"LD_PRELOAD": victim("false_clock.so")},
    )  # fmt: skip
    assert run.exit_code == 0, str(run)
    moments = oomrec.json("timeline", run.only_bundle())["moments"]
    assert len(moments) >= 5, moments
    assert moments[-1]["timestamp"] - moments[0]["timestamp"] > 0.5


def test_absurd_usable_sizes_are_not_believed(oomrec, victim):
    """4 GiB a block, by a header of libmemusage: --limit refused everything."""
    run = oomrec(
        "run", "--limit", "1G", "--dump-at-exit", "--", victim("leak"),
        env={"LD_PRELOAD": victim("false_sizes.so")},
    )  # fmt: skip
    (bundle,) = run.bundles_for("soft_limit")  # of the request that ends the victim
    shown = oomrec.json("show", bundle)
    assert shown["request"]["size"] > 1 << 40, str(run)
    assert shown["spaces"]["heap"]["live_bytes"] < 60 * MIB, shown["spaces"]
    assert any("the heap has no totals" in note for note in shown["notes"]), shown["notes"]
