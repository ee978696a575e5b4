"""scripts/signatures: do deaths of one cause have one signature, and those of two causes two?"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from memory_cgroup import MemoryCgroup
from pythons import find_python, has_module

from signatures.causes import GIANT, LIMIT, PROGRAMS, Program
from signatures.refactoring import copied

SOURCES = Path(__file__).parent / "programs"
CHANGES = {
    "base": "", "shifted": "shifted", "refactored": "refactored", "reentered": "reentered",
}  # fmt: skip
KEPT = {
    "refactored": "After a refactoring around the path",
    "reentered": "After one that moves the program's start into another function",
}  # fmt: skip
TIMEOUT_S = 300


@dataclass(frozen=True)
class Variant:
    """One way in which all programs of a language are built and run."""

    name: str
    change: str = "base"
    python: str = "3.11"
    by_module: bool = False
    compiler: str = "g"  # with ++ or cc behind it
    flags: tuple[str, ...] = ("-O2", "-g")
    more_mib: int = 0
    mode: str = "sampled"
    killed: bool = False


OF_ANY_LANGUAGE = (
    Variant("base"),
    Variant("shifted", "shifted"),
    Variant("refactored", "refactored"),
    Variant("reentered", "reentered"),
    Variant("exact", more_mib=24, mode="exact"),
    Variant("killed", killed=True),
)
PYTHON = (
    *OF_ANY_LANGUAGE,
    Variant("module", "shifted", by_module=True),
    Variant("older", python="3.8"),
    Variant("newer", "shifted", python="3.13"),
    Variant("3.10", python="3.10"),
)
NATIVE = (
    *OF_ANY_LANGUAGE,
    Variant("O0", flags=("-O0", "-g")),
    Variant("O3", "shifted", flags=("-O3", "-flto", "-g")),
    Variant("clang", compiler="clang", flags=("-O2", "-g")),
    Variant("names", flags=("-O2",)),
)
GPU_LEFT_OUT = ("killed", "exact")


@dataclass
class Run:
    program: Program
    cause: str
    kind: str
    variant: Variant
    row: dict[str, Any] | None = None
    problem: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The right answers. A kill has no request: a giant one is then memory that was used late."""
        return (self.kind, LIMIT) if self.variant.killed and self.kind == GIANT else (self.kind,)

    @property
    def label(self) -> str:
        return f"{self.program.name}.{self.cause}"


class Workshop:
    """Sources, compiled programs and interpreters."""

    def __init__(self, build: Path, folder: Path, interpreters: list[str]):
        self.build, self.folder = build.resolve(), folder
        self.interpreters = interpreters
        for change in CHANGES:
            copied(SOURCES, self.checkout(change), change)

    def checkout(self, change: str) -> Path:
        return self.folder / ("src" if change == "base" else f"work-{change}/tree") / "programs"

    def python(self, version: str, module: str) -> str | None:
        named = [each for each in self.interpreters if version_of(each) == version]
        for path in [*named, find_python(version)]:
            if path and (not module or has_module(path, module)):
                return path
        return None

    def compiled(self, source: str, variant: Variant) -> Path:
        """The program, or the library, of a source."""
        path = self.checkout(variant.change) / source
        is_library = source in ("codec.c", "engine.cpp")
        flags = "".join(variant.flags).replace("-", "") + variant.compiler
        folder = self.checkout(variant.change) / f"build-{flags}"
        made = folder / (f"lib{path.stem}.so" if is_library else path.stem)
        if made.exists():
            return made
        folder.mkdir(exist_ok=True)
        is_c = path.suffix == ".c"
        compiler = {"g": ("gcc", "g++"), "clang": ("clang-14", "clang++-14")}[variant.compiler][
            not is_c
        ]
        words = [compiler, *variant.flags, "-Wall", str(path), "-pthread", "-ldl"]
        words += ["-std=c11", "-D_GNU_SOURCE"] if is_c else ["-std=c++20"]
        partial = made.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [*words, *(["-shared", "-fPIC"] if is_library else []), "-o", partial], check=True
        )
        partial.rename(made)
        return made

    def words(self, run: Run) -> list[str] | None:
        """The command line; None if it cannot be run here."""
        program, variant = run.program, run.variant
        arguments = [run.cause]
        if program.library:
            library = [str(self.compiled(program.library, variant))]
            arguments = library + arguments if program.library_first else arguments + library
        if program.language != "python":
            return [
                str(
                    self.compiled(
                        f"{program.name}.{'c' if program.language == 'c' else 'cpp'}", variant
                    )
                ),
                *arguments,
            ]
        python = self.python(variant.python, program.module)
        if python is None:
            return None
        start = [python] if program.module else [python, "-S"]
        if program.is_package or variant.by_module:
            return [*start, "-m", program.name, *arguments]
        return [*start, f"{program.name}.py", *arguments]


@functools.lru_cache(maxsize=None)
def version_of(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def variants_of(program: Program) -> tuple[Variant, ...]:
    found = PYTHON if program.language == "python" else NATIVE
    if program.uses_gpu:
        found = tuple(each for each in found if each.name not in GPU_LEFT_OUT)
    return found


def perform(run: Run, workshop: Workshop, folder: Path) -> None:
    """Runs it to its death, unless an earlier run has kept its bundle, and takes the row."""
    if not (folder / "dumps").exists():
        run_to_death(run, workshop, folder)
    if not run.problem:
        take_row(run, workshop, folder)


def environment_of(folder: Path, workshop: Workshop) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "7",
        "OPENBLAS_NUM_THREADS": "1",
        "OOMREC_DUMP_DIR": str(folder / "dumps"),
        "OOMREC_SESSION_DIR": str(folder / "sessions"),
        "OOMREC_MAX_DUMPS": "0",
        "OOMREC_QUIET": "1",
        "XDG_CACHE_HOME": str(workshop.folder / "cache"),
    }


def run_to_death(run: Run, workshop: Workshop, folder: Path) -> None:
    words = workshop.words(run)
    if words is None:
        run.problem = "no interpreter"
        return
    program, variant = run.program, run.variant
    (folder / "sessions").mkdir(parents=True, mode=0o700, exist_ok=True)
    environment = {**environment_of(folder, workshop), "OOMREC_MODE": variant.mode}
    limit_mib = program.limit_mib + variant.more_mib
    group = None
    if program.uses_gpu:
        environment["LD_LIBRARY_PATH"] = str(workshop.build / "tests" / "fake_gpu")
    elif variant.killed:
        group = MemoryCgroup(f"oomrec_signatures_{os.getpid()}_{folder.name}", f"{limit_mib}M")
    else:
        environment["OOMREC_LIMIT"] = f"{limit_mib}M"
    recorded = {**environment, "LD_PRELOAD": str(workshop.build / "liboomrec.so")}
    with contextlib.ExitStack() as stack:
        if group:
            stack.callback(group.remove)
        log = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(
            words,
            env=recorded,
            cwd=workshop.checkout(variant.change),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=group.enter if group else None,
        )
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            run.problem = "it did not die"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
    if group:
        subprocess.run(
            [workshop.build / "oomrec", "recover", "--unknown", "--quiet"],
            env=environment,
            capture_output=True,
            timeout=TIMEOUT_S,
        )


def take_row(run: Run, workshop: Workshop, folder: Path) -> None:
    exported = subprocess.run(
        [workshop.build / "oomrec", "export", "--format", "row", folder / "dumps"],
        env=environment_of(folder, workshop),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    about_memory = [
        row for row in rows
        if row["kind"] in ("death", "failure") and row["episode_role"] == "root" and row["verdict"] != "killed_externally"
    ]  # fmt: skip
    if not about_memory:
        run.problem = (
            run.problem
            or f"no death: {exported.stderr.strip()[-200:]} {(folder / 'log').read_text()[-300:]}"
        )
        return
    # Of several processes the one that is surest to have died of it.
    order = ["proven", "likely", "possible", None]
    run.row = min(about_memory, key=lambda row: order.index(row["certainty"]))


def pairs(names: list[str]) -> set[tuple[int, int]]:
    """The pairs of places with the same name."""
    of: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        of[name].append(place)
    return {pair for places in of.values() for pair in itertools.combinations(places, 2)}


@dataclass(frozen=True)
class Score:
    precision: float
    recall: float
    groups: int

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def score_of(truth: list[str], found: list[str]) -> Score:
    right, made = pairs(truth), pairs(found)
    both = len(right & made)
    return Score(
        both / len(made) if made else 1.0, both / len(right) if right else 1.0, len(set(found))
    )


def by_request(row: dict[str, Any]) -> str:
    """The peer: the program's own frames of the failed request, else the verdict."""
    frames = (row["request"] or {}).get("frames", [])
    own = [f"{frame['file']}:{frame['function']}" for frame in frames if frame["own"]]
    return " < ".join(own) or row["verdict"]


@dataclass(frozen=True)
class Result:
    runs: list[Run]

    @property
    def known(self) -> list[Run]:
        return [run for run in self.runs if run.row is not None]

    def score(
        self, name_of: Callable[[dict[str, Any]], str], without: tuple[str, ...] = ()
    ) -> Score:
        runs = [run for run in self.known if run.variant.name not in without]
        return score_of([run.label for run in runs], [name_of(run.row or {}) for run in runs])

    def kept(self, variant: str) -> tuple[int, int]:
        """(kept, all): how often a variant leaves the key as it was."""
        bases = {run.label: key_of(run) for run in self.known if run.variant.name == "base"}
        compared = [run for run in self.known if run.variant.name == variant and run.label in bases]
        return sum(key_of(run) == bases[run.label] for run in compared), len(compared)

    def kinds(self) -> Counter[str]:
        """right, wrong or none: of the column `cause`."""
        counts: Counter[str] = Counter()
        for run in self.known:
            said = (run.row or {})["cause"]
            counts["none" if said is None else "right" if said in run.kinds else "wrong"] += 1
        return counts


def key_of(run: Run) -> str:
    return (run.row or {}).get("signature") or "unknown"


def print_details(result: Result) -> None:
    by_label: dict[str, list[Run]] = defaultdict(list)
    for run in result.runs:
        by_label[run.label].append(run)
    for label, runs in by_label.items():
        keys = Counter(key_of(run) for run in runs if run.row)
        usual = keys.most_common(1)[0][0] if keys else "-"
        print(f"{label} ({runs[0].kind}): {usual}")
        for run in runs:
            if run.row is None:
                print(f"    {run.variant.name:<11} {run.problem}")
                continue
            notes = [] if key_of(run) == usual else [key_of(run)]
            if run.row["cause"] not in run.kinds:
                notes.append(
                    f"cause: {run.row['cause']}, {run.row['verdict']}, {len(run.row['timeline_ms'])} moments"
                )
            if notes:
                print(f"    {run.variant.name:<11} {'; '.join(notes)}")


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / max(whole, 1):.1f} %)"


def table(result: Result) -> str:
    def signature(row: dict[str, Any]) -> str:
        return row["signature"] or "unknown"

    scores = {
        "signature": result.score(signature),
        "without those that move the start": result.score(signature, ("reentered",)),
        "its first function alone": result.score(lambda row: row["signature_coarse"] or "unknown"),
        "the failed request's own frames, else the verdict": result.score(by_request),
    }
    kinds = result.kinds()
    answered = kinds["right"] + kinds["wrong"]
    causes = {run.label for run in result.known}
    return "\n".join(
        [
            f"{len(result.known)} deaths of {len(causes)} causes in {len(PROGRAMS)} programs:",
            "",
            "| | precision | recall | F1 | groups |",
            "| --- | --- | --- | --- | --- |",
            *(
                f"| {name} | {each.precision:.3f} | {each.recall:.3f} | {each.f1:.3f} | {each.groups} |"
                for name, each in scores.items()
            ),
            "",
            *(
                f"{what}: {share(*result.kept(name))} have the same signature."
                for name, what in KEPT.items()
            ),
            f"`cause`: right in {share(kinds['right'], answered)} of the deaths with an answer, "
            f"{kinds['none']} have none.",
        ]
    )


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/signatures",
        description="Runs programs whose causes are known, each in several variants, and compares the signatures.",
    )
    parser.add_argument(
        "--program", action="append", metavar="NAME", help="only this program; may be repeated"
    )
    parser.add_argument(
        "--variant", action="append", metavar="NAME", help="only this variant; may be repeated"
    )
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PATH",
        help="an interpreter with packages, for its version",
    )
    parser.add_argument(
        "--rows", metavar="FILE", help="write the rows to FILE, or read them: with --read"
    )
    parser.add_argument("--read", action="store_true", help="run nothing: score the rows of --rows")
    parser.add_argument(
        "--keep", metavar="DIR", help="keep bundles in DIR, and use those that are there"
    )
    parser.add_argument("--quiet", action="store_true", help="print the table alone")
    parser.add_argument("-j", type=int, default=4, metavar="N", help="N programs at a time (4)")
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> list[Run]:
    return [
        Run(program, cause, kind, variant)
        for program in PROGRAMS
        for cause, kind in program.kinds
        for variant in variants_of(program)
        if (not options.program or program.name in options.program)
        and (not options.variant or variant.name in options.variant)
    ]


def performed(runs: list[Run], options: argparse.Namespace, build: Path) -> None:
    with contextlib.ExitStack() as stack:
        folder = Path(
            options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="oomrec-"))
        )
        workshop = Workshop(build, folder.resolve(), options.python)
        for run in runs:  # compiles, one after the other
            workshop.words(run)
        with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
            jobs = [
                pool.submit(
                    perform, run, workshop, folder.resolve() / f"{run.label}-{run.variant.name}"
                )
                for run in runs
            ]
            for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                job.result()
                if sys.stderr.isatty():
                    print(f"\r{number} of {len(jobs)}", end="", file=sys.stderr)


def main(words: list[str]) -> int:
    options = parsed(words)
    build = Path(os.environ.get("OOMREC_TEST_BUILD", "build"))
    runs = chosen(options)
    if options.read:
        found = {}
        for line in Path(options.rows).read_text().splitlines():
            each = json.loads(line)
            found[each["label"], each["variant"]] = each["row"]
        for run in runs:
            run.row = found.get((run.label, run.variant.name))
    else:
        performed(runs, options, build)
        if options.rows:
            lines = [
                json.dumps({"label": run.label, "variant": run.variant.name, "row": run.row}) + "\n"
                for run in runs if run.row
            ]  # fmt: skip
            Path(options.rows).write_text("".join(lines))
    result = Result(runs)
    if not options.quiet:
        print_details(result)
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
