"""A recording with flipped bits or cut short is shown as far as possible, or rejected with a reason."""

import itertools
import random
import re
import shutil
import subprocess

import pytest
from command_lines import reading_lines
from conftest import rounds
from python_programs import trains


@pytest.fixture
def bundle(oomrec, tmp_path):
    (tmp_path / "leak.py").write_text(trains(20, 2000, threads=3))
    return oomrec("run", "--limit", "128M", "--", "python3", "leak.py").bundles()[0]


def test_thousands_of_mutations_never_crash(build_dir, bundle):
    driver = build_dir / "tests" / "unit" / "tools" / "tools_mutations"
    count = rounds(250, 10_000)
    run = subprocess.run(
        [driver, bundle / "recording.oomrec", str(count)],
        capture_output=True,
        text=True,
        timeout=rounds(300, 1800),
    )
    assert run.returncode == 0, run.stderr[-2000:]
    counted = re.fullmatch(r"(\d+) rounds, (\d+) shown, (\d+) refused\n", run.stderr)
    assert counted, run.stderr[-2000:]
    total, shown, refused = map(int, counted.groups())
    assert total == count and shown + refused == total
    assert shown > count / 10 and refused > count / 100  # both outcomes occur


def test_commands_reject_mutations_in_two_lines(oomrec, bundle, tmp_path):
    whole = (bundle / "recording.oomrec").read_bytes()
    damaged = shutil.copytree(bundle, tmp_path / "damaged")
    chance = random.Random(50)
    refused = 0
    lines = itertools.cycle(reading_lines(oomrec, damaged))
    for command, words in itertools.islice(lines, 50):
        data = bytearray(whole[: chance.choice([chance.randrange(len(whole)), len(whole)])])
        for _ in range(chance.randrange(64) if data else 0):
            data[chance.randrange(min(len(data), 65536))] ^= 1 << chance.randrange(8)
        (damaged / "recording.oomrec").write_bytes(data)
        run = oomrec(command, *words)
        assert run.exit_code in (0, 2), str(run)
        if run.exit_code == 2:
            assert run.stdout == "" and len(run.stderr.splitlines()) == 2
            refused += 1
    assert 0 < refused < 50
