"""oomrec top: figures as JSON and as text, and the screen, through a terminal of the test's own."""

import os
import re
import signal
from pathlib import Path

import pytest
from schemas import check
from virtual_terminal import VirtualTerminal

MIB = 1 << 20


class Held:
    """The victim, running: line by line it does what it is asked."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid
        self.read("ready")

    def read(self, expected: str) -> None:
        assert self.process.stdout.readline().decode().strip() == expected

    def ask(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def do(self, line: str) -> None:
        self.ask(line)
        self.read(f"did {line}")


@pytest.fixture
def held(preload, victim):
    """held("argument") is the victim, recorded exactly, with its blocks in place."""

    def start(*words, mode="exact") -> Held:
        return Held(
            preload.start(
                "python3", victim("python/holds.py"), *words,
                env={"OOMREC_MODE": mode}, stdin=-1,
            )
        )  # fmt: skip

    return start


@pytest.fixture
def terminal(oomrec, build_dir):
    """terminal("top", pid, columns=80, rows=24) is the command on a screen."""
    opened = []

    def start(*words, env=None, **options) -> VirtualTerminal:
        environment = {**oomrec.environment, **(env or {})}
        opened.append(
            VirtualTerminal(
                [build_dir / "oomrec", *words], environment, oomrec.directory, **options
            )
        )
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def row_of(document: dict, function: str) -> dict:
    return next(row for row in document["rows"] if row["function"] == function)


def test_figures_are_those_of_the_program(oomrec, held):
    program = held()

    by_function = oomrec.json("top", "--by", "function", program.pid)
    check("top", by_function)
    assert by_function["pid"] == program.pid and by_function["ended"] is None
    large = row_of(by_function, "keep_large")
    assert 48 * MIB <= large["own_bytes"] < 49 * MIB and large["stack"] is None
    main = row_of(by_function, "main")
    assert main["total_bytes"] >= 56 * MIB > main["own_bytes"]
    assert by_function["moment"]["rss_bytes"] > 56 * MIB
    assert (
        by_function["moment"]["live_bytes"]["heap"] + by_function["moment"]["live_bytes"]["map"]
        >= 72 * MIB
    )

    by_stack = oomrec.json("top", "--top", "3", program.pid)
    check("top", by_stack)
    first = by_stack["rows"][0]
    assert len(by_stack["rows"]) == 3 < by_stack["row_count"]
    assert first["function"] == "keep_large" and first["line"]
    assert [f["function"] for f in first["stack"] if f["kind"] == "python"][:2] == [
        "keep_large", "main",
    ]  # fmt: skip

    by_file = oomrec.json("top", "--by", "file", program.pid)
    assert by_file["rows"][0]["file"].endswith("holds.py")
    assert by_file["rows"][0]["own_bytes"] >= 72 * MIB


def test_figures_follow_the_program(oomrec, held):
    """Snapshots, one a line: it grows between two of them, and ends at last."""
    program = held()
    top = oomrec.start("top", "--json", "-n", "0", "--interval", "0.1", program.pid)
    lines = iter(top.stdout.readline, b"")
    import json

    first = json.loads(next(lines))
    program.do("grow 32")
    for line in lines:
        now = json.loads(line)
        if now["held_bytes"] >= first["held_bytes"] + 32 * MIB:
            break
    assert max(row["growth_bytes_per_s"] for row in now["rows"]) > MIB
    program.ask("end 7")
    last = [json.loads(line) for line in lines][-1]
    assert last["ended"] == "exited with code 7"
    assert top.wait(30) == 0


def test_a_process_is_found_by_its_program(oomrec, held):
    program = held()
    by_script = oomrec.json("top", "holds.py")
    youngest = oomrec.json("top")
    assert by_script["pid"] == youngest["pid"] == program.pid
    other = held()
    run = oomrec("top", "holds.py")
    assert run.exit_code == 2
    assert f"{program.pid} (" in run.stderr and f"{other.pid} (" in run.stderr


@pytest.mark.parametrize("words", [["top", "nobody-is-called-so"], ["top", "999999999"]])
def test_no_such_process_is_said_in_two_lines(oomrec, words):
    run = oomrec(*words)
    assert run.exit_code == 1 and run.stdout == ""
    assert len(run.stderr.splitlines()) == 2


def test_a_process_that_is_not_recorded_is_said_to_be_so(oomrec):
    run = oomrec("top", os.getpid())
    assert run.exit_code == 1
    assert f"process {os.getpid()} is not recorded" in run.stderr


def test_a_snapshot_is_plain_text(oomrec, held):
    run = oomrec("top", held().pid)
    assert run.exit_code == 0
    assert "\x1b" not in run.stdout
    assert all(len(line) <= 100 for line in run.stdout.splitlines())
    assert "▾own" in run.stdout and "holds.py:" in run.stdout
    in_ascii = oomrec("top", "--once", env={"LC_ALL": "C"})
    assert in_ascii.stdout.isascii() and "holds.py:" in in_ascii.stdout


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


def test_keys(terminal, held):
    """Each does what the page of keys says."""
    program = held("dataloader_1")
    top = terminal("top", program.pid, columns=110, rows=30)
    top.wait_for("▾own", "keep_large")
    top.type("?")
    top.wait_for("sort by growth", "which threads")
    top.type("\x1b")
    top.wait_for("[stacks]")

    top.type("2t")
    text = top.wait_for("[functions]", "▾total")
    rows = text[text.index("▾total") :]
    assert rows.index("main  holds.py") < rows.index("keep_large  holds.py")
    top.type("3")
    top.wait_for("[files]", "/holds.py")
    top.type("2o/SMALL\r")
    top.wait_until(lambda text: "keep_small" in text and "keep_large" not in text)
    assert 'with "SMALL"' in top.text()
    top.type("\x1b")
    top.wait_for("keep_large", "keep_small")

    top.type("r\x1b[B\x1b[B")
    text = top.wait_for("which threads", "dataloader_")
    lines = text.splitlines()
    chosen = next(i for i, line in enumerate(lines) if line.strip() == "dataloader_") - 1
    top.type("\x1b[H" + "\x1b[B" * chosen + "\r")
    top.wait_until(lambda text: "keep_in_thread" in text and "keep_large" not in text)
    top.type("r\x1b[H\r")
    top.wait_for("all threads", "keep_large")

    top.type("s\x1b[B\r")
    top.wait_until(lambda text: " heap · " in text or " map · " in text)
    top.type("s\x1b[H\r1")
    top.wait_for("all spaces", "[stacks]")
    top.type("\r")
    top.wait_for("holds.py:", "Esc goes back", "main")
    top.type("\x1b ")
    top.wait_for("paused")
    program.do("grow 300")
    top.type("g")
    assert "300.0 MiB" not in top.wait_for("▾growth")
    top.type(" ")
    top.wait_for("300.0 MiB")
    top.type("f")
    top.wait_for("python frames")
    top.type("f")
    top.wait_for("native frames")
    top.type("p")
    top.wait_for("which process", str(program.pid))
    top.type("\x1bq")
    assert top.finish() == 0


def test_the_screen_follows_the_terminals_size(terminal, held):
    top = terminal("top", held().pid, columns=80, rows=24)
    top.wait_for("live", "q quit")
    top.resize(60, 12)
    top.wait_until(lambda text: "──" not in text and text.splitlines()[11].startswith(" q quit"))
    top.resize(120, 40)
    top.wait_until(lambda text: "──" in text and text.splitlines()[39].startswith(" q quit"))


def test_without_colour(terminal, held):
    """NO_COLOR: nothing but bold, dim and reversed; a terminal that can do nothing: text, once."""
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


def test_the_end_of_the_process_is_told(terminal, held):
    program = held()
    top = terminal("top", program.pid)
    top.wait_for("48.0 MiB")
    program.ask("end 7")
    top.wait_for("ended", "the process exited with code 7")
    assert "48.0 MiB" in top.text()
    top.type("q")
    assert top.finish() == 0
    assert f"process {program.pid} exited with code 7" in top.text()


def test_a_killed_process_is_told(terminal, held):
    program = held()
    top = terminal("top", program.pid)
    top.wait_for("48.0 MiB")
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait()
    top.wait_for("the process was killed")


def test_a_process_that_becomes_another_program_is_followed(terminal, held):
    program = held()
    program.do("grow 100")
    top = terminal("top", program.pid)
    top.wait_for("100.0 MiB")
    program.ask("exec")
    program.read("ready")
    top.wait_until(lambda text: "48.0 MiB" in text and "100.0 MiB" not in text)


def state_of(pid: int) -> dict:
    """What a program could see of itself, and others of it."""
    process = Path(f"/proc/{pid}")
    status = (process / "status").read_text()
    fields = ("Threads", "SigBlk", "SigCgt", "TracerPid", "State")
    return {
        "tasks": sorted(os.listdir(process / "task")),
        "descriptors": sorted(os.listdir(process / "fd")),
        **{name: re.search(rf"^{name}:\s*(.*)$", status, re.M)[1] for name in fields},
    }


def test_the_program_cannot_notice(terminal, held):
    program = held()
    before = state_of(program.pid)
    top = terminal("top", program.pid)
    top.wait_for("48.0 MiB")
    during = state_of(program.pid)
    top.type("q")
    top.finish()
    assert before == during == state_of(program.pid)


def test_hostile_names_are_harmless(oomrec, terminal, preload, tmp_path):
    """What a program is called, its threads, files and functions, reaches no terminal as a command."""
    script = tmp_path / "evil\x1b]0;pwned\x07\x9b31m<script>.py"
    script.write_text(
        "import ctypes, sys\n"
        "ctypes.CDLL(None).prctl(15, b't\\x1b]0;pw\\x07', 0, 0, 0)\n"
        "name = 'f\\x1b[31m\\x1b]52;c;cHduZWQ=\\x07\\u202e' + 'x' * 100000\n"
        "def f():\n    return bytearray(64 << 20)\n"
        "f = type(f)(f.__code__.replace(co_name=name, co_filename=sys.argv[0]), globals())\n"
        "if sys.version_info >= (3, 11):\n"
        "    f = type(f)(f.__code__.replace(co_qualname=name), globals())\n"
        "held = f()\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )
    program = Held(
        preload.start("python3", script, "\x1b]0;pwned\x07", env={"OOMREC_MODE": "exact"}, stdin=-1)
    )
    top = terminal("top", program.pid)
    top.wait_for("64.0 MiB", "evil")
    for keys, expected in [("2", "[functions]"), ("3", "[files]"), ("1\r", "Esc goes"), ("\x1br", "which threads"), ("\x1bp", "which process")]:  # fmt: skip
        top.type(keys)
        top.wait_for(expected)
    top.type("\x1bq")
    top.finish()
    assert b"\x1b]" not in top.raw and b"\x9b31" not in top.raw and b"\x07" not in top.raw
    check("top", oomrec.json("top", program.pid))
    assert "\x1b" not in oomrec("top", program.pid).stdout
