"""Measures what recorders cost: every workload with each of them, in interleaved rounds.

scripts/bench builds what this runs and starts it; this writes results.json, table.md and
overhead.svg into a folder, and prints the tables.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import commands
import figures
import leaks
import measure
import plot
import python_api
import reading
import refusal
import tables
from recorders import Recorder, recorders
from workloads import Workload, workloads

OUR_TIMEOUT_S = 300
PARTS = (reading, refusal, commands, leaks, python_api)  # measurements outside of the workloads
SLOW_S = 5  # CPU time: a peer that takes longer for one run gets no second one


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peer-rounds", type=int)
    parser.add_argument("--peer-seconds", type=float, default=60)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.peer_rounds = options.peer_rounds or (1 if options.quick else 3)
    return options


def clean_environment() -> dict[str, str]:
    """The machine's environment without variables that change programs or recorders."""
    prefixes = ("OOMREC_", "LD_", "PYTHON", "MALLOC_", "HEAPPROFILE", "DEBUGINFOD_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "OOMREC_SESSION_DIR" or not name.startswith(prefixes)
    }
    return {**kept, "LC_ALL": "C.UTF-8"}


def machine() -> dict:
    """The machine's relevant properties, without anything that identifies it."""
    cpu = memory_gib = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(": ")[2]
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            memory_gib = round(int(line.split()[1]) / 1024**2)
    virtual = any("hypervisor" in line for line in Path("/proc/cpuinfo").read_text().splitlines())
    return {
        "cores": os.cpu_count(),
        "cpu": cpu,
        "virtual": virtual,
        "memory_gib": memory_gib,
        "kernel": platform.release().partition("-")[0],
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def figure_of(workload: Workload, used: measure.Used) -> float:
    if workload.printed:
        return float(used.figure)
    return used.cpu_s * (1000 if workload.unit == "ms" else 1)


def run_once(
    workload: Workload, recorder: Recorder, base: dict, result: dict, timeout_s: float
) -> None:
    """Adds one figure to the result, or the reason why there is none."""
    starts = []
    for _ in range(workload.starts):
        with tempfile.TemporaryDirectory(prefix="oomrec-bench-") as name:
            folder = Path(name)
            used = measure.run(
                recorder.command(workload.command, folder),
                {**base, **workload.environment, **recorder.environment(folder)},
                folder,
                timeout_s,
            )
        if used.stopped:
            result["stopped_cpu_s"] = used.cpu_s
            return
        try:
            if used.exit_code != 0:
                raise ValueError(f"exit code {used.exit_code}")
            starts.append((figure_of(workload, used), used))
        except ValueError as error:
            result["problem"] = f"{error}: {used.complaint[:200]}"
            return
    result["figures"].append(sum(figure for figure, _ in starts) / len(starts))
    result["cpu_s"].append(sum(used.cpu_s for _, used in starts) / len(starts))
    result["rss_mib"].append(starts[-1][1].rss_mib)


def goes_on(recorder: Recorder, result: dict, round_number: int, peer_rounds: int) -> bool:
    if result["problem"] or result["stopped_cpu_s"]:
        return False
    if recorder.ours or recorder.name == "none":
        return True
    slow = any(cpu_s > SLOW_S for cpu_s in result["cpu_s"])
    return round_number < peer_rounds and not slow


def measure_workload(
    workload: Workload, usable: list[Recorder], base: dict, options: argparse.Namespace
) -> dict:
    results = {
        recorder.name: {"figures": [], "cpu_s": [], "rss_mib": [], "stopped_cpu_s": None, "problem": None}
        for recorder in usable
        if recorder.takes(workload)
    }  # fmt: skip
    spare = {"figures": [], "cpu_s": [], "rss_mib": []}
    run_once(
        workload, usable[0], base, spare, OUR_TIMEOUT_S
    )  # brings the files into the page cache
    for number in range(options.rounds):
        taking = [recorder for recorder in usable if recorder.name in results]
        turn = number % len(taking)
        for recorder in taking[turn:] + taking[:turn]:
            result = results[recorder.name]
            if goes_on(recorder, result, number, options.peer_rounds):
                ours = recorder.ours or recorder.name == "none"
                timeout_s = OUR_TIMEOUT_S if ours else options.peer_seconds
                run_once(workload, recorder, base, result, timeout_s)
    return {
        "name": workload.name,
        "group": workload.group,
        "title": workload.title,
        "unit": workload.unit,
        "goals": workload.goals,
        "results": results,
    }


def measure_all(options: argparse.Namespace, scratch: Path) -> dict:
    base = clean_environment()
    python = str(options.build / "venv" / "bin" / "python")
    known = workloads(options.build, scratch, options.quick)
    chosen = [
        one for one in known if not options.only or {one.name, one.group} & set(options.only)
    ]  # fmt: skip
    others = {
        part.NAME: part for part in PARTS
        if not options.only or part.NAME in options.only
    }  # fmt: skip
    if not chosen and not others:
        groups = [*dict.fromkeys(one.group for one in known), *(part.NAME for part in PARTS)]
        sys.exit(f"scripts/bench: no such workload\n  --only takes one of: {' '.join(groups)}")
    usable, described = [], []
    for recorder in recorders(options.build, options.against, not options.without_peers):
        problem = recorder.problem(scratch, base, python)
        described.append({"name": recorder.name, "title": recorder.title, "problem": problem})
        if problem is None:
            usable.append(recorder)
        else:
            print(f"skipped: {recorder.title}: {problem}", flush=True)
    measured = []
    for workload in chosen:
        print(f"measuring {workload.name}: {workload.title}", flush=True)
        if workload.is_python and not Path(python).exists():
            print(
                "  skipped: there is no build/venv; scripts/bench without --without-peers makes it"
            )
            continue
        measured.append(measure_workload(workload, usable, base, options))
        for name, result in measured[-1]["results"].items():
            if result["problem"]:
                print(f"  {name}: {result['problem']}", flush=True)
    for workload in measured:
        for name, result in workload["results"].items():
            result["summary"] = figures.summary(workload, name)
    rows = {part.NAME: [] for part in PARTS}
    for name, part in others.items():
        print(f"measuring {name}: {part.__doc__.splitlines()[0]}", flush=True)
        rows[name] = part.measure_all(options.build, base, scratch, options.rounds, options.quick)
    return {
        "schema_version": 1,
        "date_utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "quick": options.quick,
        "rounds": options.rounds,
        "peer_rounds": 0 if options.without_peers else options.peer_rounds,
        "peer_seconds": options.peer_seconds,
        "machine": machine(),
        "recorders": described,
        "workloads": measured,
        **rows,
    }


def main() -> None:
    options = arguments()
    options.build = options.build.resolve()
    options.against = options.against and options.against.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    measure.adopt_orphans()
    if options.results:
        results = json.loads(options.results.read_text())
    else:
        with tempfile.TemporaryDirectory(prefix="oomrec-bench-") as scratch:
            results = measure_all(options, Path(scratch))
        (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = tables.all_tables(results)
    (options.out / "table.md").write_text(text)
    (options.out / "overhead.svg").write_text(plot.svg(results))
    print(f"\n{text}\nwritten: {options.out}/results.json, table.md, overhead.svg")


main()
