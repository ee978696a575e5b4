"""The command line of scripts/truth."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import machine_isolation

from truth import table
from truth.case import WAYS, Case
from truth.cases import CASES
from truth.grade import Grade
from truth.machine import Machine, Missing
from truth.sandbox import Result, run_case

EPILOG = """examples:
  scripts/truth -j 2                       every case, in every way it holds for
  scripts/truth --short                    a fixed part of them, in under a minute
  scripts/truth --way bare --class crash   one class, with LD_PRELOAD alone
  scripts/truth --case wild_pointer --keep /tmp/kept
                                           one case; its bundles and output stay in /tmp/kept

exit code: 0 no verdict is wrong, 1 some are, 2 a case could not run as it is written"""


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/truth",
        description="Runs programs whose deaths are known and grades oomrec's verdicts.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--way", choices=WAYS, help="only this way to record")
    parser.add_argument("--class", dest="group", metavar="CLASS", help="only cases of this class")
    parser.add_argument("--case", metavar="NAME", help="only cases whose name begins with NAME")
    parser.add_argument("--short", action="store_true", help="only the short form")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE, too")
    parser.add_argument("--keep", metavar="DIR", help="keep each case's files in DIR")
    parser.add_argument(
        "--doc", metavar="FILE", help="replace the table in this page (docs/deaths.md)"
    )
    parser.add_argument("-j", type=int, default=1, metavar="N", help="N cases at a time (1)")
    return parser.parse_args(words)


def chosen(wishes: argparse.Namespace) -> list[tuple[Case, str]]:
    return [
        (case, way)
        for case in CASES
        for way in case.ways
        if (not wishes.way or way == wishes.way)
        and (not wishes.group or case.group == wishes.group)
        and (not wishes.case or case.name.startswith(wishes.case))
        and (not wishes.short or case.short)
    ]


def attempt(machine: Machine, case: Case, way: str, scratch: Path, keep: bool) -> Result:
    directory = scratch / f"{case.name}-{way}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        return run_case(machine, case, way, directory)
    except Missing as missing:
        return Result(case, way, Grade("skipped", str(missing)), directory=str(directory))
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


def main(words: list[str]) -> int:
    wishes = parsed(words)
    cases = chosen(wishes)
    if wishes.list:
        for case, way in cases:
            print(f"{case.group:12} {case.name}-{way:6} {case.story}")
        return 0
    build = Path(os.environ.get("OOMREC_TEST_BUILD", "build")).resolve()
    if not (build / "oomrec").exists() or not (build / "liboomrec.so").exists():
        print(f"scripts/truth: nothing is built in {build}: run scripts/build", file=sys.stderr)
        return 2
    if not cases:
        print("scripts/truth: no such case: --list shows them", file=sys.stderr)
        return 2
    if not machine_isolation.enter():
        print("scripts/truth: needs root, to be undisturbed by other processes", file=sys.stderr)
        return 2
    machine = Machine(build)
    scratch = Path(wishes.keep or tempfile.mkdtemp(prefix="oomrec-truth-")).resolve()
    results: list[Result] = []
    with concurrent.futures.ThreadPoolExecutor(wishes.j) as pool:
        waiting = [
            pool.submit(attempt, machine, case, way, scratch, bool(wishes.keep))
            for case, way in cases
        ]
        for done in waiting:
            results.append(done.result())
            table.report(results[-1])
    if not wishes.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    table.summarize(results)
    if wishes.json:
        Path(wishes.json).write_text(
            json.dumps([table.row(result) for result in results], indent=1)
        )
    if wishes.doc:
        table.replace(Path(wishes.doc), results)
    grades = {result.grade.grade for result in results}
    return 2 if "broken" in grades else int("wrong" in grades)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
