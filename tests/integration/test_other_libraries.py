"""Libraries beside ours: what they answer for the clock or for sizes is not believed, and what they do without is no failure."""

import sys

import pytest

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


RESERVES = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
PRIVATE, ANONYMOUS, NORESERVE = 2, 0x20, 0x4000
asked = int(sys.argv[1])
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
got = libc.mmap(None, asked, 3, PRIVATE | ANONYMOUS | NORESERVE, -1, 0)
print("refused" if got == ctypes.c_void_p(-1).value else "served")
"""


@pytest.mark.parametrize(
    "asked, failures", [(1 << 30, 0), ((1 << 30) + (64 << 10), 0), (3 << 30, 1)]
)
def test_mimallocs_reservation_is_no_failure(oomrec, asked, failures):
    """It does without, as at each `import pyarrow`. The control is a block of another size."""
    run = oomrec(
        "run", "--limit-as", "900M", "--", sys.executable, "-c", RESERVES, str(asked)
    )  # fmt: skip
    assert run.stdout == "refused\n", str(run)
    assert len(run.bundles()) == failures, str(run)
