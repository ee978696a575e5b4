"""oomrec monitor: Memory Snapshot rows of the machine, a process or a GPU, from outside."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import signal
import time
from pathlib import Path

import pytest
from schemas import check
from watched_program import Program
from watching import wait_for

FAKE_NVML = "0:total=8G,used=3G,pid=123/500M;1:total=4G,used=1G"
COLUMNS = ["timestamp", "memory_used_mb", "memory_total_mb", "memory_percent", "gpu_id"]


def rows_of(path) -> list[dict]:
    rows = json.loads(path.read_text())
    check("monitor", rows)
    return rows


def test_rows_follow_a_recorded_process(oomrec, preload, tmp_path):
    program = Program(preload.start)
    began = time.time()
    monitor = oomrec.start(
        "monitor", program.pid, "--interval", "0.02", "--output", "rows.json", "--format", "json"
    )
    out = tmp_path / "rows.json"
    wait_for(lambda: out.exists() and rows_of(out))  # the file is valid JSON while it grows
    before = rows_of(out)[-1]["memory_used_mb"]
    program.do(48)
    wait_for(lambda: rows_of(out)[-1]["memory_used_mb"] >= before + 48)
    program.do("free")
    wait_for(lambda: rows_of(out)[-1]["memory_used_mb"] < before + 24)
    program.end()
    run = oomrec.finish(monitor, exits=0)
    rows = rows_of(out)
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times) and began - 1 <= times[0] and times[-1] <= time.time()
    for row in rows:
        assert row["gpu_id"] == -1
        share = 100 * row["memory_used_mb"] / row["memory_total_mb"]
        assert row["memory_percent"] == pytest.approx(share)
    assert f"({program.pid}) on the host: {len(rows)} samples" in run.stdout
    assert "  it exited with code 0\n" in run.stdout
    assert f"{len(rows)} rows in rows.json" in run.stdout


def test_a_table_has_the_columns_of_the_records(oomrec, tmp_path):
    run = oomrec("monitor", "--device", "cpu", "--duration", "0.3", "--output", "rows.csv", exits=0)
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS and 1 <= len(rows) <= 5
    total = int(Path("/proc/meminfo").read_text().split()[1]) / 1024
    assert 0 < float(rows[0]["memory_used_mb"]) < float(rows[0]["memory_total_mb"]) <= total + 1
    assert "memory of the machine: " in run.stdout and "  highest " in run.stdout


def test_rows_go_to_stdout_and_the_summary_to_stderr(oomrec):
    run = oomrec("monitor", "--device", "cpu", "--duration", "0.2", "--format", "json")
    check("monitor", run.json())
    assert "memory of the machine" in run.stderr


def test_a_process_that_is_not_recorded(oomrec, plain):
    program = Program(plain.start)
    run = oomrec("monitor", program.pid, "--duration", "0.2", "--format", "json")
    assert run.exit_code == 0 and 1 < run.json()[0]["memory_used_mb"] < 200


def test_a_gpu_is_the_default_if_present(oomrec, fake_gpu):
    env = {**fake_gpu, "FAKE_NVML": FAKE_NVML}
    words = ["monitor", "--duration", "0.1", "--format", "json"]
    row = oomrec(*words, env=env).json()[0]
    assert (row["gpu_id"], row["memory_used_mb"], row["memory_percent"]) == (0, 3072, 37.5)
    row = oomrec(*words, "--device", "cuda:1", env=env).json()[0]
    assert (row["gpu_id"], row["memory_total_mb"]) == (1, 4096)
    run = oomrec(*words, "--device", "5", env=env)
    assert run.exit_code == 2 and run.stderr.splitlines() == [
        "oomrec monitor: there is no device 5",
        "  There are 0 to 1; --device cpu is the host.",
    ]


@pytest.mark.parametrize(
    "words, exit_code, advice",
    [
        (["--device", "mps"], 2, "mps is not on Linux: give --device cpu, or cuda:0."),
        (["--device", "0"], 2, "NVML reports no GPU here: give --device cpu."),
        (["--output", "/nowhere/rows"], 2, "Name a file in a directory that you may write to"),
        (["--output", "/dev/full"], 2, "Is the disk behind it full, or the reader gone?"),
        (["999999999"], 1, "`oomrec ls --all` lists bundles and recordings"),
    ],
)
def test_a_mistake_gets_advice(oomrec, words, exit_code, advice):
    run = oomrec("monitor", "--duration", "0.1", *words)
    assert run.exit_code == exit_code and advice in run.stderr, str(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_rows(oomrec, tmp_path, number):
    monitor = oomrec.start("monitor", "--duration", "600", "--output", "rows.csv")
    out = tmp_path / "rows.csv"
    wait_for(lambda: out.exists() and out.read_text().count("\n") > 3)
    monitor.send_signal(number)
    run = oomrec.finish(monitor, exits=0)
    rows = out.read_text().splitlines()
    assert f"{len(rows) - 1} rows in rows.csv" in run.stdout
    assert all(len(row.split(",")) == 5 for row in rows)


def test_a_status_line_updates_on_a_terminal(oomrec):
    """It goes to stderr, and is erased before the summary."""
    ours, theirs = pty.openpty()
    run = oomrec("monitor", "--device", "cpu", "--duration", "0.3", stderr=theirs)
    os.close(theirs)
    read = []
    with contextlib.suppress(OSError):  # EIO: end of the terminal's output
        while text := os.read(ours, 10_000):
            read.append(text)
    os.close(ours)
    printed = b"".join(read).decode()
    assert run.exit_code == 0 and "\r" not in run.stdout
    assert " s  used " in printed and " % of " in printed and printed.count("\r") >= 2
    assert printed.endswith("\r\x1b[K")
