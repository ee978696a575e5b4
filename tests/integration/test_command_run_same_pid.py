"""A container that starts again: its program has the pid that the killed one had, whose recording is still there."""

import signal

import pytest
from conftest import metadata
from watching import wait_for

pytestmark = pytest.mark.needs_pid_namespace

HOLDS = """
import os, sys, time
block = bytes(64 << 20)
if "refused" in sys.argv:
    try: bytearray(1 << 50)
    except MemoryError: pass
print(os.getpid(), flush=True)
time.sleep(60)
"""
NAMESPACE = ["unshare", "-fp", "--kill-child", "--mount-proc"]


@pytest.fixture
def in_namespace(plain, build_dir):
    """in_namespace(…) starts `oomrec run` of a Python script as the first process of a pid namespace."""

    def start(script: str, *words):
        run = [build_dir / "oomrec", "run", "--", "python3", "-c", script, *words]
        return plain.start(*NAMESPACE, *run)

    return start


@pytest.fixture
def killed_whole(plain, in_namespace):
    """killed_whole(…) is the pid of a program that was killed with its `oomrec run`."""

    def kill(*words) -> int:
        process = in_namespace(HOLDS, *words)
        pid = int(process.stdout.readline())
        if "refused" in words:  # its bundle is written while it goes on
            wait_for(lambda: list(plain.dump_dir.glob("oom_*/metadata.json")))
        process.kill()
        plain.finish(process)
        return pid

    return kill


def run_killed(plain, in_namespace, number: int) -> tuple[int, str]:
    """Runs a later program that is ended by this signal at once; returns its pid and stderr."""
    script = f"import os; print(os.getpid(), flush=True); os.kill(os.getpid(), {number})"
    run = plain.finish(in_namespace(script), exits=128 + number)
    return int(run.stdout), run.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_earlier_recording_is_not_of_this_death(
    oomrec, plain, killed_whole, in_namespace, number
):
    pid = killed_whole()
    (before,) = plain.session_dir.rglob("*.session")
    same, said = run_killed(plain, in_namespace, number)
    assert same == pid
    assert before.exists() and "64" not in said, said
    assert list(plain.dump_dir.glob("oom_*")) == []
    assert oomrec("recover", "--unknown").exit_code == 0
    (bundle,) = plain.dump_dir.glob("oom_*")
    shown = oomrec.json("show", bundle)
    assert shown["holders"][0]["bytes"] >= 64 << 20 and shown["verdict"]["code"] == "unknown"


def test_the_earlier_recording_survives_a_good_end(plain, killed_whole, in_namespace):
    killed_whole()
    (before,) = plain.session_dir.rglob("*.session")
    assert plain.finish(in_namespace("print(1)")).exit_code == 0
    assert before.exists()


def test_the_earlier_bundle_does_not_get_this_outcome(plain, killed_whole, in_namespace):
    killed_whole("refused")
    (bundle,) = plain.dump_dir.glob("oom_*")
    outcome = metadata(bundle)["outcome"]
    run_killed(plain, in_namespace, signal.SIGTERM)
    assert metadata(bundle)["outcome"] == outcome
