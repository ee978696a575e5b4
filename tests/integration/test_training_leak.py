"""A numpy training loop that leaks its batches, under a soft cap, in both modes."""

import sys
from pathlib import Path

import pytest
from conftest import full

pytestmark = pytest.mark.needs_numpy


@pytest.mark.parametrize(
    "mode, tolerance, rows",
    [
        ("exact", 0.01, 2048),  # batches of 4 MiB
        ("sampled", 0.15, 16),  # and of 32 KiB, below the exact threshold
        full("sampled", 0.15, 2048),
        full("exact", 0.01, 16),
    ],
)
def test_the_leaking_line_is_the_top_holder(oomrec, victim, mode, tolerance, rows):
    """The bytes under the leaking line agree with the script's own count."""
    path = Path(victim("python/leak_batches.py"))
    run = oomrec("run", "--limit", "512M", "--mode", mode, "--", sys.executable, path, rows)

    assert run.exit_code == 3
    truth = int(run.stdout.split("truth ")[1].split()[0])
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "soft_limit"
    assert shown["limit"]["kind"] == "soft" and shown["limit"]["bytes"] == 512 << 20
    assert shown["recording"]["mode"] == mode
    top = shown["holders"][0]
    line = next(f for f in top["stack"] if f["kind"] == "python")
    assert line["function"].endswith("make_batch")
    assert "np.random.rand" in path.read_text().splitlines()[line["line"] - 1]
    assert top["bytes"] == pytest.approx(truth, rel=tolerance)


def test_the_programs_error_and_stdout_are_unchanged(oomrec, victim):
    run = oomrec("run", "--limit", "128M", "--", sys.executable, victim("python/leak_batches.py"))

    assert [line.split()[0] for line in run.stdout.splitlines()] == ["truth", "error"]
    assert "Unable to allocate" in run.stdout
    ours = [line for line in run.stderr.splitlines() if line.startswith("oomrec:")]
    assert 2 <= len(ours) <= 8
    assert "soft limit of 128.0 MiB is reached" in ours[0]
    assert any("leak_batches.py:" in line and "make_batch" in line for line in ours)


def test_quiet_prints_nothing(oomrec, victim):
    run = oomrec(
        "run", "--quiet", "--limit", "128M", "--", sys.executable, victim("python/leak_batches.py")
    )

    assert "oomrec" not in run.stderr
    assert run.only_bundle()
