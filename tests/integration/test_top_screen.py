"""oomrec top on a virtual terminal."""

import os
import re
import signal
from pathlib import Path

import attach_targets
import pytest
from holding import Held
from schemas import check


@pytest.mark.parametrize("columns, rows", [(80, 24), (140, 50), (50, 12)])
def test_the_screen_fits_its_size(terminal, held, columns, rows):
    program = held()
    top = terminal("top", program.pid, columns=columns, rows=rows)
    text = top.wait_for("oomrec top", str(program.pid), "RSS", "▾own", "48.0 MiB", "q quit")
    assert ("live" in text) == (rows >= 20), "the chart"
    top.type("\t")
    top.wait_for("[functions]", "keep_large  h")
    top.type("q")
    assert top.finish() == 0


@pytest.mark.parametrize("answer", ["y\r", "n\r", "\r", "\x04"])
def test_it_asks_whether_to_attach(terminal, running, oomrec, answer):
    """A process that is not recorded; by default it stays so."""
    if not attach_targets.may_trace():
        pytest.skip("kernel.yama.ptrace_scope forbids it")
    process = running("grows_in_steps")
    top = terminal("top", process.pid, columns=110)
    top.wait_for(f"process {process.pid} is not recorded.", "[y/N]")
    top.type(answer)
    if answer == "y\r":
        top.wait_for("oomrec top", "[before attaching]", "q quit")
        top.type("q")
        assert top.finish() == 0
    else:
        assert top.finish() == 1
        assert f"oomrec attach {process.pid}" in top.text()
    assert attach_targets.mapped_hooks(process.pid) == (answer == "y\r")


def stripped(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def test_keys(terminal, held):
    """Each key does what the help page says."""
    program = held()
    top = terminal("top", program.pid, columns=110, rows=60)  # with room for keep_small's few KiB
    top.wait_for("▾own", "keep_large")
    top.type("?")
    top.wait_for("sort by growth", "choose threads")
    top.type("\x1b")
    top.wait_for("[stacks]")

    top.type("2t")
    top.wait_for("[functions]", "▾total")
    top.wait_until(lambda text: 0 < text.find("main  holds.py") < text.find("keep_large  holds.py"))
    top.type("3")
    top.wait_for("[files]", "/holds.py")
    top.type("2o/SMALL\r")
    top.wait_until(
        lambda text: 'with "SMALL"' in text and "keep_small" in text and "keep_large" not in text
    )
    top.type("\x1b")
    top.wait_for("keep_large", "keep_small")

    top.type("r")
    text = top.wait_until(lambda text: "which threads" in text and "python" in stripped(text))
    top.type("\x1bOB" * (stripped(text).index("python") - 1) + "\r")
    top.wait_until(lambda text: "keep_in_thread" in text and "keep_large" not in text)
    top.type("r\x1bOH\r")
    top.wait_for("all threads", "keep_large")

    top.type("s\x1bOB\r")
    top.wait_until(lambda text: " heap · " in text or " map · " in text)
    top.type("s\x1bOH\r1")
    top.wait_for("all spaces", "[stacks]")
    top.type("\r")
    top.wait_for("holds.py:", "Esc back", "main")
    top.type("\x1b ")
    top.wait_for("paused")
    program.do("grow 300")
    top.type("g")
    assert "300.0 MiB" not in top.wait_for("▾growth")
    top.type(" ")
    top.wait_for("300.0 MiB")
    assert "Python frames" in top.wait_for("all threads")
    top.type("f")
    top.wait_for("native frames")
    top.type("f")
    top.wait_for("all frames")
    top.type("p")
    top.wait_for("which process", str(program.pid))
    top.type("\x1bq")
    assert top.finish() == 0


def test_the_screen_follows_the_terminals_size(terminal, held):
    """The environment's COLUMNS and LINES are ignored."""
    fixed = {"LINES": "24", "COLUMNS": "80"}
    top = terminal("top", held().pid, columns=80, rows=24, env=fixed)
    top.wait_for("live", "q quit")
    top.resize(60, 12)
    top.wait_until(lambda text: "──" not in text and "oomrec top" in text)
    top.resize(120, 40)
    top.wait_until(lambda text: "──" in text and text.split("\n")[39].startswith(" q quit"))


def test_without_colour(terminal, held):
    """NO_COLOR allows only bold, dim and reverse. A dumb terminal gets plain text, once."""
    program = held()
    top = terminal("top", program.pid, env={"NO_COLOR": "1"})
    top.wait_for("48.0 MiB")
    top.type("q")
    assert top.finish() == 0
    assert not re.search(rb"\x1b\[[0-9;]*[34][0-9](;[0-9;]*)?m", top.raw)
    coloured = terminal("top", program.pid)
    coloured.wait_for("48.0 MiB")
    assert re.search(rb"\x1b\[[0-9;]*[34][0-9](;[0-9;]*)?m", coloured.raw)
    dumb = terminal("top", program.pid, term="dumb")
    assert dumb.finish() == 0
    assert b"\x1b" not in dumb.raw and b"keep_large" in dumb.raw


def test_the_end_of_the_process_is_reported(terminal, held):
    program = held()
    top = terminal("top", program.pid)
    top.wait_for("48.0 MiB")
    program.ask("end 7")
    top.wait_for("ended", "the process exited with code 7")
    assert "48.0 MiB" in top.text()
    top.type("q")
    assert top.finish() == 0
    assert f"process {program.pid} exited with code 7" in top.text()


def test_a_killed_process_is_reported(terminal, held):
    program = held()
    top = terminal("top", program.pid)
    top.wait_for("48.0 MiB")
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait()
    top.wait_for("the process was killed")


def test_top_follows_a_process_through_exec(terminal, held):
    program = held()
    program.do("grow 100")
    top = terminal("top", program.pid)
    top.wait_for("100.0 MiB")
    program.ask("exec")
    program.read("ready")
    top.wait_until(lambda text: "48.0 MiB" in text and "100.0 MiB" not in text)


def state_of(pid: int) -> dict:
    """What a program, or another one, could notice about it."""
    process = Path(f"/proc/{pid}")
    status = (process / "status").read_text()
    fields = ("Threads", "SigBlk", "SigCgt", "TracerPid")
    return {
        "tasks": sorted(os.listdir(process / "task")),
        "descriptors": sorted(os.listdir(process / "fd")),
        **{name: re.search(rf"^{name}:\s*(.*)$", status, re.M)[1] for name in fields},
    }


def test_top_does_not_disturb_the_program(terminal, held):
    program = held()
    before = state_of(program.pid)
    top = terminal("top", program.pid)
    top.wait_for("48.0 MiB")
    during = state_of(program.pid)
    top.type("q")
    top.finish()
    assert before == during == state_of(program.pid)


def test_hostile_names_are_harmless(oomrec, terminal, preload, tmp_path):
    """Names of programs, threads, files and functions reach the terminal without escapes."""
    script = tmp_path / "evil\x1b]0;pwned\x07\x9b31m<script>.py"
    script.write_text(
        "import ctypes, sys, threading\n"
        "ctypes.CDLL(None).prctl(15, b't\\x1b]0;pw\\x07', 0, 0, 0)\n"
        "name = 'f\\x1b[31m\\x1b]52;c;cHduZWQ=\\x07\\u202e' + 'x' * 100000\n"
        "def f():\n    return bytearray(64 << 20)\n"
        "f = type(f)(f.__code__.replace(co_name=name, co_filename=sys.argv[0]), globals())\n"
        "if sys.version_info >= (3, 11):\n"
        "    f = type(f)(f.__code__.replace(co_qualname=name), globals())\n"
        "held = f()\n"
        "thread = threading.Thread(target=lambda: globals().update(more=f()))\n"
        "thread.start()\nthread.join()\n"
        "print('ready', flush=True)\nsys.stdin.read()\n"
    )
    program = Held(
        preload.start("python3", script, "\x1b]0;pwned\x07", env={"OOMREC_MODE": "exact"}, stdin=-1)
    )
    top = terminal("top", program.pid)
    top.wait_for("64.0 MiB", "evil")
    for keys, expected in [("2", "[functions]"), ("3", "[files]"), ("1\r", "Esc back"), ("\x1br", "which threads"), ("\x1bp", "which process")]:  # fmt: skip
        top.type(keys)
        top.wait_for(expected)
    top.type("\x1bq")
    top.finish()
    assert b"\x1b]" not in top.raw and b"\x9b31" not in top.raw and b"\x07" not in top.raw
    check("top", oomrec.json("top", program.pid))
    assert "\x1b" not in oomrec("top", program.pid).stdout
