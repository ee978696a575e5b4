"""Writes the first inputs of the fuzz targets: seeds.py DIR [RECORDING] (README.md).

Of each format a few small, complete examples in all its variants; the mutations do the rest. RECORDING, made by
the caller, is the seed of `recording` and the recording of the bundles.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent

SNAPSHOT = {
    "segments": [
        {
            "device": 0,
            "address": 0x7F0000000000,
            "total_size": 2 << 20,
            "allocated_size": 1 << 20,
            "active_size": 1 << 20,
            "stream": 0,
            "segment_type": "large",
            "frames": [],
            "blocks": [
                {
                    "size": 1 << 20,
                    "requested_size": 1_000_000,
                    "state": "active_allocated",
                    "address": 0x7F0000000000,
                    "frames": [{"name": "train", "filename": "train.py", "line": 42}],
                },
                {"size": 1 << 20, "state": "inactive", "address": 0x7F0000100000, "frames": []},
            ],
        }
    ],
    "device_traces": [
        [
            {"action": "alloc", "addr": 0x7F0000000000, "size": 1 << 20, "stream": 0, "time_us": 1, "frames": []},
            {"action": "oom", "device_free": 0, "size": 1 << 40, "stream": 0, "time_us": 2, "frames": []},
        ]
    ],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1},
}  # fmt: skip

OOM_REPORT = """\
<4>[  100.000000] victim invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
<6>[  100.000001] memory: usage 102400kB, limit 102400kB, failcnt 75
<6>[  100.000002] Memory cgroup stats for /test:
<6>[  100.000003] anon 104857600
<6>[  100.000003] file 0
<6>[  100.000003] slab 4096
<6>[  100.000004] Tasks state (memory values in pages):
<6>[  100.000005] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
<6>[  100.000006] [   4242]     0  4242    30000    25600   300000        0             0 victim
<6>[  100.000007] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/test,task_memcg=/test,task=victim,pid=4242,uid=0
<3>[  100.000008] Memory cgroup out of memory: Killed process 4242 (victim) total-vm:120000kB, anon-rss:102400kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:300kB oom_score_adj:0
<6>[  200.000000] victim[4242]: segfault at 0 ip 000055d0 sp 00007ffd error 4 in victim[55d0+1000]
<6>[  201.000000] traps: victim[4242] trap divide error ip:55d0 sp:7ffd error:0 in victim[55d0+1000]
"""

SYSLOG = """\
Nov 25 12:00:00 host kernel: [  100.000008] Out of memory: Killed process 4242 (victim) total-vm:120000kB, anon-rss:102400kB, file-rss:0kB
2026-11-25T12:00:00.123456+00:00 host systemd-oomd[7]: Killed /test due to memory used (10) / total (20) and swap used (1) / total (2) being more than 90%
2026-11-25T12:00:00 host earlyoom[9]: sending SIGTERM to process 4242 uid 0 "victim": badness 900, VmRSS 100 MiB
I1125 12:00:00.000000 1 eviction_manager.go:100] "Eviction manager: pods evicted, waiting for pod to be cleaned up" pods=["default/pod"]
"""

OPTIONS = """\
OOMREC_LIMIT=100M
OOMREC_FAIL=malloc:nth=1000;mmap:p=0.01,seed=7;site=train.py:42;site=libfoo!function
OOMREC_LIMIT_GPU=8G@cuda:1,1G@0
OOMREC_WARN=95
OOMREC_MODE=exact
OOMREC_DUMP_DIR=/tmp/%p-%h-%e-%t%%
OOMREC_ON_OOM=exit=7
OOMREC_ON_OOM_EXEC=echo %p %b
OOMREC_RECORDING_SIZE=16M
"""

ARGUMENTS = """\
python
train.py
--password=hunter2
--token
abcdef
https://user:secret@host/path?token=abc&n=1
--header
Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc
{"password": "x", "n": [1, 2]}
host=h password='p q' dbname=d
-pX
"""

CGROUP = """\
104857600
anon 104857600
file 4096
kernel 8192
slab 4096
shmem 0
oom_kill 1
max 7
some avg10=0.00 avg60=0.00 avg300=0.00 total=0
full avg10=1.50 avg60=0.20 avg300=0.00 total=12345
4242
"""

PROC = {
    "status": """\
Name:\tvictim
State:\tS (sleeping)
Pid:\t4242
Uid:\t0\t0\t0\t0
VmSize:\t  120000 kB
VmLck:\t       0 kB
VmRSS:\t  102400 kB
VmData:\t  110000 kB
VmSwap:\t       0 kB
Threads:\t2
CapEff:\t000001ffffffffff
""",
    "stat": "4242 (a (b) c) S 1 4242 4242 0 -1 4194304 100 0 7 0 1 2 0 0 20 0 2 0 12345 122880000 25600 18446744073709551615 "
    + "0 " * 17 + "3 " + "0 " * 10 + "\n",
    "statm": "30000 25600 500 1 0 27500 0\n",
    "maps": """\
55d0a0000000-55d0a0001000 r-xp 00000000 08:01 42                         /bin/victim
55d0b0000000-55d0b0021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
""",
    "cgroup": "0::/test\n",
    "comm": "victim\n",
    "cmdline": "victim\0--password\0secret\0",
    "environ": "LD_PRELOAD=/x/liboomrec.so\0RANK=0\0",
    "uid_map": "         0          0 4294967295\n",
    "meminfo": """\
MemTotal:       16000000 kB
MemAvailable:    8000000 kB
CommitLimit:     8000000 kB
Committed_AS:    4000000 kB
HugePages_Total:       4
HugePages_Free:        2
HugePages_Rsvd:        1
Hugepagesize:       2048 kB
SwapTotal:             0 kB
SwapFree:              0 kB
""",
    "vmstat": "pgmajfault 12\noom_kill 3\nworkingset_refault_anon 7\n",
    "loadavg": "0.10 0.20 0.30 2/345 6789\n",
    "pressure/memory": "some avg10=1.50 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=3\n",
    "sys/vm/overcommit_memory": "2\n",
    "sys/vm/max_map_count": "65530\n",
    "sys/kernel/pid_max": "32768\n",
    "sys/kernel/threads-max": "127000\n",
    "sys/kernel/random/boot_id": "01234567-89ab-cdef-0123-456789abcdef\n",
    "memory.current": "104857600\n",
    "memory.max": "209715200\n",
    "memory.peak": "204857600\n",
    "memory.stat": "anon 104857600\nfile 4096\ninactive_file 4096\nworkingset_refault_anon 7\n",
    "memory.events": "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n",
    "memory.events.local": "max 7\noom_kill 1\n",
    "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "cgroup.procs": "4242\n4243\n",
    "pids.current": "7\n",
    "pids.max": "max\n",
}  # fmt: skip

METADATA = {"schema_version": 5, "verdict": {"code": "soft_limit", "certainty": "proven"}, "outcome": "exited 1", "trigger": "allocation_failed"}  # fmt: skip
ENVIRONMENT = {"pid": 4242, "variables": {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "command_line": ["victim"]}  # fmt: skip
MANIFEST = {"schema_version": 1, "files": [{"name": "metadata.json", "bytes": 10}], "written_ns": 1_700_000_000_000_000_000}  # fmt: skip
RANKS = {"schema_version": 1, "ranks": [{"rank": 0, "recording": "recording.oomrec", "bundle": "../other"}], "world_size": 2}  # fmt: skip


def sections(files: dict[str, bytes]) -> bytes:
    return b"\n".join(b"=== " + name.encode() + b"\n" + data for name, data in files.items())


def text(value) -> bytes:
    return json.dumps(value, indent=1).encode()


def library(directory: Path) -> bytes:
    """A small shared library with a symbol table, whose first function is at 0x1000, where the target looks."""
    source = directory / "source.c"
    source.write_text(
        "int counted; static int helper(int n) { return n * 3; }\nint work(int n) { return helper(n) + counted; }\n"
    )
    made = directory / "library.so"
    subprocess.check_call(
        ["cc", "-shared", "-fPIC", "-O0", "-nostdlib", "-Wl,-z,separate-code", "-o", made, source]
    )
    return made.read_bytes()


def write(target: Path, seeds: dict[str, bytes]) -> None:
    target.mkdir(parents=True)
    for name, data in seeds.items():
        (target / name).write_bytes(data)


def main(directory: Path, recording: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    corpus = {
        path.name: path.read_bytes()
        for path in (TESTS / "telemetry_corpus").iterdir()
        if path.stat().st_size < 1 << 16
    }
    parts = {
        "metadata.json": text(METADATA),
        "environment.json": text(ENVIRONMENT),
        "manifest.json": text(MANIFEST),
    }
    write(directory / "recording", {"recording": recording})
    write(
        directory / "bundle",
        {
            "whole": sections({**parts, "recording.oomrec": recording}),
            "without_recording": sections(parts),
            "merged": sections({**parts, "ranks.json": text(RANKS), "recording.oomrec": recording}),
        },
    )
    write(directory / "telemetry", corpus)
    write(directory / "csv", {name: data for name, data in corpus.items() if name.endswith(".csv")})
    write(directory / "json", {"ranks": text(RANKS), "metadata": text(METADATA), "numbers": b'[0, -0.0, 1e300, 18446744073709551615, "\\ud83d\\ude00", {"a": {}}]'})  # fmt: skip
    write(
        directory / "snapshot",
        {f"protocol_{number}": pickle.dumps(SNAPSHOT, number) for number in range(2, 6)},
    )
    write(directory / "log", {"cgroup": OOM_REPORT.encode(), "syslog": SYSLOG.encode()})
    write(directory / "cgroup", {"all": CGROUP.encode(), "one": b"104857600\n", "none": b"max\n"})
    first_version = {
        "cgroup": "5:memory:/test\n4:pids:/test\n",
        "memory.limit_in_bytes": "209715200\n",
        "memory.usage_in_bytes": "104857600\n",
        "memory.failcnt": "7\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    }
    files = {name: data.encode() for name, data in PROC.items()}
    older = {**files, **{name: data.encode() for name, data in first_version.items()}}
    write(
        directory / "proc",
        {"all": sections(files), "version_1": sections(older), "none": b"", "one": b"max\n"},
    )
    write(directory / "options", {"all": OPTIONS.encode()})
    write(directory / "arguments", {"all": ARGUMENTS.encode()})
    scratch = directory / "scratch"
    scratch.mkdir()
    write(directory / "symbols", {"library": library(scratch)})
    shutil.rmtree(scratch)
    for found in (TESTS / "fuzz" / "findings").glob("*/*"):
        shutil.copy(found, directory / found.parent.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes() if len(sys.argv) > 2 else b"")
