"""The labelled set: programs that leak, with the function to blame, and programs that do not.

Each leak that a run reports is judged: it is right if it names the function to blame, else wrong.
A leaking program without a right one is missed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = ("exact", "sampled")
START_S = 300  # importing torch on a busy machine takes long


@dataclass(frozen=True)
class Case:
    name: str
    what: str
    culprit: str | None = None  # the leaking function; None: nothing leaks
    module: str | None = None  # a module that it needs
    native: bool = False

    def command(self, build: Path, python: str, seconds: float) -> list[str]:
        program = (
            [str(build / "tests" / "leaks" / "native")]
            if self.native
            else [python, str(HERE / "scripts.py")]
        )
        return [*program, self.name, str(seconds)]


def native(name: str, what: str, culprit: str | None = None) -> Case:
    return Case(name, what, culprit, native=True)


CASES = [
    native("slow_leak", "C: a block of 96 KiB ten times a second", "slow_leak"),
    native("fast_leak", "C: 10,000 small blocks a second", "fast_leak"),
    native("leak_after_warm_up", "C: small blocks, after 50 MiB were loaded", "leak_after_warm_up"),
    native("leaks_one_of_eight", "C: one block of eight is not freed", "leaks_one_of_eight"),
    native("endless_buffer", "C: a buffer that realloc makes larger for ever", "endless_buffer"),
    native("forgotten_mapping", "C: mappings without munmap", "forgotten_mapping"),
    native("leaking_threads", "C: four threads, each loses blocks", "leak_in_thread"),
    native("growing_map", "C++: a map that only grows", "growing_map"),
    Case("batches_in_a_list", "Python: lists of bytes, kept in a list", "batches_in_a_list"),
    Case("cache_without_bound", "Python: a dict as a cache, strings", "cache_without_bound"),
    Case("small_objects", "Python: tuples, floats, strings", "small_objects"),
    Case("handlers_never_removed", "Python: closures in a list of handlers", "subscribe"),
    Case("cycles_without_collector", "Python: cycles, gc switched off", "__init__"),
    Case("ctypes_without_free", "Python: malloc through ctypes", "ctypes_without_free"),
    Case("results_of_threads", "Python: each thread leaves its result", "work"),
    Case("arrays_in_a_list", "NumPy: arrays in a list", "arrays_in_a_list", "numpy"),
    Case("views_of_arrays", "NumPy: ten numbers of each array", "views_of_arrays", "numpy"),
    Case("losses_with_their_graphs", "torch: losses in a list, with their graphs",
         "losses_with_their_graphs", "torch"),
    Case("outputs_that_are_kept", "torch: outputs in a list", "outputs_that_are_kept", "torch"),
    native("steady_work", "C: blocks come and go"),
    native("warm_up", "C: loads for a third of the time"),
    native("early_block", "C: one block of 200 MiB, early"),
    native("sawtooth", "C: a buffer that is written out when it is full"),
    native("cache_that_levels_off", "C: a cache, full after a third of the time"),
    native("grown_then_freed", "C: grows for three quarters of the time, then freed"),
    native("bounded_buffer", "C: a buffer that doubles up to 32 MiB"),
    native("short_threads", "C++: threads start and end"),
    Case("cache_with_a_bound", "Python: lru_cache(maxsize=300)"),
    Case("cycles_with_collector", "Python: cycles that the collector finds"),
    Case("epochs", "Python: a list that is emptied after each epoch"),
    Case("window", "Python: a deque of the latest hundred"),
    Case("imports", "Python: module after module is imported"),
    Case("tables_at_first_use", "Python: tables made at first use"),
    Case("objects_that_come_and_go", "Python: thousands of small objects a step"),
    Case("arrays_of_a_step", "NumPy: arrays of one step", None, "numpy"),
    Case("training", "torch: a training loop", None, "torch"),
]  # fmt: skip


@dataclass
class Judged:
    case: Case
    mode: str
    result: dict  # of `oomrec leaks --json`
    right: list[dict]
    wrong: list[dict]

    @property
    def missed(self) -> bool:
        return self.case.culprit is not None and not self.right

    @property
    def as_labelled(self) -> bool:
        return not self.missed and not self.wrong


def names(leak: dict, function: str) -> bool:
    return any(
        function in (frame["function"] or "").replace("<locals>.", "").split("(")[0].split(".")
        for frame in leak["stack"]
    )


def judge(case: Case, mode: str, result: dict) -> Judged:
    right = [leak for leak in result["leaks"] if case.culprit and names(leak, case.culprit)]
    wrong = [leak for leak in result["leaks"] if leak not in right]
    return Judged(case, mode, result, right, wrong)


def run_case(build: Path, case: Case, mode: str, seconds: float, environment: dict,
             python: str = sys.executable) -> Judged:  # fmt: skip
    """Records the program, and runs `oomrec leaks` while it still holds its memory."""
    program = str(build / "oomrec")
    process = subprocess.Popen(
        [program, "run", "--quiet", "--mode", mode, "--", *case.command(build, python, seconds)],
        env=environment, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        has_done, _, _ = select.select([process.stdout], [], [], seconds + START_S)
        said = process.stdout.readline() if has_done else "nothing in time"
        if not said.startswith("done "):
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"{case.name}, {mode}: {said} {process.communicate()[1]}")
        leaks = subprocess.run(
            [program, "leaks", "--json", said.split()[1]],
            env=environment, capture_output=True, text=True, timeout=START_S,
        )  # fmt: skip
        assert leaks.returncode == 0, (case.name, leaks.stderr)
        return judge(case, mode, json.loads(leaks.stdout))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
