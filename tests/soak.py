"""The command line of scripts/soak: storms beside `oomrec watch`, and bounds on what they leave."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("OOMREC_TEST_BUILD", "build")).resolve()
MODES = ["sampled", "exact"]
STORMS = [["storm"], ["spawn_storm"], ["fork_storm"], ["prefork"], ["signals", "500"], ["leak"]]
AT_ONCE = 3  # storms
MOST_BUNDLES = 5  # --max-dumps
# Of processes that finish their bundles at the same time, one removes the surplus; what the others
# have just added stays until the next bundle.
MOST_SURPLUS = 2
# A process that starts leaves at most 20 recordings of dead ones (common/session/directories.h); those that
# a kill ends later, with their children, add to them.
MOST_DEAD = 20 + 10 * AT_ONCE
MOST_DEAD_BYTES = 256 << 20
MOST_DESCRIPTORS = 20  # of a watch without living processes; with each comes a pidfd
STALE_S = 30 + 60  # what a killed writer left is deleted with the next bundle (kAbandonedSeconds)
MIB = 1 << 20


@dataclasses.dataclass
class Sample:
    """What there is at one time. The bounds of `problems` are those of a machine at rest."""

    seconds: float
    watch_bytes: int
    watch_descriptors: int
    recordings: int
    recording_bytes: int
    bundles: int
    unfinished: int  # directories with a temporary name in the dump directory
    stale: int  # of these, older than they may get

    def is_at_rest(self) -> bool:
        return self.recordings <= MOST_DEAD and self.watch_descriptors <= MOST_DESCRIPTORS

    def __str__(self) -> str:
        return (
            f"{self.seconds:7.0f} s  watch {self.watch_bytes / MIB:6.1f} MiB,"
            f" {self.watch_descriptors:3} descriptors;"
            f" {self.recordings:3} recordings, {self.recording_bytes / MIB:6.1f} MiB;"
            f" {self.bundles} bundles, {self.unfinished} unfinished ({self.stale} stale)"
        )


def processor_s(group: int) -> float:
    """Processor time of the living processes of a process group."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Soak:
    def __init__(self, directory: Path, memory: Path, chance: random.Random):
        self.dumps = directory / "oom_dumps"
        self.memory = memory
        self.directory = directory
        self.chance = chance
        self.begin = time.monotonic()
        self.ended: dict[str, int] = {}
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("OOMREC_")},
            "OOMREC_SESSION_DIR": str(memory),
            "OOMREC_DUMP_DIR": str(self.dumps),
            "OOMREC_MAX_DUMPS": str(MOST_BUNDLES),
            "OOMREC_QUIET": "1",
        }
        self.dumps.mkdir()
        self.watch = subprocess.Popen(
            [BUILD / "oomrec", "watch", "--textfile", directory],
            env=self.environment,
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def storm(self, words: list[str], mode: str, killed_after_s: float | None) -> None:
        process = subprocess.Popen(
            [BUILD / "tests" / "victims" / words[0], *words[1:]],
            env={
                **self.environment,
                "LD_PRELOAD": str(BUILD / "liboomrec.so"),
                "OOMREC_MODE": mode,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self.ends(process, killed_after_s):
            how = "done" if process.returncode >= 0 else f"died of {-process.returncode}"
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its children, too
            how = "killed" if killed_after_s else "hung"
        process.wait()
        name = f"{words[0]} {how}"
        self.ended[name] = self.ended.get(name, 0) + 1

    def ends(self, process: subprocess.Popen, killed_after_s: float | None) -> bool:
        """Whether it ends before it is to be killed, or else before it hangs: it got no processor time in
        two minutes, or took twenty. At a low priority on a busy machine a storm takes minutes."""
        used_s = -1.0
        for _ in range(10):
            try:
                process.wait(killed_after_s or 120)
                return True
            except subprocess.TimeoutExpired:
                before_s, used_s = used_s, processor_s(process.pid)
                if killed_after_s or used_s == before_s:
                    break
        return False

    def one_storm(self, _: int) -> None:
        kill = self.chance.choice([None, self.chance.uniform(0.01, 0.5)])
        self.storm(self.chance.choice(STORMS), self.chance.choice(MODES), kill)

    def sample(self) -> Sample:
        status = Path(f"/proc/{self.watch.pid}/status").read_text()
        rss = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        sizes = []
        for file in self.memory.rglob("*.session"):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(file.stat().st_blocks * 512)
        names = [path.name for path in self.dumps.iterdir()]
        ages = []
        for path in self.dumps.glob(".*"):
            with contextlib.suppress(FileNotFoundError):
                ages.append(time.time() - path.stat().st_mtime)
        return Sample(
            time.monotonic() - self.begin,
            int(rss.split()[1]) << 10,
            len(os.listdir(f"/proc/{self.watch.pid}/fd")),
            len(sizes),
            sum(sizes),
            sum(name.startswith("oom_") for name in names),
            len(ages),
            sum(age > STALE_S for age in ages),
        )

    def at_rest(self, within_s: float = 60) -> Sample:
        """A sample when the watch has no process left to look after, or the last one."""
        until = time.monotonic() + within_s
        while not (sample := self.sample()).is_at_rest() and time.monotonic() < until:
            time.sleep(0.1)
        return sample


def problems(first: Sample, rest: list[Sample], ended: dict[str, int]) -> list[str]:
    """What is not bounded. `first`: after the first round; `rest`: the others, at rest."""
    last = rest[-1]
    # The first rounds may lack a kind of storm, with its symbols and series.
    growth = (8 if last.seconds >= 120 else 64) * MIB
    settled = max(first.watch_bytes, *(each.watch_bytes for each in rest[: len(rest) // 2 + 1]))
    expected = ("done", "killed")
    found = [
        f"{name}: {count} times" for name, count in ended.items() if not name.endswith(expected)
    ]
    checks = [
        (last.watch_bytes <= settled + growth, "the memory of oomrec watch grows"),
        (last.watch_descriptors <= MOST_DESCRIPTORS, "its descriptors stay"),
        (last.recordings <= MOST_DEAD, "recordings stay"),
        (last.recording_bytes <= MOST_DEAD_BYTES, "recordings take too much memory"),
        (last.bundles <= MOST_BUNDLES + MOST_SURPLUS, "bundles stay"),
        (last.stale == 0, "unfinished bundles stay"),
    ]
    return found + [words for is_bounded, words in checks if not is_bounded]


def run(seconds: float, seed: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="oomrec-soak-"))
        memory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="oomrec-soak-", dir="/dev/shm")
        )
        soak = Soak(Path(directory), Path(memory), random.Random(seed))
        stack.callback(soak.watch.wait)
        stack.callback(soak.watch.kill)
        workers = stack.enter_context(concurrent.futures.ThreadPoolExecutor(AT_ONCE))
        samples = []
        storms = AT_ONCE * (2 if seconds < 60 else 20)  # between two samples
        while len(samples) < 3 or samples[-1].seconds < seconds:
            list(workers.map(soak.one_storm, range(storms)))
            samples.append(soak.at_rest())
            print(samples[-1], flush=True)
        for name, count in sorted(soak.ended.items()):
            print(f"{count:6} × {name}")
        found = problems(samples[0], samples[1:], soak.ended)
        if soak.watch.poll() is not None:
            found.append(f"oomrec watch ended: {soak.watch.returncode}")
        return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Storms beside oomrec watch, and bounds on what they leave.",
    )
    parser.add_argument("--minutes", type=float, default=1, metavar="N", help="how long (1)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the choices (1)")
    words = parser.parse_args()
    found = run(words.minutes * 60, words.seed)
    print("\n".join(found) if found else "all bounded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
