"""The whole command under AddressSanitizer and UBSan, and each reader under mutations (tests/fuzz)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import commands, reading_lines
from conftest import SOURCE, Runner, rounds
from watching import Watch, wait_for

TARGETS = {
    # Rounds of scripts/test, and of scripts/test --full: about a second, and a minute.
    "recording": (50, 4_000),
    "bundle": (75, 15_000),
    "telemetry": (500, 40_000),
    "snapshot": (2_500, 200_000),
    "json": (5_000, 400_000),
    "csv": (1_250, 100_000),
    "log": (1_250, 100_000),
    "cgroup": (500, 40_000),
    "proc": (75, 6_000),
    "symbols": (1_250, 100_000),
    "options": (5_000, 400_000),
    "arguments": (5_000, 400_000),
}
FINDING = re.compile(r"runtime error:|AddressSanitizer|UndefinedBehavior")


@pytest.fixture
def sanitized(sanitized_dir, build_dir, tmp_path):
    """The sanitized command, which records programs with the plain library."""
    runner = Runner(
        tmp_path,
        [str(sanitized_dir / "oomrec")],
        {
            "OOMREC_LIBRARY": str(build_dir / "liboomrec.so"),
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "ASAN_OPTIONS": "detect_leaks=0",
        },
    )
    yield runner
    runner.end_all()


@pytest.fixture(scope="session")
def seeds(sanitized_dir, build_dir, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("fuzz")
    recording = directory / "recording"
    subprocess.check_call([build_dir / "tests" / "unit" / "tools" / "hostile_recording", recording])
    script = SOURCE / "tests" / "fuzz" / "seeds.py"
    subprocess.check_call([sys.executable, script, directory / "seeds", recording])
    return directory / "seeds"


def is_clean(run) -> bool:
    return run.exit_code in (0, 1, 2) and not FINDING.search(run.stderr)


def test_every_target_has_rounds(sanitized_dir):
    usage = subprocess.run(
        [sanitized_dir / "tests" / "fuzz" / "fuzz"], capture_output=True, text=True
    )
    assert usage.returncode == 2
    assert usage.stderr.partition("targets:")[2].split() == list(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_mutations_of_every_format(fuzz, seeds, target):
    count = rounds(*TARGETS[target])
    read, accepted = fuzz(target, count, seeds / target)
    assert read == len(list((seeds / target).iterdir())) + count
    assert 0 < accepted < read  # some are accepted, some refused


def test_the_fuzzer_finds_a_fault(sanitized_dir, tmp_path):
    """The control: a reader that takes too much memory is reported, and its input kept."""
    run = subprocess.run(
        [sanitized_dir / "tests" / "fuzz" / "fuzz", "json", "--findings", tmp_path, "/dev/zero"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (
        run.returncode != 0
        and "allocation-size-too-big" in run.stderr + run.stdout
        or "rss" in run.stderr
    )


@pytest.fixture
def bundle(sanitized, tmp_path):
    (tmp_path / "leak.py").write_text(
        "kept = []\ndef train():\n    while True:\n        kept.append(bytearray(20 << 20))\ntrain()\n"
    )
    run = sanitized("run", "--limit", "128M", "--", sys.executable, "leak.py")
    assert run.exit_code == 1 and not FINDING.search(run.stderr), str(run)
    return run.bundles()[0]


def test_every_reading_command(sanitized, bundle):
    for json in (False, True):
        for command, words in reading_lines(sanitized, bundle, json):
            run = sanitized(command, *words)
            assert is_clean(run), str(run)


def test_every_help_page_and_wrong_option(sanitized):
    for command in commands(sanitized):
        assert is_clean(sanitized(command, "--help"))
        run = sanitized(command, "--no-such-option")
        assert not FINDING.search(run.stderr) and run.exit_code != 0


def test_a_watched_kill(sanitized, preload, victim):
    watching = Watch(sanitized)
    process = preload.start(victim("dies"), "never").once("ready")
    wait_for(lambda: watching.sees(process.pid))
    process.kill()
    process.wait()
    wait_for(lambda: list(sanitized.dump_dir.glob("oom_*/manifest.json")))
    run = watching.stop()
    assert run.exit_code == 0 and not FINDING.search(run.stderr), str(run)


def test_recovered_and_merged(sanitized, preload, victim):
    for rank in (0, 1):
        environment = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2}
        preload(victim("naive_malloc"), env=environment)
    for words in (
        ["recover"],
        ["ls"],
        ["merge", "-o", "merged", preload.dump_dir],
        ["show", "merged"],
    ):
        run = sanitized(*words)
        assert is_clean(run), str(run)
