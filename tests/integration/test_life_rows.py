"""OOMREC_LIFE_ROWS: rows of processes that ended well, written by those who see their end from outside."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
import schemas
from object_store import rows
from watching import Watch, wait_for

MIB = 1 << 20
QUIET = {"MEMORY_PRESSURE_WATCH": "/dev/null"}
ALL = {"OOMREC_LIFE_ROWS": "1"}
# Holds so many MiB, and allocates for a while, so that the recorder reads what is resident; waits until its launcher has
# mapped its recording ("run") or for so long; then ends with this exit code, or once its input is closed.
LIVES = """
import os, sys, time
held = bytearray(b"x") * (int(sys.argv[1]) << 20)
for _ in range(20):
    bytearray(1 << 20)
    time.sleep(0.02)
def is_mapped():
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/maps") as maps:
            if f"-{os.getpid()}-" in maps.read():
                return True
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    return False
print("ready", flush=True)
if sys.argv[2] == "run":
    until = time.monotonic() + 40
    while not is_mapped() and time.monotonic() < until:
        time.sleep(0.05)
time.sleep(1 if sys.argv[2] == "run" else float(sys.argv[2]))
if sys.argv[3] == "input":
    sys.stdin.read()
sys.exit(0 if sys.argv[3] == "input" else int(sys.argv[3]))
"""


def words(mib=40, waits="run", end="0") -> list[str]:
    return ["python3", "-S", "-c", LIVES, str(mib), str(waits), end]


def lives_in(dumps: Path) -> list[dict]:
    found = [json.loads(file.read_text()) for file in sorted(dumps.glob("lives/*.json"))]
    for row in found:
        schemas.check("row", row)
    return found


def check_life(row: dict, weight: float = 1) -> None:
    assert (row["kind"], row["outcome"], row["life_weight"]) == ("life", "exited 0", weight)
    assert 40 * MIB <= row["need_bytes"] == row["peak_bytes"] < 200 * MIB
    assert not row["need_is_bound"] and row["run_seconds"] >= 1
    assert row["holders"] == row["timeline_ms"] == [] and row["signature"] is None
    assert len(json.dumps(row, separators=(",", ":"))) < 2500


@pytest.fixture
def watched(preload, oomrec):
    """watched(env…) is a watch, and start(words…) a process that it sees."""
    watches = []

    def watch(*words, **env):
        watches.append(Watch(oomrec, *words, **QUIET, **env))
        return watches[-1]

    yield watch
    for each in watches:
        each.stop()


def started(preload, watching, command, **env) -> subprocess.Popen:
    process = preload.start(*command, stdin=subprocess.PIPE, env=env).once("ready")
    wait_for(lambda: watching.sees(process.pid))
    return process


def test_a_run_that_ends_well_leaves_its_need(oomrec):
    env = {**ALL, "OTEL_SERVICE_NAME": "shop"}
    oomrec("run", "--", *words(), env=env, exits=0)
    (row,) = lives_in(oomrec.dump_dir)
    check_life(row)
    assert row["service"] == "shop" and row["program"].startswith("python3")


@pytest.mark.parametrize(
    "command, share",
    [
        (words(end="3"), "1"),
        (["sleep", "1.6"], "1"),  # too small
        (words(waits=1), "0"),
        (words(waits=1), ""),
        (["sh", "-c", "kill -9 $$"], "1"),
    ],
)
def test_other_ends_leave_none(oomrec, command, share):
    oomrec("run", "--", *command, env={"OOMREC_LIFE_ROWS": share})
    assert lives_in(oomrec.dump_dir) == []


def test_a_short_one_leaves_none(oomrec):
    """Under load it may take a second to start."""
    assert oomrec("run", "--", *words(waits=0), env=ALL).exit_code == 0
    assert all(row["run_seconds"] >= 1 for row in lives_in(oomrec.dump_dir))


def test_a_killed_one_leaves_a_bundle_and_no_life(oomrec, preload, watched):
    watching = watched(**ALL)
    process = started(preload, watching, words(waits=1, end="input"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: list(preload.dump_dir.glob("oom_*/manifest.json")))
    assert lives_in(preload.dump_dir) == []


def test_workers_of_a_run_have_rows_of_their_own(oomrec, tmp_path):
    (tmp_path / "lives.py").write_text(LIVES)
    start = "import subprocess, sys; sys.exit(max(p.wait() for p in [subprocess.Popen([sys.executable, '-S', 'lives.py', m, 'run', '0']) for m in ('40', '80')]))"
    oomrec("run", "--", "python3", "-S", "-c", start, env=ALL, exits=0)
    needs = sorted(row["need_bytes"] // MIB for row in lives_in(oomrec.dump_dir))
    assert len(needs) == 2 and needs[1] >= 80 > needs[0] >= 40, needs  # the parent is small


def test_a_watch_sees_the_end_of_a_process_without_our_hooks(oomrec, preload, watched):
    """Its recording is gone by then: the process has deleted it."""
    watching = watched(**ALL)
    process = started(preload, watching, words(waits=1, end="input"))
    process.stdin.close()
    assert process.wait() == 0
    wait_for(lambda: lives_in(preload.dump_dir))
    (row,) = lives_in(preload.dump_dir)
    check_life(row)
    (exported,) = oomrec("export", "--format", "row", preload.dump_dir).stdout.splitlines()
    assert json.loads(exported) == row


def test_who_is_chosen_depends_on_the_id_alone(oomrec, preload, watched):
    """Two observers choose the same, and their rows are one."""
    watching = watched(OOMREC_LIFE_ROWS="0.999999999")
    oomrec("run", "--", *words(), env={"OOMREC_LIFE_ROWS": "0.999999999"}, exits=0)
    assert watching.stop().exit_code == 0
    (row,) = lives_in(oomrec.dump_dir)
    assert row["life_weight"] == 1 and row["kind"] == "life"
    # Nobody maps the recording of one that is not chosen.
    oomrec("run", "--", *words(waits=1), env={"OOMREC_LIFE_ROWS": "1e-12"}, exits=0)
    assert len(lives_in(oomrec.dump_dir)) == 1


def test_a_dump_at_exit_is_a_life_already(oomrec):
    oomrec("run", "--dump-at-exit", "--", *words(), env=ALL, exits=0)
    (row,) = oomrec("export", "--format", "row", oomrec.dump_dir).stdout.splitlines()
    assert json.loads(row)["kind"] == "life" and lives_in(oomrec.dump_dir) == []


def test_a_dump_at_the_exit_after_a_failure_is_none(oomrec):
    code = "try: bytearray(1 << 46)\nexcept MemoryError: bytearray(40 << 20)"
    run = oomrec("run", "--dump-at-exit", "--", "python3", "-S", "-c", code)
    exported = oomrec("export", "--format", "row", oomrec.dump_dir).stdout.splitlines()
    assert run.exit_code == 0 and "life" not in {json.loads(row)["kind"] for row in exported}


def test_lives_are_shipped_and_leave_the_spool(oomrec, preload, watched, tmp_path):
    store = tmp_path / "store"
    watching = watched("--ship", f"file://{store}", **ALL)
    process = started(preload, watching, words(waits=1, end="input"))
    process.stdin.close()
    assert process.wait() == 0
    wait_for(lambda: rows(store))
    ((name, row),) = rows(store).items()
    check_life(row)
    assert name == f"{row['host']}-life-{row['death_id']}.json"
    wait_for(lambda: not list(preload.dump_dir.glob("lives/*")))


def test_recover_ships_what_a_run_has_left(oomrec, tmp_path):
    store = tmp_path / "store"
    assert oomrec("run", "--", *words(), env=ALL).exit_code == 0
    (row,) = lives_in(oomrec.dump_dir)
    oomrec("recover", "--quiet", "--ship", f"file://{store}", exits=0)
    assert list(rows(store).values()) == [row] and lives_in(oomrec.dump_dir) == []


def test_a_store_that_is_down_loses_no_life(oomrec, tmp_path):
    assert oomrec("run", "--", *words(), env=ALL).exit_code == 0
    down = oomrec("recover", "--ship", "http://127.0.0.1:1/{name}", "--ship-timeout", "1")
    assert down.exit_code == 1 and "1 bundle or life is left" in down.stderr, str(down)
    assert len(lives_in(oomrec.dump_dir)) == 1


def test_lives_are_bounded(oomrec):
    """The oldest make room."""
    assert oomrec("run", "--", *words(), env=ALL).exit_code == 0
    directory = oomrec.dump_dir / "lives"
    (made,) = directory.iterdir()
    for number in range(1005):
        (directory / f"{number:016x}.json").write_text(made.read_text())
    assert oomrec("run", "--", *words(), env=ALL).exit_code == 0
    left = {file.name for file in directory.glob("*.json")}
    assert len(left) == 1000 and made.name not in left


def test_a_share_that_is_none_is_refused(oomrec):
    for share in ("2", "-1", "10%", "nan"):
        run = oomrec("run", "--", "true", env={"OOMREC_LIFE_ROWS": share})
        assert run.exit_code == 2 and f"OOMREC_LIFE_ROWS={share}" in run.stderr, str(run)
