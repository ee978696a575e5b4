"""A job of many ranks in which one runs out of memory, started the way users start it."""

import os
import sys
from pathlib import Path

import pytest
from conftest import written
from schemas import check

MIB = 1 << 20

# Each rank holds 24 MiB and announces it. Then one requests too much, and the others wait for it as
# in a collective operation.
TRAIN = """\
import os, time
rank = next(int(os.environ[name]) for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
            if name in os.environ)
held = [bytearray(b"x") * (1 << 20) for _ in range(24)]
open(f"ready{rank}", "w").close()
until = time.monotonic() + 120
while len([name for name in os.listdir() if name.startswith("ready")]) < RANKS:
    assert time.monotonic() < until
    time.sleep(0.01)
if rank == RANKS - 2:
    def grow():
        return bytearray(1 << 40)
    grow()
time.sleep(600)
"""


def script(directory: Path, ranks: int) -> str:
    path = written(directory / "train.py", TRAIN.replace("RANKS", str(ranks)))
    return str(path)


def rows_of(oomrec, directory) -> dict[int, dict]:
    """The job that `show` reads from a dump directory, by rank, after checks against the schema."""
    result = oomrec.json("show", directory)
    check("show", result)
    return {row["rank"]: row for row in result["job"]["ranks"]}


def assert_one_ran_out(
    oomrec, run, ranks: int, code="request_too_large", ended=("signal 15",)
) -> dict:
    """Rank N-2 ran out of memory, and the launcher ended the others without a verdict on their memory."""
    rows = rows_of(oomrec, run.dump_dir)
    out = ranks - 2
    assert sorted(rows) == list(range(ranks)), str(run)
    assert rows[out]["verdict"] == code and rows[out]["trouble"]["kind"] == "ended"
    result = oomrec.json("show", run.dump_dir)
    assert result["job"]["first"]["rank"] == out and result["job"]["missing"] == []
    assert result["verdict"]["code"] == code
    assert result["verdict"]["summary"].startswith(f"rank {out} of {ranks} was first: ")
    for rank, row in rows.items():
        assert row["live_bytes"] > 24 * MIB
        if rank != out:
            assert row["verdict"] == "killed_externally", row
            assert row["outcome"] in ended and row["ended_after_rank"] == out
            # Its own bundle agrees.
            assert oomrec.json("show", row["bundle"])["verdict"]["code"] == "killed_externally"
    return rows


@pytest.mark.needs_module("torch")
def test_torchrun_ends_the_others_when_one_rank_runs_out(oomrec, tmp_path):
    """A real job with gloo on CPUs, under a limit that only rank 1 reaches.

    It ends at once: a program that lives ten seconds longer has recovered."""
    (tmp_path / "train.py").write_text(
        """\
import os, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
held = torch.ones(30 << 18)  # 30 MiB
dist.all_reduce(torch.ones(1))
if rank == 1:
    def grow():
        return torch.ones(1 << 30)
    try:
        grow()
    except RuntimeError:
        os._exit(1)
time.sleep(600)
"""
    )
    run = oomrec(
        *("run", "--limit", "1G", "--"),
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"),
        *("--master-port", str(20000 + os.getpid() % 20000), "train.py"),
        env={"OMP_NUM_THREADS": "1"},
        exits=1,
    )
    rows = assert_one_ran_out(oomrec, run, 3, "soft_limit")
    assert [row["local_rank"] for _, row in sorted(rows.items())] == [0, 1, 2]
    page = oomrec("show", run.dump_dir).stdout
    assert "ranks 0 and 2 were ended after rank 1: by the launcher" in page
    assert "train.py:10 grow" in page


@pytest.mark.needs_program("mpirun")
def test_mpirun_ends_the_others_when_one_rank_runs_out(oomrec, tmp_path):
    run = oomrec(
        *("run", "--", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"),
        *(sys.executable, script(tmp_path, 3)),
    )

    # Open MPI 4 kills them without waiting, so their outcome is unknown. Open MPI 5 waits.
    rows = assert_one_ran_out(oomrec, run, 3, ended=("unknown", "signal 15"))
    assert {row["program"] for row in rows.values()} == {
        Path(os.path.realpath(sys.executable)).name
    }


LAUNCHERS = {
    "torchrun": lambda rank, size: {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "TORCHELASTIC_RUN_ID": "run 7",
    },
    "srun": lambda rank, size: {
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": rank,
        "SLURM_NTASKS": size,
        "SLURM_JOB_ID": "4711",
    },
    # Kubernetes' training operators and Ray's set torchrun's variables, but no job name.
    "a pod": lambda rank, size: {"RANK": rank, "LOCAL_RANK": 0, "WORLD_SIZE": size},
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_come_from_the_launchers_variables(oomrec, preload, tmp_path, launcher):
    """Started separately, so nobody ends the others. Ranks that survive have no bundle."""
    words = [sys.executable, "-c", "bytearray(1 << 40)"]
    for rank in (0, 2):
        preload(*words, env=LAUNCHERS[launcher](rank, 3))

    result = oomrec.json("show", preload.dump_dir)

    job = result["job"]
    assert [row["rank"] for row in job["ranks"]] == [0, 2]
    assert (job["world_size"], job["missing"]) == (3, [1])
    assert job["job_id"] == {"torchrun": "run 7", "srun": "4711", "a pod": None}[launcher]
    assert job["first"]["rank"] == 0


def test_rays_ranks_arrive_after_the_recording_began(oomrec, preload, tmp_path):
    """A directory of such bundles has no ranks. Given one by one, the bundles are numbered in that order."""
    ray = (
        "import os; os.environ.update(RANK='1', LOCAL_RANK='1', WORLD_SIZE='2'); bytearray(1 << 40)"
    )
    for _ in range(2):
        run = preload(sys.executable, "-c", ray)
    assert oomrec("show", run.dump_dir).exit_code == 2

    merged = oomrec.json("merge", *run.bundles(), "-o", tmp_path / "job")

    check("merge", merged)
    result = oomrec.json("show", merged["bundle"])
    assert [row["rank"] for row in result["job"]["ranks"]] == [0, 1]
    assert result["job"]["ranks_are"] == "as_named"


POOL = """\
import os, signal, subprocess, sys, time
def begin(rank):
    environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "3"}
    return subprocess.Popen([sys.executable, "rank.py", HOW], env=environment)
HOW = sys.argv[1]
ranks = [begin(rank) for rank in range(3)]
while not all(os.path.exists(f"ready{rank}") for rank in range(3)):
    time.sleep(0.01)
if HOW != "stop":
    open("go", "w").close()
    ranks[1].wait()
for rank in (ranks[0], ranks[2]):
    if HOW != "fail":
        rank.send_signal(signal.SIGTERM)
    rank.wait()
if HOW == "stop":
    ranks[1].send_signal(signal.SIGTERM)
    ranks[1].wait()
"""
RANK = """\
import os, sys, time
rank, how = int(os.environ["RANK"]), sys.argv[1]
held = [bytearray(b"x") * (1 << 20) for _ in range(4)]
open(f"ready{rank}", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
if rank == 1:
    bytearray(1 << 40)
if how == "fail":
    sys.exit("the connection was closed by the peer")
time.sleep(60)
"""


@pytest.fixture
def pool(oomrec, preload, tmp_path):
    def run(how: str):
        (tmp_path / "pool.py").write_text(POOL)
        (tmp_path / "rank.py").write_text(RANK)
        return preload(sys.executable, "pool.py", how)

    return run


@pytest.mark.parametrize(
    "how, ended",
    [
        ("ran out", {"verdict": "killed_externally"}),
        # A collective operation fails once a peer is gone, so the ranks end by themselves.
        ("fail", {"verdict": "exited", "outcome": "exited 1"}),
    ],
)
def test_ranks_are_kept_that_end_because_of_another(oomrec, pool, how, ended):
    run = pool(how)
    oomrec("recover")
    rows = rows_of(oomrec, run.dump_dir)
    assert sorted(rows) == [0, 1, 2], str(run)
    assert all(rows[rank].items() >= ended.items() for rank in (0, 2)), rows


def test_a_stopped_job_leaves_nothing(oomrec, pool, preload):
    """SIGTERM for all ranks, none of which was short of memory."""
    run = pool("stop")
    recovered = oomrec("recover")
    assert run.bundles() == [], str(recovered)
    assert preload.sessions_left() == []
