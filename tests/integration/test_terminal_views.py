"""More views on a terminal: timeline, tree -i, run --live."""

import os
import re
import signal

import pytest
from conftest import Runner
from schemas import check

MIB = 1 << 20


@pytest.fixture(scope="module")
def bundle(build_dir, victim, tmp_path_factory):
    """A bundle of a program that held 40, 1 and 90 MiB, and failed at its limit of 128 MiB."""
    oomrec = Runner(tmp_path_factory.mktemp("bundle"), [str(build_dir / "oomrec")], {})
    steps = "import subprocess, sys\nsys.argv = ['', '40', '1', '90']\n"
    steps += f"exec(open({victim('python/up_and_down.py')!r}).read())\nbytes(1 << 30)\n"
    run = oomrec("run", "--limit", "128M", "--mode", "exact", "--", "python3", "-c", steps, exits=1)
    return run.bundles()[0]


def test_a_timeline_as_json_has_the_steps(oomrec, bundle):
    document = oomrec.json("timeline", bundle)
    check("timeline", document)
    held = [sum(moment["live_bytes"].values()) for moment in document["moments"]]
    times = [moment["timestamp"] for moment in document["moments"]]
    assert times == sorted(times)
    low = next(i for i, bytes_held in enumerate(held) if bytes_held > 40 * MIB)
    assert min(held[low:]) < 20 * MIB and max(held) > 90 * MIB
    assert document["refusals"][0]["bytes"] > 1 << 30
    assert {"name": "--limit", "bytes": 128 * MIB, "device": None} in document["limits"]


def test_a_timeline_is_drawn(oomrec, bundle):
    run = oomrec("timeline", bundle)
    lines = run.stdout.splitlines()
    assert "\x1b" not in run.stdout and all(len(line) <= 100 for line in lines)
    assert "--limit" in lines[1] or "--limit" in lines[2] or "--limit" in lines[3]
    assert re.search("[\u2801-\u28ff]", run.stdout)
    assert "× refused" in run.stdout and "alloc of 1.0 GiB" in run.stdout
    ascii_only = oomrec("timeline", "--ascii", "--height", "5", bundle)
    assert ascii_only.stdout.isascii() and len(ascii_only.stdout.splitlines()) < len(lines)
    assert oomrec("timeline", bundle, env={"LC_ALL": "C"}).stdout.isascii()


def test_a_timeline_of_a_running_process(oomrec, held):
    document = oomrec.json("timeline", held().pid)
    assert (
        document["moments"][-1]["live_bytes"]["heap"] + document["moments"][-1]["live_bytes"]["map"]
        > 56 * MIB
    )


def test_a_timeline_uses_the_terminals_width(terminal, bundle):
    timeline = terminal("timeline", bundle, columns=70, rows=40)
    assert timeline.finish() == 0
    widest = max(len(line) for line in timeline.text().splitlines()[:18])
    assert 65 < widest <= 70
    assert b"\x1b[3" in timeline.raw
    plain = terminal("timeline", bundle, env={"NO_COLOR": "1"})
    plain.finish()
    assert b"\x1b[3" not in plain.raw


@pytest.mark.parametrize("columns, rows", [(80, 24), (120, 40), (40, 10)])
def test_an_interactive_tree(terminal, bundle, columns, rows):
    tree = terminal("tree", "-i", "--top-down", bundle, columns=columns, rows=rows)
    text = tree.wait_for("▸ ", "q quit")
    rows_shown, opened = text.count(" %"), text.count("▾")
    tree.type("*")
    # A small screen may be full of rows already.
    tree.wait_until(lambda text: text.count(" %") > rows_shown or text.count("▾") > opened)
    tree.resize(60, 12)
    tree.wait_until(lambda text: text.split("\n")[11].startswith(" q quit"))
    tree.type("/no such thing\r")
    tree.wait_for("is not in the tree")
    tree.type("?")
    tree.wait_for("open all branches below this one")
    tree.type("q")  # leaves the keys, not the tree
    tree.wait_until(lambda text: text.split("\n")[11].startswith(" q quit"))
    tree.type("q")
    assert tree.finish() == 0


def test_an_interactive_tree_needs_a_terminal(oomrec, bundle):
    run = oomrec("tree", "-i", bundle)
    assert run.exit_code == 2 and "needs a terminal" in run.stderr


# A program for `run --live`: it prints, reads, and exits with a code.
ASKS = """
import os, signal, sys, time
held = bytearray(64 << 20)
for i in range(200): print("line", i)
print("\\x1b]0;title\\x07terminal", os.isatty(0), os.isatty(1), *os.get_terminal_size())
name = input("who? ")
print("hello", name)
try:
    print("interrupt me", flush=True)
    while True: time.sleep(0.1)  # a signal just before a long one would wait for its end
except KeyboardInterrupt:
    print("interrupted", *os.get_terminal_size())
sys.exit(5)
"""


def test_a_live_run_shows_figures_and_output(terminal):
    """Keys go to the program and back. It has its own window, exit code and complete output."""
    live = terminal("run", "--live", "--mode", "exact", "--", "python3", "-c", ASKS, rows=30)
    text = live.wait_for("oomrec top", "64.0 MiB", "terminal True True 80 10", "who?")
    assert "line 5\n" not in text
    live.type("i")
    live.wait_for("keys go to the program")
    live.type("Bob\r")
    live.wait_for("hello Bob", "interrupt me")
    live.type("\x1d")
    live.wait_for("output of the program")
    live.type("2")
    live.wait_for("[functions]")
    live.resize(90, 42)
    live.wait_until(lambda text: text.split("\n")[27].startswith(" output of the program"))
    live.type("\x03")
    assert live.finish() == 5
    printed = live.raw[live.raw.rindex(b"\x1b[?1049l") :]
    assert re.findall(r"line (\d+)\r\n", printed.decode()) == [str(i) for i in range(200)]
    assert "interrupted 90 14" in printed.decode() and b"\x1b]0;title\x07" in printed
    assert b"title" not in live.raw[: live.raw.rindex(b"\x1b[?1049l")]


def test_a_live_view_can_be_left(terminal):
    """The program continues with the terminal to itself."""
    live = terminal("run", "--live", "--", "python3", "-c", ASKS, columns=100, rows=30)
    live.wait_for("who?", "oomrec top")
    live.type("q")
    live.wait_until(lambda text: "oomrec top" not in text and "who?" in text)
    live.type("Eve\r")
    live.wait_for("hello Eve", "interrupt me")
    live.type("\x03")
    live.wait_for("interrupted 100 30")
    assert live.finish() == 5


def test_a_live_run_passes_signals_on(terminal):
    live = terminal("run", "--live", "--", "sleep", "600")
    live.wait_for("output of the program")
    os.kill(live.process.pid, signal.SIGTERM)
    assert live.finish() == 128 + signal.SIGTERM


def test_redirected_output_is_unchanged(terminal, tmp_path):
    script = "import os, sys; print('out'); print('err', os.isatty(2), file=sys.stderr)"
    with open(tmp_path / "err", "wb") as errors:
        live = terminal("run", "--live", "--", "python3", "-c", script, stderr=errors)
        assert live.finish() == 0
    assert (tmp_path / "err").read_text() == "err False\n"
    assert "out" in live.text()


def test_without_a_terminal_a_live_run_is_a_plain_run(oomrec):
    run = oomrec("run", "--live", "--", "python3", "-c", "print('done')")
    assert run.exit_code == 0 and run.stdout == "done\n"
    assert "--live needs a terminal" in run.stderr
