"""oomrec top without a screen: figures as JSON and as text, and the choice of the process."""

import json
import os
import shutil

import pytest
from schemas import check

MIB = 1 << 20


def row_of(document: dict, function: str) -> dict:
    return next(row for row in document["rows"] if row["function"] == function)


def test_figures_match_the_program(oomrec, held):
    program = held()

    by_function = oomrec.json("top", "--by", "function", "--top", "1000", program.pid)
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
    """One snapshot per line: the program grows between two of them, and then ends."""
    program = held()
    top = oomrec.start("top", "--json", "-n", "0", "--interval", "0.1", program.pid)
    lines = iter(top.stdout.readline, b"")
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


def test_a_process_is_found_by_its_program(oomrec, held, victim, tmp_path):
    """By the script's name, if only one process has it."""
    script = tmp_path / f"holds_{os.getpid()}.py"
    shutil.copy(victim("python/holds.py"), script)
    program = held(script)
    assert oomrec.json("top", script.name)["pid"] == program.pid
    other = held(script)
    run = oomrec("top", script.name, exits=2)
    assert f"{program.pid} (" in run.stderr and f"{other.pid} (" in run.stderr


@pytest.mark.needs_pid_namespace
def test_the_default_is_the_youngest_process(apart):
    run = apart("recorded sleep 100; recorded sleep 200; sleep 300 &\noomrec top --json")
    result = run.json()
    check("top", result)
    assert result["arguments"] == ["sleep", "200"], str(run)


@pytest.mark.parametrize("words", [["top", "nobody-is-called-so"], ["top", "999999999"]])
def test_no_such_process_prints_two_lines(oomrec, words):
    run = oomrec(*words)
    assert run.exit_code == 1 and run.stdout == ""
    assert len(run.stderr.splitlines()) == 2


def test_an_unrecorded_process_is_reported(oomrec):
    run = oomrec("top", os.getpid(), exits=1)
    assert f"process {os.getpid()} is not recorded" in run.stderr
    assert f"oomrec attach {os.getpid()}" in run.stderr


def test_a_snapshot_is_plain_text(oomrec, held):
    program = held()
    run = oomrec("top", program.pid, exits=0)
    assert "\x1b" not in run.stdout
    assert all(len(line) <= 100 for line in run.stdout.splitlines())
    assert "▾own" in run.stdout and "holds.py:" in run.stdout
    in_ascii = oomrec("top", "--once", program.pid, env={"LC_ALL": "C"})
    assert in_ascii.stdout.isascii() and "holds.py:" in in_ascii.stdout
