#!/usr/bin/env python3
"""Kills the watcher, the store and the uploads at random points, and counts what is lost or twice.

    tests/ship_trials.py [--trials 100] [--seed 1] [BUILD]
    tests/ship_trials.py --measure 10 [--store file|http|seaweedfs] [BUILD]

Each trial ends a recorded process by SIGKILL, and then, at a random time, one of: the watcher with
its children, the watcher alone, the store (which then comes back), or a curl that is running. At
the end the watcher gets SIGTERM. Lost: deaths without a row that says how they ended. Twice: deaths
with two of them, or a store that was changed by the second of two equal names. --measure kills by
a memory cgroup instead, and takes the time until the row is in the store.

Not in the tests: it takes about a second a trial.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import object_store  # noqa: E402
from memory_cgroup import MemoryCgroup  # noqa: E402

HOLDER = "b = bytearray(b'x') * (24 << 20); print('ready', flush=True); input()"
EATER = """
import time
print("ready", flush=True)
input()
b = []
while True: b.append(bytearray(b"x") * (1 << 20))
"""


class Setting:
    """A dump directory, a store and a watcher."""

    def __init__(self, build: Path, directory: Path, endpoint: str, url: str):
        self.build, self.directory, self.url = build, directory, url
        self.dumps = directory / "dumps"
        (directory / "sessions").mkdir(mode=0o700)
        self.environment = {
            "PATH": os.environ["PATH"],
            "OOMREC_DUMP_DIR": str(self.dumps),
            "OOMREC_SESSION_DIR": str(directory / "sessions"),
            "OOMREC_MAX_DUMPS": "0",
            "OOMREC_MAX_TOTAL_MB": "0",
            "OOMREC_WARN": "0",  # no bundle before the death
            "XDG_CACHE_HOME": str(directory / "cache"),
            "MEMORY_PRESSURE_WATCH": "/dev/null",
            "TMPDIR": str(directory),
            **object_store.aws(endpoint),
        }
        self.log = (directory / "log").open("wb")
        self.watcher = None

    def watch(self) -> None:
        self.watcher = subprocess.Popen(
            [self.build / "oomrec", "watch", "--ship", self.url],
            env=self.environment,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def start(self, code: str, **options) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**self.environment, "LD_PRELOAD": str(self.build / "liboomrec.so")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **options,
        )
        assert process.stdout.readline() == b"ready\n"
        return process

    def descendants(self) -> list[int]:
        """The watcher's children and theirs."""
        found, new = [], [self.watcher.pid]
        while new:
            pid = new.pop()
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                new += map(int, children)
                found += map(int, children)
        return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def serve(directory: Path, port: int) -> subprocess.Popen:
    """A store in a process of its own, to be killed."""
    code = (
        f"import sys, time; sys.path.insert(0, {str(HERE)!r}); import object_store, pathlib\n"
        f"store = object_store.Store(pathlib.Path({str(directory)!r}), {port})\n"
        "print(store.endpoint, flush=True)\ntime.sleep(1e9)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.endpoint = process.stdout.readline().decode().strip()
    return process


def trials(build: Path, count: int, seed: int) -> int:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="oomrec-trials-") as name:
        directory = Path(name)
        objects = directory / "store"
        store = serve(objects, 0)
        port = int(store.endpoint.rpartition(":")[2])
        setting = Setting(build, directory, store.endpoint, "s3://oom/trials")
        setting.watch()
        deaths, killed = (
            0,
            {"watcher and children": 0, "watcher": 0, "store": 0, "curl": 0, "none": 0},
        )
        sizes: dict[Path, tuple[int, int]] = {}
        changed = 0
        for _ in range(count):
            victim = setting.start(HOLDER)
            time.sleep(0.25)  # the watcher sees it
            deaths += 1
            victim.kill()
            victim.wait()
            what = chance.choice(list(killed)[:-1])
            time.sleep(chance.uniform(0, 0.6))
            if what == "curl":  # or what is there instead: the child itself, tar, zstd
                until = time.monotonic() + 1
                running: list[int] = []
                while not running and time.monotonic() < until:
                    running = [pid for pid in setting.descendants() if name_of(pid) == "curl"]
                running = running or setting.descendants()
                kill(running[-1:])
                killed[what if running else "none"] += 1
            elif what == "store":
                store.kill()
                store.wait()
                killed[what] += 1
                time.sleep(chance.uniform(0, 1.5))
                store = serve(objects, port)
            else:
                others = setting.descendants() if what != "watcher" else []
                kill([setting.watcher.pid, *others])
                setting.watcher.wait()
                killed[what] += 1
                time.sleep(chance.uniform(0, 0.3))
                setting.watch()
            for path in objects.rglob("*.*"):
                with contextlib.suppress(FileNotFoundError):
                    if path.name.startswith("."):
                        continue
                    status = path.stat()
                    now = (status.st_size, status.st_ino)
                    changed += sizes.setdefault(path, now) != now
        while not Path(f"/proc/{setting.watcher.pid}/fdinfo").exists():
            time.sleep(0.01)
        time.sleep(2)  # it blocks its signals
        begin = time.monotonic()
        setting.watcher.terminate()
        setting.watcher.wait()
        emptied_s = time.monotonic() - begin
        store.kill()
        bundles = {path.parent.name for path in setting.dumps.glob("oom_*/manifest.json")}
        last = [
            row
            for file, row in object_store.rows(objects).items()
            if not file.endswith("-running.json")
        ]
        ids = [row["death_id"] for row in last]
        archives = object_store.archives(objects)
        broken = [
            path
            for path in archives
            if subprocess.run(["tar", "-tf", path], capture_output=True).returncode != 0
        ]
        promised = {row["raw_key"] for row in last if row["raw_key"]}
        result = {
            "trials": count,
            "seed": seed,
            "killed": killed,
            "deaths": deaths,
            "bundles": len(bundles),
            "deaths without a bundle": deaths - len(bundles),  # nobody saw how they ended
            "rows": len(last),
            "lost": len(bundles) - len(set(ids)),
            "twice": len(ids) - len(set(ids)),
            "changed objects": changed,
            "archives": len(archives),
            "archives promised and absent": len(
                promised - {str(path.relative_to(objects / "oom" / "trials")) for path in archives}
            ),
            "broken archives": len(broken),
            "emptied after SIGTERM, s": round(emptied_s, 2),
            "left in TMPDIR": len(list(directory.glob("oomrec-*"))),
        }
        print(json.dumps(result, indent=2))
        if result["lost"] or result["twice"]:
            print((directory / "log").read_text()[-3000:])
        return 1 if result["lost"] or result["twice"] or changed or broken else 0


def measure(build: Path, count: int, kind: str) -> int:
    """From the kernel's kill to the row and to the archive in the store."""
    with tempfile.TemporaryDirectory(prefix="oomrec-trials-") as name:
        directory = Path(name)
        objects = directory / "store"
        objects.mkdir()
        stop = []
        if kind == "seaweedfs":
            store = object_store.SeaweedFS(objects)
            stop.append(store.close)
            url, endpoint = "s3://oom/trials", store.endpoint
        elif kind == "http":
            server = serve(objects, 0)
            stop.append(server.kill)
            url, endpoint = "s3://oom/trials", server.endpoint
        else:
            url, endpoint = f"file://{objects}", ""
        setting = Setting(build, directory, endpoint, url)
        setting.watch()
        time.sleep(1)
        took = []
        ledger = setting.dumps / ".shipped"
        for number in range(count):
            group = MemoryCgroup(f"oomrec_ship_{os.getpid()}_{number}", "64M")
            try:
                victim = setting.start(EATER, preexec_fn=group.enter)
                time.sleep(0.5)  # the watcher has seen it
                victim.stdin.write(b"\n")
                victim.stdin.flush()
                victim.wait()
                died = time.monotonic()
                assert group.kills() == 1
                while not ledger.exists() or ledger.read_text().count(" row ") <= number:
                    assert time.monotonic() - died < 60
                    time.sleep(0.002)
                took.append(time.monotonic() - died)
            finally:
                group.remove()
        setting.watcher.terminate()
        setting.watcher.wait()
        took.sort()
        print(
            f"{kind}: {count} kills by a memory cgroup, from the process' end to the row's line in .shipped:"
            f" median {statistics.median(took):.3f} s, longest {took[-1]:.3f} s,"
            f" load {os.getloadavg()[0]:.1f}"
        )
        for end in stop:
            end()
        return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", nargs="?", type=Path, default=HERE.parent / "build")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure", type=int)
    parser.add_argument("--store", choices=["file", "http", "seaweedfs"], default="http")
    options = parser.parse_args()
    build = options.build.resolve()
    if options.measure:
        return measure(build, options.measure, options.store)
    return trials(build, options.trials, options.seed)


if __name__ == "__main__":
    sys.exit(main())
