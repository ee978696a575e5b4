"""oomrec ended: who ends a process tells its recording why."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from python_programs import package_environment

HOLDS = """
import signal, sys, time
if "exits" in sys.argv: signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
kept = bytearray(b"x") * (48 << 20)
print("held", flush=True)
time.sleep(300)
"""
TEXT = "task parse used 3.1 GiB of 3.0 GiB"


@pytest.fixture
def worker(preload, tmp_path):
    """worker(*WORDS): a recorded process far from every limit, whose parent is not recorded."""
    (tmp_path / "holds.py").write_text(HOLDS)

    def start(*words) -> subprocess.Popen:
        process = preload.start(sys.executable, "holds.py", *words).once("held")
        return process

    return start


def end(process: subprocess.Popen, number: int) -> None:
    process.send_signal(number)
    process.wait()


def recovered(oomrec) -> dict:
    (bundle,) = oomrec.json("recover")["bundles"]
    return oomrec.json("show", bundle)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("told", ["before", "after"])
def test_memory_was_the_reason(oomrec, worker, number, told):
    process = worker()
    tell = ("ended", process.pid, "--by", "Ray", "--text", TEXT)
    if told == "before":
        assert oomrec(*tell).exit_code == 0
    end(process, number)
    if told == "after":
        assert oomrec(*tell).exit_code == 0
    shown = recovered(oomrec)
    verdict = shown["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("user_space_oom_kill", "proven")
    assert "was killed by Ray, which said that memory was the reason" in verdict["summary"]
    assert f"Ray: {TEXT}" in verdict["evidence"]
    assert shown["holders"][0]["bytes"] >= 48 << 20


@pytest.mark.parametrize("reason", ["memory", "other"])
def test_told_after_the_bundle(oomrec, worker, reason):
    """A watcher was faster: its bundle is changed, in every view of it."""
    process = worker()
    end(process, signal.SIGKILL)
    (bundle,) = oomrec.json("recover", "--unknown")["bundles"]
    assert oomrec.json("show", bundle)["verdict"]["code"] in ("unknown", "killed_externally")
    oomrec("ended", process.pid, "--by", "Ray", "--reason", reason, "--text", TEXT, exits=0)
    code = "user_space_oom_kill" if reason == "memory" else "killed_externally"
    verdict = oomrec.json("show", bundle)["verdict"]
    assert (verdict["code"], verdict["certainty"]) == (code, "proven")
    assert f"Ray: {TEXT}" in verdict["evidence"]
    assert [row["verdict"] for row in oomrec.json("ls")["bundles"]] == [code]
    row = oomrec("export", bundle, "--format", "row")
    assert json.loads(row.stdout)["verdict"] == code


def test_told_where_its_bundle_is_not(oomrec, worker):
    process = worker()
    end(process, signal.SIGKILL)
    (bundle,) = oomrec.json("recover", "--unknown")["bundles"]
    oomrec.environment["OOMREC_DUMP_DIR"] = str(Path(bundle).parent / "elsewhere")
    told = oomrec("ended", process.pid, "--by", "Ray")
    assert told.exit_code == 1 and "neither a recording nor a bundle" in told.stderr


def test_a_worker_that_exits_at_sigterm(oomrec, worker):
    process = worker("exits")
    assert oomrec("ended", process.pid, "--by", "Dask", "--text", TEXT).exit_code == 0
    end(process, signal.SIGTERM)
    assert process.returncode == 3
    verdict = recovered(oomrec)["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("user_space_oom_kill", "proven")
    assert "was ended by Dask, which said that memory was the reason" in verdict["summary"]


def test_all_dead_processes_of_a_job(oomrec, preload, worker):
    """Those that were recorded with this --session-dir: not one that lives, nor one of another directory."""
    ended, alive = worker(), worker()
    directory = preload.directory / "elsewhere"
    preload.environment["OOMREC_SESSION_DIR"] = str(directory)
    other = worker()
    end(ended, signal.SIGKILL)
    end(other, signal.SIGKILL)
    oomrec("ended", "--session-dir", f"{preload.session_dir}/", "--by", "Slurm", exits=0)
    end(alive, signal.SIGKILL)
    assert recovered(oomrec)["process"]["pid"] == ended.pid
    gone = oomrec("ended", "--session-dir", preload.directory, "--by", "Slurm")
    assert gone.exit_code == 1 and "no dead process left a recording in" in gone.stderr


def test_all_dead_processes_of_a_job_after_their_bundles(oomrec, preload, worker):
    """The bundle of a process with another --session-dir stays as it was."""
    processes = [worker(), worker()]
    preload.environment["OOMREC_SESSION_DIR"] = (
        "elsewhere"  # from the directory in which it started
    )
    processes.append(worker())
    for process in processes:
        end(process, signal.SIGKILL)
    bundles = oomrec.json("recover", "--unknown")["bundles"]
    oomrec.environment["OOMREC_SESSION_DIR"] = str(preload.directory / "elsewhere")
    bundles += oomrec.json("recover", "--unknown")["bundles"]
    told = oomrec("ended", "--session-dir", preload.session_dir, "--by", "Slurm", "--text", TEXT)
    assert told.exit_code == 0, str(told)

    def told_by_slurm() -> list[bool]:
        evidence = [oomrec.json("show", bundle)["verdict"]["evidence"] for bundle in bundles]
        return [f"Slurm: {TEXT}" in lines for lines in evidence]

    assert sorted(told_by_slurm()) == [False, True, True]
    directory = preload.directory / "elsewhere"
    assert (
        oomrec("ended", "--session-dir", directory, "--by", "Slurm", "--text", TEXT).exit_code == 0
    )
    assert told_by_slurm() == [True, True, True]


def test_another_reason(oomrec, worker):
    process = worker()
    words = ("--by", "the autoscaler", "--reason", "other", "--text", "the node is drained")
    assert oomrec("ended", process.pid, *words).exit_code == 0
    end(process, signal.SIGKILL)
    verdict = recovered(oomrec)["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("killed_externally", "proven")
    assert "the autoscaler: the node is drained" in verdict["evidence"]


def test_nobody_told(oomrec, worker):
    """The negative control: nothing points to memory."""
    end(worker(), signal.SIGKILL)
    done = oomrec("recover", "--json")
    assert '"left": 1' in done.stdout, str(done)


def test_from_python(oomrec, plain, worker, tmp_path, build_dir):
    process = worker()
    script = tmp_path / "tells.py"
    script.write_text(
        "import oomrec, sys\n"
        f"print(oomrec.ended(int(sys.argv[1]), 'Ray', {TEXT!r}), oomrec.ended(999999999, 'Ray'))\n"
    )
    told = plain(sys.executable, script, process.pid, env=package_environment(build_dir))
    assert told.stdout.splitlines()[-1] == "True False", str(told)
    end(process, signal.SIGKILL)
    assert recovered(oomrec)["verdict"]["certainty"] == "proven"


def test_mistakes(oomrec):
    gone = oomrec("ended", "999999999", "--by", "Ray")
    assert gone.exit_code == 1 and "neither a recording nor a bundle" in gone.stderr
    assert oomrec("ended", "4711").exit_code == 2
    assert oomrec("ended", "--by", "Ray").exit_code == 2
    assert oomrec("ended", "4711", "--by", "Ray", "--reason", "moon").exit_code == 2
