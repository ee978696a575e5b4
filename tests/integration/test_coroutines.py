"""Coroutines of Boost.Context, greenlet and gevent: nothing is disturbed, and every stack is a coroutine's own.

Boost's run on stacks of their own. Greenlets, and gevent's, take turns on one stack: what lies further out on it belongs
to another one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from requirements import program_skip_reason
from sizes import take_up

SOURCES = Path(__file__).resolve().parent.parent / "victims"
MODES = ["sampled", "exact"]
KEPT, PASSING = 200_003, 100_003  # as in the victims
NUL = 1  # of a bytearray
TOO_MUCH = 1 << 46
GREENLET = pytest.mark.needs_module("greenlet")
GEVENT = pytest.mark.needs_module("gevent")
KINDS = [
    "fixed",
    "protected",
    pytest.param("greenlet", marks=GREENLET),
    pytest.param("gevent", marks=GEVENT),
]
# Innermost first: the functions of the coroutine.
OF_BOOST = {"keep": "keep_in_fibre", "end": "end_in_fibre"}
OF_PYTHON = {"keep": "keep_in_coroutine", "end": "end_in_coroutine"}


def is_python(kind: str) -> bool:
    return kind in ("greenlet", "gevent")


@pytest.fixture
def words(build_dir, victim):
    """words(KIND, COROUTINES, TURNS, END): the program and its arguments."""

    def of(kind: str, *arguments) -> list:
        if is_python(kind):
            return ["python3", victim("python/coroutines.py"), kind, *arguments]
        if not (build_dir / "tests" / "victims" / "fibres").exists():
            pytest.skip("libboost-context-dev was not installed when this was built")
        return [victim("fibres"), kind, *arguments]

    return of


def line_of(source: str, text: str) -> int:
    with open(source) as lines:
        return next(number for number, line in enumerate(lines, 1) if text in line)


def kept_by_coroutines(shown: dict, kind: str) -> list[dict]:
    """The holders of what they keep, each with the function further in. Python may map an arena there, too."""
    function = (OF_PYTHON if is_python(kind) else OF_BOOST)["keep"]
    return [
        holder
        for holder in shown["holders"]
        if holder["space"] == "heap"
        and any(frame.get("function") == function for frame in holder["stack"])
    ]


def check_coroutines_own(stack: list[dict], kind: str, what: str) -> None:
    """The stack begins in the coroutine's function, and ends where the coroutine begins."""
    if is_python(kind):
        of_python = [frame["function"] for frame in stack if frame["kind"] == "python"]
        assert of_python[:2] == [OF_PYTHON[what], "body"], of_python
        assert set(of_python[2:]) <= {"Greenlet.run", "run"}, of_python
        assert stack[-1]["function"].startswith("greenlet::UserGreenlet::g_initialstub"), stack[-1]
    else:
        names = [frame["function"] for frame in stack]
        # Boost 1.92 has no name for the place where the coroutine begins.
        assert names[0] == OF_BOOST[what] and names[-1] in ("make_fcontext", None), names


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_program_is_not_disturbed(plain, preload, words, kind, mode):
    command = words(kind, 50, 40, "ends")
    alone = plain(*command)
    run = preload(*command, env={"OOMREC_MODE": mode})
    assert alone.exit_code == 0 and alone.stdout, str(alone)
    assert (run.stdout, run.stderr, run.exit_code) == (alone.stdout, alone.stderr, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_coroutines_hold(oomrec, preload, words, kind, mode):
    """One line of their code is one holder, wherever each of them was resumed; every block of 64 KiB is exact."""
    coroutines = 60
    run = preload(*words(kind, coroutines, 20, "asks"), env={"OOMREC_MODE": mode})
    shown = oomrec.json("show", run.only_bundle())
    holders = kept_by_coroutines(shown, kind)
    assert len(holders) == 1, [[frame["function"] for frame in each["stack"]] for each in holders]
    size = KEPT + (NUL if is_python(kind) else 0)
    assert holders[0]["count"] == coroutines
    assert take_up(holders[0]["bytes"], size, coroutines), holders[0]
    check_coroutines_own(holders[0]["stack"], kind, "keep")
    cut = [each for each in shown["holders"] if each["stack"][-1]["kind"] == "truncated"]
    assert not cut, cut
    assert not any("stacks were cut" in note for note in shown["notes"]), shown["notes"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_in_a_coroutine(oomrec, preload, words, victim, kind, mode):
    run = preload(*words(kind, 20, 10, "asks"), env={"OOMREC_MODE": mode}, exits=0)
    request = oomrec.json("show", run.only_bundle())["request"]
    assert request["size"] == TOO_MUCH + 1
    check_coroutines_own(request["stack"], kind, "end")
    if is_python(kind):
        source, text = victim("python/coroutines.py"), "bytearray(TOO_MUCH)"
    else:
        source, text = f"{SOURCES}/fibres.cpp", "malloc(TOO_MUCH + 1)"
    asked = next(frame for frame in request["stack"] if frame.get("line"))
    assert asked["file"].endswith(source.rsplit("/", 1)[1]), asked
    assert asked["line"] == line_of(source, text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_in_a_coroutine(oomrec, words, kind):
    """With more than 16 MiB, so that the end is worth a bundle."""
    coroutines = 100
    # Python's small objects on the same line are none of the blocks that are counted.
    run = oomrec("run", "--python-sampling", "0", "--", *words(kind, coroutines, 5, "dies"))
    assert run.exit_code == 128 + 9, str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "killed_externally"
    (holder,) = kept_by_coroutines(shown, kind)
    assert holder["count"] == coroutines
    check_coroutines_own(holder["stack"], kind, "keep")


@pytest.mark.parametrize("kind", KINDS)
def test_every_turn_counts(oomrec, preload, words, kind):
    """In exact mode each, also of blocks that are gone."""
    coroutines, turns = 30, 40
    environment = {"OOMREC_MODE": "exact", "OOMREC_PYTHON_SAMPLING": "0"}
    run = preload(*words(kind, coroutines, turns, "asks"), env=environment)
    busiest = oomrec.json("stats", run.only_bundle())["top_by_bytes"][0]
    assert busiest["function"].endswith("pass_in_coroutine" if is_python(kind) else "pass_in_fibre")
    count, size = coroutines * turns, PASSING + (NUL if is_python(kind) else 0)
    assert busiest["count"] == count and take_up(busiest["bytes"], size, count), busiest


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_at_once(plain, library, words, tmp_path, kind, mode):
    """The bounds of their stacks are found a few times for each, not in each turn, and not in /proc/self/maps."""
    if reason := program_skip_reason("strace"):
        pytest.skip(reason)
    coroutines, turns = 2_000, 30
    calls = tmp_path / "calls"
    traced = ["strace", "-o", calls, "-e", "trace=openat,rt_sigprocmask", "--seccomp-bpf", "-f"]
    run = plain(
        *traced, "-E", f"LD_PRELOAD={library}", *words(kind, coroutines, turns, "ends"),
        env={"OOMREC_MODE": mode},
    )  # fmt: skip
    if "ptrace" in run.stderr:
        pytest.skip(run.stderr)
    assert run.exit_code == 0, str(run)
    lines = calls.read_text().splitlines()
    assert sum("/proc/self/maps" in line for line in lines) < 20
    assert sum("rt_sigprocmask(0xffffffff" in line for line in lines) < 10 * coroutines
