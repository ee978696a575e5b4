"""A fuzzing campaign: campaign.py --fuzz PROGRAM --hours H --directory DIR [--mutations | --keep FILE] TARGET… (README.md).

The targets take turns of two minutes, one a processor, until each has had its share of H processor hours. What
each has had is in DIR/figures.json, so a campaign that was stopped goes on where it was. Inputs that reach new code
are kept in DIR/corpus (libFuzzer only); findings lie in DIR/findings. Ends with 1 if there is one.

With --keep nothing is fuzzed: the fewest and smallest inputs of DIR/corpus that reach the same code go to an archive, FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

TURN_SECONDS = 120


class Campaign:
    """What all targets have had so far, and whose turn is next. Shared by the threads."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.directory: Path = options.directory
        self.share = options.hours * 3600 / len(options.targets)
        self.lock = threading.Lock()
        self.running: set[str] = set()
        self.figures: dict[str, dict] = {}
        if self.file.exists():
            self.figures = json.loads(self.file.read_text())
        for target in options.targets:
            self.figures.setdefault(target, {"processor_s": 0.0, "inputs": 0, "turns": 0})

    @property
    def file(self) -> Path:
        return self.directory / "figures.json"

    def next_target(self) -> str | None:
        """The target that has had the least and is owed more; None when there is nothing to start."""
        with self.lock:
            owed = [
                target
                for target in self.options.targets
                if target not in self.running and self.figures[target]["processor_s"] < self.share
            ]
            if not owed:
                return None
            target = min(owed, key=lambda each: self.figures[each]["processor_s"])
            self.running.add(target)
            return target

    def command(self, target: str) -> list[str | Path]:
        seeds = self.directory / "seeds" / target
        findings = self.directory / "findings" / target
        findings.mkdir(parents=True, exist_ok=True)
        left = self.share - self.figures[target]["processor_s"]
        seconds = max(1, min(TURN_SECONDS, int(left)))
        if self.options.mutations:
            seed = str(self.figures[target]["turns"] + 1)
            words = ["--seconds", str(seconds), "--seed", seed, "--findings", findings]
            return [self.options.fuzz, target, *words, seeds]
        corpus = self.directory / "corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        bounds = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1"]
        time = f"-max_total_time={seconds}"
        return [self.options.fuzz, time, *bounds, f"-artifact_prefix={findings}/", corpus, seeds]

    @staticmethod
    def run_fuzz(target: str, command: list[str | Path], log: Path) -> tuple[int, float]:
        """Its status and processor seconds."""
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "FUZZ_TARGET": target},
            )
            _, status, used = os.wait4(process.pid, 0)
        return status, used.ru_utime + used.ru_stime

    def confirm(self, target: str) -> None:
        """Removes findings of slowness that are none: libFuzzer measures by the clock, also while it is stopped."""
        if self.options.mutations:
            return
        for pattern in ("slow-unit-*", "timeout-*"):
            for finding in (self.directory / "findings" / target).glob(pattern):
                status, seconds = self.run_fuzz(
                    target, [self.options.fuzz, "-timeout=100", finding], Path(os.devnull)
                )
                if status == 0 and seconds < 10:
                    finding.unlink()

    def turn(self, target: str) -> None:
        """One turn of a target; what it cost and read is counted however it ended."""
        _, used = self.run_fuzz(target, self.command(target), self.directory / f"{target}.log")
        self.confirm(target)
        text = (self.directory / f"{target}.log").read_text(errors="replace")
        inputs = re.search(r"number_of_executed_units: (\d+)|: (\d+) inputs", text)
        covered = re.findall(r" cov: (\d+) ", text)
        with self.lock:
            figures = self.figures[target]
            figures["processor_s"] = round(figures["processor_s"] + used, 1)
            figures["inputs"] += int(inputs[1] or inputs[2]) if inputs else 0
            figures["turns"] += 1
            if covered:
                figures["covered_edges"] = int(covered[-1])
            self.running.discard(target)
            self.file.write_text(json.dumps(self.figures, indent=1))

    def run(self) -> None:
        while (target := self.next_target()) is not None:
            self.turn(target)

    def keep(self, archive: Path) -> None:
        """Writes the archive: corpus/TARGET/INPUT, numbered. The same inputs give the same bytes."""

        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o644
            return entry

        with tempfile.TemporaryDirectory() as scratch:
            for target in self.options.targets:
                kept = Path(scratch) / target
                kept.mkdir()
                words = ["-merge=1", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
                corpus = self.directory / "corpus" / target
                status, _ = self.run_fuzz(
                    target, [self.options.fuzz, *words, kept, corpus], Path(os.devnull)
                )
                if status != 0:
                    raise SystemExit(f"{target}: the fuzzer cannot merge {corpus}")
            with tarfile.open(archive, "w:xz") as tar:
                for target in self.options.targets:
                    for number, path in enumerate(sorted((Path(scratch) / target).iterdir())):
                        tar.add(path, f"corpus/{target}/{number}", filter=plain)

    def findings(self) -> list[Path]:
        return sorted(path for path in self.directory.glob("findings/*/*") if path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fuzz", type=Path, required=True)
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--mutations", action="store_true", help="without libFuzzer")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("targets", nargs="+")
    options = parser.parse_args()
    campaign = Campaign(options)
    if options.keep:
        campaign.keep(options.keep)
        return 0
    threads = [threading.Thread(target=campaign.run) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for target, figures in campaign.figures.items():
        print(f"{target}: " + ", ".join(f"{key} {value}" for key, value in figures.items()))
    for finding in campaign.findings():
        print(f"finding: {finding}")
    return 1 if campaign.findings() else 0


if __name__ == "__main__":
    sys.exit(main())
