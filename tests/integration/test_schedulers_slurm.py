"""docs/examples/slurm with the real Slurm: kills by its limits are proven, other ends are no memory deaths."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import rounds
from slurm_cluster import SlurmCluster

pytestmark = [
    pytest.mark.needs_program("slurmctld", "slurmd", "munged", "srun"),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root"),
]

# Far above the job's limit, in steps, so that Slurm sees it on the way.
GROWS = """
import time
kept = []
for _ in range(300):
    kept.append(bytearray(b"x") * 2_000_000)
    time.sleep(0.01)
time.sleep(60)
"""
HOLDS = """
import os, signal, sys, time
kept = bytearray(b"x") * 40_000_000
open(sys.argv[1], "w").close()
if sys.argv[2:]: os.kill(os.getpid(), int(sys.argv[2]))
time.sleep(60)
"""


def cluster_of(build_dir, *settings, **options):
    with tempfile.TemporaryDirectory(prefix="oomrec-slurm-") as directory:
        cluster = SlurmCluster(Path(directory), build_dir, *settings, **options)
        (cluster.directory / "work" / "grows.py").write_text(GROWS)
        (cluster.directory / "work" / "holds.py").write_text(HOLDS)
        try:
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def over_memory(build_dir):
    """Slurm itself ends a step above its limit."""
    yield from cluster_of(build_dir, "JobAcctGatherParams=OverMemoryKill")


@pytest.fixture(scope="module")
def constrained(build_dir):
    """The kernel does."""
    yield from cluster_of(build_dir, constrains=True)


def verdicts(cluster, oomrec) -> list[dict]:
    """Of Python processes that died since the last call, once all epilogs have ended."""
    cluster.wait_for_epilogs()
    assert cluster.recordings() == []
    paths = [path.parent for path in cluster.bundles()]
    reports = [oomrec.json("show", path) for path in paths]
    for path in paths:
        shutil.rmtree(path)
    # Not of a batch script's shell, nor warnings of a process that came near its limit first.
    return [
        report["verdict"]
        for report in reports
        if report["process"]["python"] and report["trigger"] != "near_limit"
    ]


def slurms_own(verdict: dict, step: str) -> bool:
    return (
        (verdict["code"], verdict["certainty"]) == ("user_space_oom_kill", "proven")
        and "was killed by Slurm, which said that memory was the reason" in verdict["summary"]
        and any(f"{step} exceeded memory limit (" in line for line in verdict["evidence"])
    )


def test_a_step_above_its_limit(over_memory, oomrec):
    count = rounds(1, 20)
    for _ in range(count):
        ran = over_memory.run("srun", "--mem=100M", sys.executable, "grows.py")
        assert "exceeded memory limit" in ran.stderr, ran
    found = verdicts(over_memory, oomrec)
    assert len(found) == count  # none is lost
    assert all(slurms_own(verdict, ".0") for verdict in found), json.dumps(found, indent=1)


def test_a_batch_script_above_its_limit(over_memory, oomrec):
    over_memory.run("sbatch", "--mem=100M", f"--wrap={sys.executable} grows.py")
    (verdict,) = verdicts(over_memory, oomrec)
    assert slurms_own(verdict, ".batch"), json.dumps(verdict, indent=1)


@pytest.mark.parametrize("way", ["cancelled", "crashed", "ended well"])
def test_other_ends(over_memory, oomrec, way):
    """The negative controls. (A job's time limit is a minute at least.)"""
    started = over_memory.directory / "work" / way.replace(" ", "_")
    number = {"cancelled": "", "crashed": "11", "ended well": "0"}[way]
    script = f"{sys.executable} holds.py {started} {number}"
    if way == "ended well":
        script = f"{sys.executable} -c 'kept = bytearray(40_000_000)'; touch {started}"
    job = over_memory.run("sbatch", "--parsable", "--mem=200M", f"--wrap={script}").stdout.strip()
    over_memory.wait_until(started.exists, job)
    if way == "cancelled":
        over_memory.run("scancel", job)
    codes = {verdict["code"] for verdict in verdicts(over_memory, oomrec)}
    assert codes <= {"crashed"} if way == "crashed" else codes <= {"unknown", "killed_externally"}


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_file("/sys/fs/cgroup/memory/tasks")  # with cgroup v2 slurmd needs systemd
def test_a_step_at_its_cgroups_limit(constrained, oomrec):
    ran = constrained.run("srun", "--mem=100M", sys.executable, "grows.py")
    assert "Out Of Memory" in ran.stderr, ran
    (verdict,) = verdicts(constrained, oomrec)
    assert (verdict["code"], verdict["certainty"]) == ("cgroup_oom_kill", "proven"), verdict
