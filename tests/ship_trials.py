#!/usr/bin/env python3
"""Kills the watcher, the store and the network at random points, and counts what is lost or twice.

    tests/ship_trials.py [--trials 100] [--seed 1] [--store http|seaweedfs] [BUILD]
    tests/ship_trials.py --measure 200 [--store file|http|seaweedfs] [BUILD]

In each trial one to three recorded programs end: by SIGKILL, by the kernel (a line of its log, and
SIGKILL), of a refused request, or well. Within a second before or after, one of these happens: the
watcher is killed, alone or with its children, and started again; one of its children is killed; the
store is killed and started again; or a connection to it is cut, reset or stalled after some bytes
in one direction. At the end the watcher gets SIGTERM.

Lost: deaths without a row in the store that says how they ended. Twice: deaths with two of them.
Well: programs that ended well and have a row. Left: recordings and bundles that are not shipped.
Absent: archives that a row promised. Broken: those that tar does not read. Any of these is a
failure.

--measure kills by a real memory cgroup instead, and prints how long it takes until the row is in
the store, and the CPU time of that.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import json
import os
import random
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import object_store  # noqa: E402
from memory_cgroup import MemoryCgroup  # noqa: E402

URL = "s3://oom/trials"
LONG_S = 120  # for what must happen

VICTIM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
  char* volatile held = malloc(20 << 20);
  memset(held, 1, 20 << 20);
  puts("ready");
  fflush(stdout);
  char order = 0;
  if (read(0, &order, 1) != 1) return 9;
  if (order == 'r') return malloc((size_t)1 << 60) == NULL ? 3 : 4;
  if (order == 'g')
    for (;;) memset(malloc(1 << 20), 1, 1 << 20);
  return 0;
}
"""
WAYS = ("killed", "by the kernel", "refused", "well")


def wait_for(what: str, found, within_s: float = LONG_S):
    until = time.monotonic() + within_s
    while not (result := found()):
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not within {within_s} s")
        time.sleep(0.01)
    return result


@dataclass
class Fault:
    """What happens to a connection."""

    kind: str  # cut, reset, stall
    answers: bool  # in the store's direction, or in the watcher's
    after_bytes: int
    seconds: float = 0  # of a stall, before it is reset


class Proxy:
    """Forwards TCP connections, one fault each for those that are queued."""

    def __init__(self, port: int):
        self.port = port  # of the store
        self.faults: list[Fault] = []
        self.happened = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        except OSError:
            return client.close()
        fault = self.faults.pop(0) if self.faults else None
        seen = {client: 0, server: 0}
        with client, server, contextlib.suppress(OSError):
            while True:
                for source in select.select([client, server], [], [], 60)[0]:
                    data = source.recv(4096)
                    if not data:
                        return None
                    if fault and fault.answers == (source is server):
                        data = data[: max(0, fault.after_bytes - seen[source])]
                    seen[source] += len(data)
                    if data:
                        (server if source is client else client).sendall(data)
                    if fault and seen[server if fault.answers else client] >= fault.after_bytes:
                        return self._end(fault, client, server)
        return None

    def _end(self, fault: Fault, *ends: socket.socket) -> None:
        self.happened[fault.kind] += 1
        time.sleep(fault.seconds)
        if fault.kind != "cut":  # a reset, to both
            for end in ends:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class HttpStore:
    """The tests' store, in a process of its own, to be killed."""

    def __init__(self, directory: Path):
        self._directory = directory
        self.start()

    def start(self) -> None:
        code = (
            f"import sys, time; sys.path.insert(0, {str(HERE)!r}); import object_store, pathlib\n"
            f"store = object_store.Store(pathlib.Path({str(self._directory)!r}))\n"
            "print(store.endpoint, flush=True)\ntime.sleep(1e9)"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # connections that were reset
        )
        self.port = int(self._process.stdout.readline().decode().rpartition(":")[2])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def objects(self) -> Path:
        return self._directory / "oom/trials"


class RealStore:
    """SeaweedFS, likewise."""

    def __init__(self, directory: Path):
        self._directory = directory / "weed"
        self._directory.mkdir(parents=True)
        self._store = object_store.SeaweedFS(self._directory)
        self.port = int(self._store.endpoint.rpartition(":")[2])
        self.kill = self._store.close
        self.start = self._store.start_again

    def objects(self) -> Path:
        found = self._directory.parent / "found"
        found.mkdir()
        self._store.download("oom", found)
        return found / "trials"


class Setting:
    """A dump directory, programs and a watcher."""

    def __init__(self, build: Path, directory: Path, url: str, endpoint: str):
        self.build, self.directory, self.url = build, directory, url
        self.dumps, self.sessions = directory / "dumps", directory / "sessions"
        self.sessions.mkdir(mode=0o700)
        (directory / "cache").mkdir(mode=0o700)
        (directory / "tmp").mkdir()
        self.kernel_log = directory / "kernel.log"
        self.kernel_log.write_text("6,0,0,-;Linux version\n")
        (directory / "victim.c").write_text(VICTIM)
        self.victim = directory / "victim"
        subprocess.run(["cc", "-O1", "-o", self.victim, directory / "victim.c"], check=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "OOMREC_DUMP_DIR": str(self.dumps),
            "OOMREC_SESSION_DIR": str(self.sessions),
            "OOMREC_WARN": "0",  # no bundle before the death
            "XDG_CACHE_HOME": str(directory / "cache"),
            "MEMORY_PRESSURE_WATCH": "/dev/null",
            "TMPDIR": str(directory / "tmp"),
            **(object_store.aws(endpoint) if endpoint else {}),
        }
        self.log = (directory / "log").open("wb")
        self.watcher = None

    def watch(self, *words: str) -> None:
        self.watcher = subprocess.Popen(
            [self.build / "oomrec", "watch", self.sessions, "--ship", self.url, *words],
            env=self.environment,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def start(self, label: str = "", **options) -> subprocess.Popen:
        """A program that waits for its order."""
        process = subprocess.Popen(
            [self.victim],
            env={
                **self.environment,
                "LD_PRELOAD": str(self.build / "liboomrec.so"),
                "OOMREC_LABELS": f"trial={label}",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **options,
        )
        assert process.stdout.readline() == b"ready\n"
        return process

    def end(self, process: subprocess.Popen, way: str) -> None:
        if way == "by the kernel":
            now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            with self.kernel_log.open("a") as log:
                log.write(
                    f"3,1,{now_us},-;Out of memory: Killed process {process.pid} (victim) total-vm:"
                    "30000kB, anon-rss:25000kB, file-rss:1000kB, shmem-rss:0kB, UID:0 "
                    "pgtables:100kB oom_score_adj:0\n"
                )
        if way in ("killed", "by the kernel"):
            process.kill()
        else:
            process.stdin.write(b"r" if way == "refused" else b"w")
            process.stdin.flush()
        process.wait()

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

    def stop(self) -> None:
        """By SIGTERM, once all recordings are bundles: what is shipped then is everything."""
        if self.watcher.poll() is not None:
            raise SystemExit(f"the watcher has ended: {self.watcher.returncode}")
        wait_for("no recording", lambda: not list(self.sessions.rglob("*.session")))
        blocked = Path(f"/proc/{self.watcher.pid}/status")
        wait_for(
            "SIGTERM is awaited",
            lambda: int(re.search(r"SigBlk:\t(\w+)", blocked.read_text())[1], 16) >> 14 & 1,
        )
        self.watcher.terminate()
        self.watcher.wait(2 * LONG_S)


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Trials:
    def __init__(self, setting: Setting, store, proxy: Proxy, seed: int, watch: tuple[str, ...]):
        self.setting, self.store, self.proxy, self.watch = setting, store, proxy, watch
        self.chance = random.Random(seed)
        self.expected: dict[str, str] = {}  # way by label
        self.faults = Counter()

    def run(self, number: int) -> None:
        chance = self.chance
        victims = {
            f"{number}.{i}": chance.choices(WAYS, [3, 3, 3, 1])[0]
            for i in range(chance.randint(1, 3))
        }
        processes = {label: self.setting.start(label) for label in victims}
        self.expected |= victims
        kinds = {"watcher": 3, "watcher and children": 3, "child": 3, "network": 3, "store": 1}
        if isinstance(self.store, RealStore):
            kinds["store"] = 0.1  # it takes ten seconds to come back
        (kind,) = chance.choices(list(kinds), list(kinds.values()))
        self.faults[kind] += 1
        fault = getattr(self, f"fault_{kind.replace(' ', '_')}")(chance)
        next(fault)  # some time before the deaths, or only then
        for label, way in victims.items():
            self.setting.end(processes[label], way)
            time.sleep(chance.choice([0, 0, 0.05]))
        for _ in fault:
            pass

    # Each is a generator: what it does before its yield comes before the deaths.
    def fault_watcher(self, chance, and_children=False):
        is_before = chance.random() < 0.5
        if not is_before:
            yield
            time.sleep(chance.uniform(0, 0.4))
        kill([self.setting.watcher.pid, *(self.setting.descendants() if and_children else [])])
        self.setting.watcher.wait()
        if is_before:
            yield
        time.sleep(chance.uniform(0, 0.2))
        self.setting.watch(*self.watch)

    def fault_watcher_and_children(self, chance):
        yield from self.fault_watcher(chance, and_children=True)

    def fault_child(self, chance):
        yield
        until = time.monotonic() + chance.uniform(0.05, 1)
        while time.monotonic() < until:
            if running := self.setting.descendants():
                kill([chance.choice(running)])
                time.sleep(chance.uniform(0, 0.2))
            time.sleep(0.002)

    def fault_network(self, chance):
        for _ in range(chance.randint(1, 3)):
            fault = Fault(
                chance.choice(["cut", "reset", "stall"]),
                chance.random() < 0.5,
                chance.choice([0, 1, chance.randint(0, 800), chance.randint(0, 200_000)]),
            )
            fault.seconds = chance.uniform(0, 1) if fault.kind == "stall" else 0
            self.proxy.faults.append(fault)
        yield
        time.sleep(chance.uniform(0, 0.5))

    def fault_store(self, chance):
        yield
        time.sleep(chance.uniform(0, 0.5))
        self.store.kill()
        time.sleep(chance.uniform(0, 1))
        self.store.start()
        self.proxy.port = self.store.port

    def result(self) -> dict:
        objects = self.store.objects()
        found = object_store.rows(objects)
        last = {name: row for name, row in found.items() if not name.endswith("-running.json")}
        rows = Counter(row["labels"].get("trial") for row in last.values())
        deaths = {label for label, way in self.expected.items() if way != "well"}
        archives = object_store.archives(objects)
        names = {str(path.relative_to(objects)) for path in archives}
        shipped = (self.setting.dumps / ".shipped").read_text().splitlines()
        unshipped = [
            path.parent.name
            for path in self.setting.dumps.glob("oom_*/manifest.json")
            if f"{path.parent.name} shipped" not in shipped
        ]
        ids = Counter(row["death_id"] for row in last.values())
        return {
            "deaths": len(deaths),
            "ways": dict(Counter(self.expected.values())),
            "faults": dict(self.faults),
            "of the network": dict(self.proxy.happened),
            "rows": len(last),
            "lost": sorted(deaths - set(rows)),
            "twice": [label for label in deaths if rows[label] > 1]
            + [death for death, count in ids.items() if count > 1],
            "well": sorted(label for label in rows if label not in deaths),
            "left": unshipped + [str(path) for path in self.setting.sessions.rglob("*.session")],
            "archives": len(archives),
            "absent": sorted({row["raw_key"] for row in last.values() if row["raw_key"]} - names),
            "broken": [
                str(path)
                for path in archives
                if subprocess.run(["tar", "-tf", path], capture_output=True).returncode != 0
            ],
            "verdicts": dict(Counter(row["verdict"] for row in last.values())),
        }


def trials(build: Path, count: int, seed: int, kind: str) -> int:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="oomrec-trials-") as name:
        directory = Path(name)
        store = (RealStore if kind == "seaweedfs" else HttpStore)(directory / "store")
        proxy = Proxy(store.port)
        setting = Setting(build, directory, URL, proxy.endpoint)
        setting.environment["OOMREC_KERNEL_LOG"] = str(setting.kernel_log)
        words = ("--ship-raw", "50", "--ship-timeout", str(LONG_S))
        setting.watch(*words)
        try:
            all_trials = Trials(setting, store, proxy, seed, words)
            for number in range(count):
                all_trials.run(number)
                if number % 50 == 49:
                    print(f"{number + 1} trials", file=sys.stderr, flush=True)
            proxy.faults.clear()
            setting.stop()
            result = all_trials.result()
        finally:
            kill([setting.watcher.pid, *setting.descendants()])
            store.kill()
        bad = [key for key in ("lost", "twice", "well", "left", "absent", "broken") if result[key]]
        result |= {"trials": count, "seed": seed, "store": kind}
        result["seconds"] = round(time.monotonic() - begin)
        print(json.dumps(result, indent=2))
        if bad:
            print((directory / "log").read_text(errors="replace")[-3000:])
        return 1 if bad else 0


def measure(build: Path, count: int, kind: str) -> int:
    """From the kernel's kill to the row in the store."""
    with tempfile.TemporaryDirectory(prefix="oomrec-trials-") as name:
        directory = Path(name)
        objects = directory / "store"
        store = None
        if kind != "file":
            store = (RealStore if kind == "seaweedfs" else HttpStore)(objects)
        endpoint = f"http://127.0.0.1:{store.port}" if store else ""
        setting = Setting(build, directory, URL if store else f"file://{objects}", endpoint)
        setting.watch()
        atexit.register(setting.watcher.kill)  # nothing, once they have ended
        if store:
            atexit.register(store.kill)
        ledger = setting.dumps / ".shipped"
        status = Path(f"/proc/{setting.watcher.pid}/stat")

        def cpu_s() -> tuple[float, float]:
            fields = status.read_text().rpartition(")")[2].split()
            ticks = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15]]
            return ticks[0] + ticks[1], ticks[2] + ticks[3]

        def with_row() -> set[str]:  # bundles; it forgets those that retention has deleted
            lines = ledger.read_text().splitlines() if ledger.exists() else []
            return {line.split()[0] for line in lines if " row " in line}

        took, to_bundle = [], []
        before = cpu_s()
        for number in range(count):
            group = MemoryCgroup(f"oomrec_ship_{os.getpid()}_{number}", "32M")
            try:
                victim = setting.start(str(number), preexec_fn=group.enter)
                seen = with_row()
                time.sleep(0.3)  # the watcher has seen it
                victim.stdin.write(b"g")
                victim.stdin.flush()
                victim.wait()
                died = time.time()
                assert group.kills() == 1
                wait_for("the row", lambda seen=seen: with_row() - seen)
                took.append(time.time() - died)
                newest = max(path.stat().st_ctime for path in setting.dumps.glob("oom_*"))
                to_bundle.append(newest - died)
            finally:
                group.remove()
        time.sleep(1)
        after = cpu_s()
        setting.stop()
        if store:
            store.kill()
        took.sort()
        print(
            f"{kind}: {count} kills by a memory cgroup, from the process' end to the row's line in"
            f" .shipped: median {statistics.median(took):.3f} s,"
            f" p99 {took[int(0.99 * (count - 1))]:.3f} s, longest {took[-1]:.3f} s;"
            f" to its bundle: median {statistics.median(to_bundle):.3f} s.\n"
            f"CPU for each: watcher {1000 * (after[0] - before[0]) / count:.1f} ms,"
            f" its children {1000 * (after[1] - before[1]) / count:.1f} ms;"
            f" load {os.getloadavg()[0]:.1f}"
        )
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what it has started
    if options.measure:
        return measure(build, options.measure, options.store)
    return trials(build, options.trials, options.seed, options.store)


if __name__ == "__main__":
    sys.exit(main())
