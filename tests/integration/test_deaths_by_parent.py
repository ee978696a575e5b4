"""Workers that their own parent ended by a signal: for their memory, or for another reason."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from conftest import full, written
from python_programs import line_of
from watching import wait_for
from ways import WAYS

pytestmark = pytest.mark.usefixtures("without_warning", "calm_machine")
MIB = 1 << 20
IN_ONE_WAY = ["run", *map(full, WAYS[1:])]  # another case takes all


@pytest.fixture
def watches(victim):
    """The words of a parent that ends its worker at 96 MiB."""
    return [sys.executable, victim("python/watches_worker.py")]


def verdict_in(bundle: Path) -> str:
    return json.loads((bundle / "manifest.json").read_text())["verdict"]


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize(
    "way, how",
    [
        *((way, "SIGTERM") for way in WAYS),
        ("run", "SIGKILL"),
        *(full(way, "SIGKILL") for way in WAYS[1:]),
    ],
)
def test_at_the_limit_among_the_parents_arguments(oomrec, recorded, watches, way, how):
    run = recorded(way, *watches, how, "--memory-limit=100MB", exits=0)
    bundle = run.only_bundle()
    shown = oomrec.json("show", bundle)
    verdict = shown["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("terminated_by_parent", "likely"), verdict
    assert shown["outcome"] == f"signal {signal.Signals[how].value}"
    assert f"was killed by {how} from its parent, which ends workers" in verdict["summary"]
    line = line_of(watches[-1], "# ends it here")
    evidence = verdict["evidence"][0]
    assert evidence.startswith(
        f"its parent {shown['process']['ppid']} sent {how} from watches_worker.py:{line} end when it had "
    )
    assert evidence.endswith("% of the parent's --memory-limit 100MB")
    assert shown["holders"][0]["bytes"] >= 64 * MIB
    assert any(
        frame["line"] == line_of(watches[-1], "# grows here")
        for frame in shown["holders"][0]["stack"]
    )
    assert "--memory-limit" in oomrec("show", bundle).stdout  # the advice
    assert oomrec.sessions_left() == []


@pytest.mark.parametrize("arguments", [[], ["--memory-limit=4GB"], ["--memory-limit=auto"]])
@pytest.mark.parametrize("way", IN_ONE_WAY)
def test_far_from_every_limit(oomrec, recorded, watches, way, arguments):
    """The parent may end a large worker for any reason: as the end of a pool, it leaves nothing."""
    run = recorded(way, *watches, "SIGTERM", *arguments, exits=0)
    assert run.bundles() == [] and oomrec.sessions_left() == []


@pytest.mark.parametrize("way", WAYS)
def test_sigkill_far_from_every_limit(oomrec, recorded, watches, way):
    """Not for memory, and the evidence has the sender."""
    run = recorded(way, *watches, "SIGKILL")
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "killed_externally", shown["verdict"]
    sender = f"its parent {shown['process']['ppid']} sent SIGKILL from watches_worker.py:"
    assert any(line.startswith(sender) for line in shown["verdict"]["evidence"])


def verdicts_of(oomrec, run):
    return [oomrec.json("show", bundle)["verdict"] for bundle in run.bundles()]


@pytest.mark.parametrize("way", ["run", "recover"])
def test_a_limit_that_only_the_parent_knows(oomrec, recorded, victim, way):
    """The first worker's end shows nothing. The second is ended from the same line at the same size, and was growing."""
    run = recorded(way, sys.executable, victim("python/supervises.py"), "limit", exits=0)
    first, second = sorted(verdicts_of(oomrec, run), key=lambda verdict: verdict["code"])
    assert (first["code"], first["certainty"]) == ("killed_externally", "likely"), first
    assert "from its parent, for a reason that is not known" in first["summary"]
    assert (second["code"], second["certainty"]) == ("terminated_by_parent", "possible"), second
    assert "possibly at a limit of the parent's own" in second["summary"]
    assert any(" and was growing; it had ended " in line for line in second["evidence"])


@pytest.mark.parametrize("why", ["timeout", "group"])
def test_workers_of_one_size_that_are_ended_for_another_reason(oomrec, recorded, victim, why):
    """They hang, or are ended together: neither blamed on memory nor said to be innocent."""
    run = recorded("run", sys.executable, victim("python/supervises.py"), why, exits=0)
    for verdict in verdicts_of(oomrec, run):
        assert (verdict["code"], verdict["certainty"]) == ("killed_externally", "likely"), verdict
        assert "not for lack of memory" not in verdict["summary"]


def test_a_timeout_is_known(oomrec, recorded):
    """`timeout` has one reason only: memory is denied."""
    hold = "import time; x = bytearray(b'x') * (24 << 20); time.sleep(60)"
    run = recorded("run", "timeout", "2", sys.executable, "-c", hold)
    (verdict,) = verdicts_of(oomrec, run)
    assert "and not for lack of memory" in verdict["summary"], verdict
    assert any(line.endswith(": its time was up") for line in verdict["evidence"]), verdict


def test_a_small_worker(oomrec, recorded):
    """An ordinary end by subprocess, with a limit that no process is near."""
    # It answers first: a process that ends while its recording is being made leaves an empty one for a while.
    script = (
        "import subprocess; p = subprocess.Popen('cat', stdin=-1, stdout=-1); p.stdin.write(b'a\\n'); p.stdin.flush();"
        " p.stdout.readline(); p.terminate(); p.wait()"
    )
    run = recorded("run", sys.executable, "-c", script, "--memory-limit", "1GB")
    assert run.exit_code == 0 and run.bundles() == [] and oomrec.sessions_left() == []


def test_a_parent_of_another_program(oomrec, recorded):
    """A shell ends a program that holds 24 MiB: a bundle, and memory is not blamed."""
    hold = "import sys, time; x = bytearray(b'x') * (24 << 20); print(flush=True); time.sleep(60)"
    script = '"$0" -c "$1" > fifo & read -r ready < fifo; kill $!; wait $!; exit 0'
    run = recorded("run", "sh", "-c", f"mkfifo fifo; {script}", sys.executable, hold, exits=0)
    verdict = oomrec.json("show", run.only_bundle())["verdict"]
    assert verdict["code"] == "killed_externally"
    assert " sent SIGTERM when it had " in " ".join(verdict["evidence"])


@pytest.mark.parametrize("way", ["run", "recover"])
def test_a_signal_from_somebody_else(oomrec, preload, watches, way):
    """At the parent's limit, but the parent did not send it."""
    words = [*watches, "waits", "--memory-limit=100MB"]
    runner, words = (oomrec, ["run", "--", *words]) if way == "run" else (preload, words)
    process = runner.start(*words)
    worker = int(process.stdout.readline())
    wait_for(lambda: resident(worker) > 96 * MIB)
    os.kill(worker, signal.SIGTERM)
    run = runner.finish(process)
    oomrec("recover")
    assert run.exit_code == 0, str(run)
    codes = {verdict_in(bundle) for bundle in run.bundles()}
    assert "terminated_by_parent" not in codes


@pytest.mark.needs_cgroup_write
def test_near_the_cgroups_limit(oomrec, recorded, watches, cgroup):
    """A limit of the kernel's is near: memory may be the reason, or not.

    Near is a twentieth of it, and what three interpreters and their files take varies by that: so several limits.
    """
    for limit in ("120M", "123M", "126M", "129M", "132M"):
        run = recorded("run", *watches, "SIGTERM", preexec_fn=cgroup(limit).enter)
        ended = [each for each in run.bundles() if verdict_in(each) == "terminated_by_parent"]
        if ended:
            break
    else:
        pytest.fail(str(run))
    verdict = oomrec.json("show", ended[0])["verdict"]
    assert verdict["certainty"] == "possible", verdict
    assert " % of its cgroup's limit, possibly for lack of memory" in verdict["summary"]


def test_a_parent_that_goes_on(oomrec, recorded, watches):
    """It ends well, long after its worker. Its recording still explains the worker's end."""
    run = recorded("run", *watches, "SIGTERM", "--memory-limit=100MB", 11, exits=0)
    assert verdict_in(run.only_bundle()) == "terminated_by_parent"
    assert oomrec.sessions_left() == []


def test_a_parent_that_ends_because_of_it(oomrec, recorded, watches, tmp_path):
    """The parent's own bundle names the worker."""
    script = written(tmp_path / "fails.py", Path(watches[-1]).read_text() + "    sys.exit(1)\n")
    run = recorded("run", watches[0], script, "SIGTERM", "--memory-limit=100MB", exits=1)
    codes = {verdict_in(bundle) for bundle in run.bundles()}
    assert codes == {"terminated_by_parent", "child_killed"}
    shown = oomrec.json("show")
    assert shown["verdict"]["code"] == "terminated_by_parent"
    assert shown["episode"]["job_outcome"] == "exited 1"


@pytest.mark.needs_module("distributed")
@pytest.mark.parametrize("way", ["run", full("recover")])
def test_a_worker_of_dask(oomrec, recorded, victim, way):
    script = victim("python/dask_worker_grows.py")
    run = recorded(way, sys.executable, script, "grows")
    assert "exceeded 95% memory budget" in run.stderr, str(run)
    assert "KilledWorker" in run.stderr and run.exit_code == 1
    root = oomrec.json("show")
    verdict = root["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("terminated_by_parent", "likely"), verdict
    assert "as Dask's nanny does when a worker exceeds its memory limit" in verdict["evidence"][0]
    largest = root["holders"][0]
    assert largest["bytes"] >= 100 * MIB
    line = line_of(script, "# grows here")
    assert any(frame["line"] == line for frame in largest["stack"]), largest


@pytest.mark.full  # test_schedulers_dask.py has such ends, too
@pytest.mark.needs_module("distributed")
def test_a_cluster_of_dask_that_ends_well(oomrec, recorded, victim):
    script = victim("python/dask_worker_grows.py")
    run = recorded("run", sys.executable, script, "rests")
    assert run.exit_code == 0 and "result 64" in run.stdout, str(run)
    assert run.bundles() == [], str(run)
