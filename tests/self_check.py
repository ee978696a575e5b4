"""self_check.py [--long] LIBRARY [WORKLOAD…] compares partly reused stacks with full walks.

The library, built with -Dself_check=true, compares each reused stack with a full walk, and some with
libunwind's. Prints the counts, and fails on a difference. --long compares about ten million stacks
in two minutes, otherwise a tenth.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
BENCH = SOURCE / "tests" / "bench"
COUNTS = [
    "stacks", "frames", "reusing", "reused_frames", "oracle_stacks", "oracle_frames",
    "oracle_ends", "python_frames", "python_reused", "cached_chains", "cached_stacks", "quick_nodes", "rules", "large_rules", "odd_rules",
    "different",
]  # fmt: skip

WORDS = "my %h; for (1..{0}) {{ $h{{$_ % 5000}} = join ',', map {{ $_ x 3 }} 1 .. ($_ % 40) }}"
SQL = (
    "create table t(a, b); with recursive c(i) as (select 1 union all select i + 1 from c where"
    " i < {0}) insert into t select i, hex(i) from c; create index k on t(b);"
    " select sum(length(b)) from t order by b;"
)
# Each $(…) forks a child, which ends before its stacks recur: by themselves, children leave one stack in 20 to the walk
# cache, a little more or less from run to run. The shell's own loop inside makes recurring stacks, many times as many.
LOOP = (
    "for ((i = 0; i < {0}; i++)); do x=$(echo $i | sed s/./x/); a[$i]=${{x//x/yy}};"
    " for ((j = 0; j < 20; j++)); do x=${{j/1/x}}; b[$j]=${{x//x/yy}}; done; done"
)
TORCH_THREADS = """
import concurrent.futures, torch
def train(seed):
    net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    for _ in range({0}):
        net(torch.randn(16, 32)).square().mean().backward()
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(train, range(8)))
"""

# Workload: amount in a short and in a long round, and the command.
PYTHON = [sys.executable]
WORKLOADS = {
    "cpython": (1, 10, [*PYTHON, str(BENCH / "json_objects.py"), "{0}"]),
    "numpy": (300, 10000, [*PYTHON, str(BENCH / "numpy_small.py"), "{0}"]),
    "torch": (2, 200, [*PYTHON, "-c", TORCH_THREADS]),
    "cc1plus": (1, 3, ["g++", "-O{0}", "-std=c++20", "-I", str(SOURCE), "-c", "-o", os.devnull,
                       str(SOURCE / "recorder" / "stack" / "cfi.cpp")]),
    "perl": (2000, 100000, ["perl", "-e", WORDS]),
    "sqlite3": (2000, 100000, ["sqlite3", ":memory:", SQL]),
    "bash": (20, 400, ["bash", "-c", LOOP]),
}  # fmt: skip


def check(library: str | Path, workload: str, long: bool) -> dict[str, int]:
    """The counts of one run of a workload."""
    short_amount, long_amount, command = WORKLOADS[workload]
    amount = long_amount if long else short_amount
    # Importing torch makes three million objects, with stacks like those of other imports.
    objects = long or workload != "torch"
    return check_command(library, [argument.format(amount) for argument in command], objects)


def check_command(
    library: str | Path, command: list[str], python_objects: bool = True
) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as directory:
        counts = Path(directory) / "counts"
        counts.write_bytes(bytes(8 * len(COUNTS)))
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        subprocess.run(
            command,
            check=True, stdout=subprocess.DEVNULL, cwd=directory, timeout=3000,
            env={
                **environment,
                "LD_PRELOAD": str(library),
                "OOMREC_MODE": "exact",
                "OOMREC_RECORDING_SIZE": "1G",  # otherwise it falls back to sampled
                "OOMREC_SESSION_DIR": directory,
                "OOMREC_DUMP_DIR": directory,
                "OOMREC_SELF_CHECK": str(counts),
                **({"PYTHONMALLOC": "malloc"} if python_objects else {}),
            },
        )  # fmt: skip
        return dict(zip(COUNTS, struct.unpack(f"={len(COUNTS)}Q", counts.read_bytes())))


def main(arguments: list[str]) -> int:
    long = "--long" in arguments
    library, *names = [argument for argument in arguments if argument != "--long"]
    print("workload " + " ".join(f"{name:>13}" for name in COUNTS))
    total = dict.fromkeys(COUNTS, 0)
    for name in names or WORKLOADS:
        counts = check(Path(library).resolve(), name, long)
        total = {key: total[key] + counts[key] for key in COUNTS}
        print(f"{name:8} " + " ".join(f"{counts[key]:13}" for key in COUNTS), flush=True)
    print("all      " + " ".join(f"{total[key]:13}" for key in COUNTS))
    return 1 if total["different"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
