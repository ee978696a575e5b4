"""Programs of musl, a C library for which liboomrec.so is not made: they run undisturbed, and each command says so."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from watching import wait_for

pytestmark = pytest.mark.needs_program("musl-gcc")
MIB = 1 << 20
SOURCE = Path(__file__).resolve().parent.parent / "victims" / "beside_another_libc.c"
KINDS = {"dynamic": [], "static": ["-static"]}
WHY = {
    "dynamic": "does not use glibc, the only C library for which the recorder is made",
    "static": "is statically linked, and no library can be preloaded into it",
}
WORKED = "threads 1 1, child 3, dlsym 1\n"


@pytest.fixture
def program(tmp_path):
    def build(kind: str) -> Path:
        path = tmp_path / f"of_musl_{kind}"
        words = ["musl-gcc", "-O1", *KINDS[kind], "-o", path, SOURCE]
        subprocess.run(words, check=True, capture_output=True, timeout=300)
        return path

    return build


@pytest.mark.parametrize("kind", KINDS)
def test_run_says_that_it_is_not_recorded(oomrec, library, program, kind):
    """A static one, as dumb-init may be, passes the recorder on to what it starts."""
    path = program(kind)

    run = oomrec("run", "--", path)

    preload, told = {
        "dynamic": ("none", ""),
        "static": (library, ", which is in what it starts"),
    }[kind]
    assert (run.stdout, run.exit_code) == (WORKED + f"preload {preload}\n", 7), str(run)
    assert run.stderr == f"oomrec: {path} {WHY[kind]}; it runs without the recorder{told}\n"
    assert run.bundles() == [] and oomrec.sessions_left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_preload_by_hand_changes_nothing(preload, library, program, kind):
    """Threads, a fork, mappings and dlsym work; nothing is recorded."""
    run = preload(program(kind))

    assert (run.stdout, run.exit_code) == (WORKED + f"preload {library}\n", 7), str(run)
    assert run.stderr == ""
    assert list(preload.session_dir.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["exec", "fork", "spawn"])
def test_a_recorded_program_starts_it_without_the_library(preload, oomrec, program, kind, way):
    """Its parent's recording goes on, and has none of the child's blocks."""
    script = (
        "import os, subprocess, sys\n"
        "kept = bytearray(30_000_001)\n"
        "words = [sys.argv[1]]\n"
        "if sys.argv[2] == 'spawn':\n"
        "    code = os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)[1] >> 8\n"
        "elif sys.argv[2] == 'fork':\n"
        "    code = subprocess.run(words, preexec_fn=os.getpid).returncode\n"
        "else:\n"
        "    os.execv(words[0], words)\n"
        "print('ended with', code, flush=True)\n"
        "try:\n"
        "    bytearray(1 << 46)\n"
        "except MemoryError:\n"
        "    print('refused', flush=True)\n"
    )
    run = preload(sys.executable, "-c", script, program(kind), way)

    assert run.stdout.startswith(WORKED + "preload none\n"), str(run)
    if way == "exec":
        assert run.exit_code == 7 and run.bundles() == [], str(run)
        return
    assert run.stdout.endswith("ended with 7\nrefused\n"), str(run)
    holders = oomrec.json("show", run.only_bundle())["holders"]
    assert 30_000_001 <= holders[0]["bytes"] < 30_100_000


@pytest.mark.parametrize("kind", KINDS)
def test_track_watches_it(oomrec, plain, tmp_path, program, kind):
    process = plain.start(program(kind), "wait", stdin=subprocess.PIPE).once("ready")
    file = tmp_path / "events.json"
    track = oomrec.start("track", "--interval", "1", "--output", file, process.pid)

    def events() -> list[dict]:
        written = file.read_text() if file.exists() else ""  # not yet, perhaps
        return json.loads(written) if written else []

    def peak() -> int:
        return max(row["device_used_bytes"] for row in events())

    wait_for(events, 20)
    process.tell("600\n").once("did")
    wait_for(lambda: peak() > 0.9 * 600 * MIB, 20)
    process.stdin.close()
    process.wait(timeout=300)
    assert oomrec.finish(track).exit_code == 0
    # More than 100 MiB between two samples, however many there were meanwhile.
    assert "warning" in {row["event_type"] for row in events()}
    assert peak() < 640 * MIB


def test_attach_names_musl_and_what_works(oomrec, plain, program):
    process = plain.start(program("dynamic"), "wait", stdin=subprocess.PIPE).once("ready")

    run = oomrec("attach", process.pid, exits=2)
    assert "uses musl, whose functions oomrec does not observe" in run.stderr
    assert "oomrec track" in run.stderr
    os.kill(process.pid, signal.SIGKILL)
