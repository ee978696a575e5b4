"""At the soft limit a program can still say what happened: the reserve of --limit."""

from __future__ import annotations

import pytest
from conftest import distinct_versions, metadata, rounds, written
from pythons import PYTHON_VERSIONS

MIB = 1 << 20
# Sizes of no round number, so that the refusal hits another allocation each time.
LIMITS_KIB = [24_000 + 7_919 * number for number in range(rounds(4, 40))]
GROWS = """
import sys
rows = []

def fill():
    i = 0
    while True:
        i += 1
        rows.append({"id": i, "name": "row %d" % i} if sys.argv[1] == "small" else bytes(int(sys.argv[1])))

fill()
"""


@pytest.fixture
def grows(tmp_path):
    script = written(tmp_path / "grows.py", GROWS)
    return script


def traceback_of(run) -> list[str]:
    return [line for line in run.stderr.splitlines() if not line.startswith("oomrec:")]


def is_whole(lines: list[str]) -> bool:
    sources = ("i += 1", "rows.append")
    return (
        lines[0] == "Traceback (most recent call last):"
        and any(line.endswith("in fill") for line in lines)
        and any(source in line for line in lines for source in sources)
        and lines[-1] == "MemoryError"
    )


# Small: of Python's own allocator, whose arena is refused first; then blocks of malloc, whose refusal Python
# sees at once; then large ones.
@pytest.mark.parametrize("piece", ["small", "5000", "1000000"])
@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_python_prints_its_traceback(preload, python, grows, version, piece):
    interpreter = python(version)
    for number, limit in enumerate(LIMITS_KIB):
        environment = {"OOMREC_LIMIT": f"{limit}K", "OOMREC_MAX_DUMPS": "0"}
        run = preload(interpreter, "-I", grows, piece, env=environment)
        assert run.exit_code == 1 and is_whole(traceback_of(run)), str(run)
        assert len(run.bundles()) == number + 1


def test_without_the_reserve_python_cannot(preload, python, grows):
    """The control: what the test above checks depends on the reserve."""
    tracebacks = [
        traceback_of(preload(python(), "-I", grows, "small", env=environment))
        for limit in LIMITS_KIB
        for environment in [{"OOMREC_LIMIT": f"{limit}K", "OOMREC_LIMIT_RESERVE": "0"}]
    ]
    assert not all(map(is_whole, tracebacks)), tracebacks


def test_the_bundle_says_how_much_was_used(oomrec, python, grows):
    run = oomrec("run", "--limit", "64M", "--", python(), "-I", grows, "small")
    shown = oomrec.json("show", run.only_bundle())
    reserve = shown["limit_reserve"]
    assert reserve["bytes"] == 8 * MIB and 0 < reserve["used"] <= 8 * MIB, reserve
    assert metadata(run.only_bundle())["limit_reserve"] == reserve
    page = oomrec("show", run.only_bundle()).stdout
    assert "of the reserve of 8.0 MiB were used" in page


def test_without_a_limit_there_is_no_reserve(oomrec, victim):
    run = oomrec("run", "--", victim("ends"), "return", 1)
    assert oomrec.json("show", run.only_bundle())["limit_reserve"] is None
    assert metadata(run.only_bundle())["limit_reserve"] is None


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--limit", "300M"], 8 * MIB),
        (["--limit", "9M"], 3 * MIB),
        (["--limit", "1000M"], 10 * MIB),
        (["--limit", "300M", "--limit-reserve", "20M"], 20 * MIB),
        (["--limit", "300M", "--limit-reserve", "0"], 0),
    ],
)
def test_the_size_of_the_reserve(oomrec, victim, options, expected):
    run = oomrec("run", *options, "--", victim("ends"), "return", 1)
    assert oomrec.json("show", run.only_bundle())["limit_reserve"]["bytes"] == expected


TAKES_NO_NOTICE = """
held = []
for i in range(100_000):
    try:
        held.append(bytearray(5000 + i % 999))
    except MemoryError:
        pass
"""


def test_a_reserve_that_grew_is_told_as_grown(oomrec, python):
    run = oomrec("run", "--limit", "100M", "--", python(), "-c", TAKES_NO_NOTICE)
    reserve = oomrec.json("show")["limit_reserve"]
    assert 8 * MIB < reserve["used"] <= reserve["bytes"], reserve
    assert metadata(run.only_bundle())["limit_reserve"] == reserve


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_who_asks_again_for_the_same_is_refused_again(preload, victim, mode):
    """Else Ruby, which collects garbage and repeats its request, would learn of the failure after the reserve."""
    run = preload(victim("asks_again"), env={"OOMREC_LIMIT": "60M", "OOMREC_MODE": mode})
    assert run.exit_code == 0 and run.stdout.startswith("again 0 other 50 size 50 "), str(run)


CATCHES_AND_FREES = """
import sys
refused = []
for attempt in range(3):
    rows = []
    try:
        while True:
            rows.append(bytes(5000))
    except MemoryError:
        refused.append(len(rows) * 5000 >> 20)
print(*refused)
"""


def test_the_reserve_is_refilled(preload, python):
    """Each time the program has freed its memory, it is refused at the limit again, not beyond it."""
    run = preload(python(), "-I", "-c", CATCHES_AND_FREES, env={"OOMREC_LIMIT": "100M"})
    refused = [int(word) for word in run.stdout.split()]
    assert run.exit_code == 0 and len(refused) == 3, str(run)
    assert max(refused) - min(refused) <= 1 and max(refused) <= 100, refused


GROWS_IN_JAVA = """
import java.util.*;
class Grows {
  public static void main(String[] words) {
    List<byte[]> kept = new ArrayList<>();
    for (;;) kept.add(new byte[50000]);
  }
}
"""
RUNTIMES = {
    "node": (["node", "-e", "const kept = []; for (;;) kept.push(new Array(5000).fill(1.5))"],
             300, "heap out of memory"),
    "java": (["java", "-Xmx8g", "-XX:ErrorFile=/dev/null", "Grows.java"], 400,
             "insufficient memory for the Java Runtime Environment"),
    "ruby": (["ruby", "-e", "kept = []; loop { kept << 'x' * 5000 }"], 60, "NoMemoryError"),
    "php": (["php", "-n", "-d", "memory_limit=-1", "-r",
             "$kept = []; for (;;) $kept[] = str_repeat('x', 5000);"], 60, "Out of memory"),
}  # fmt: skip


@pytest.mark.parametrize(
    "words, first_mib, message",
    [
        pytest.param(*case, id=name, marks=pytest.mark.needs_program(name))
        for name, case in RUNTIMES.items()
    ],
)
def test_a_runtime_prints_its_own_message(preload, tmp_path, words, first_mib, message):
    (tmp_path / "Grows.java").write_text(GROWS_IN_JAVA)
    for number in range(rounds(2, 10)):
        limit = f"{(first_mib << 10) + 7_919 * number}K"
        run = preload(*words, env={"OOMREC_LIMIT": limit}, cwd=tmp_path)
        assert message in run.stdout + run.stderr and "recursively" not in run.stderr, str(run)
