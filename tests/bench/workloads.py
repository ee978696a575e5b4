"""The workloads: a program, what is measured, and the goal for the recorder's cost.

A goal is a bound for one of our modes: `ratio` to the same run without a recorder, `added` in the
workload's own unit, `added_mib` of resident memory, `like` another workload's added time.
"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Workload:
    name: str
    group: str  # the argument of --only
    title: str
    command: list[str]
    unit: str = "s"  # "s" and "ms" of CPU time per run; "ns" per malloc and free
    printed: bool = False  # the program prints its figure; otherwise CPU time of all its processes
    starts: int = 1  # a figure is the mean of this many runs, if one is too short to measure
    environment: dict[str, str] = field(default_factory=dict)
    goals: dict[str, dict] = field(default_factory=dict)  # of "sampled" and "exact"
    ours_alone: bool = False  # without a counterpart in peers

    @property
    def is_python(self) -> bool:
        return self.command[0].endswith("python")


def goals(sampled: dict, exact: dict) -> dict[str, dict]:
    return {"sampled": sampled, "exact": exact}


def workloads(build: Path, scratch: Path, quick: bool) -> list[Workload]:
    """All workloads. A quick run does a tenth of the work: enough to try, not to quote."""
    python = str(build / "venv" / "bin" / "python")

    def size(whole: int) -> str:
        return str(whole // 10 if quick else whole)

    def native(name: str, *arguments: str) -> list[str]:
        return [str(build / "tests" / "bench" / name), *arguments]

    def script(name: str, *arguments: str) -> list[str]:
        return [python, str(HERE / name), *arguments]

    def has_modules(names: str) -> bool:
        found = subprocess.run([python, "-c", f"import {names}"], capture_output=True)
        return found.returncode == 0

    def micro(pattern: str, depth: int, meaning: str, bounds: dict) -> Workload:
        command = native("micro", pattern, str(depth), size(1_000_000))
        title = f"micro, {depth + 6} frames, {meaning}"
        return Workload(
            f"micro-{pattern}{depth}", "micro", title, command, "ns", True, goals=bounds
        )

    def threads(count: int, title: str, bounds: dict) -> Workload:
        name = f"threads-{count}" if count else "hand-over"
        command = native("threads", str(count), size(1_000_000))
        return Workload(name, "threads", title, command, "ns", True, goals=bounds)

    def labels(what: str, title: str, bounds: dict) -> Workload:
        command = native("labels", what, size(1_000_000))
        return Workload(
            f"labels-{what}", "labels", title, command, "ns", True, goals=bounds, ours_alone=True
        )

    def devices(name: str, title: str, what: str, bounds: dict) -> Workload:
        driver = str(build / "tests" / "fake_gpu" / "libcuda.so.1")
        command = native("devices", driver, what, size(200_000))
        return Workload(f"devices-{name}", "devices", title, command, "ns", True, goals=bounds)

    def python_pair(
        name: str, title: str, command: list[str], malloc: dict, own: dict, printed=False
    ):
        """A Python program with every object from malloc, and with Python's own allocator."""
        setting = {"PYTHONMALLOC": "malloc"}
        yield Workload(
            f"{name}-malloc", name, f"{title}, PYTHONMALLOC=malloc", command, "s", printed,
            environment=setting, goals=malloc,
        )  # fmt: skip
        yield Workload(f"{name}-pymalloc", name, title, command, "s", printed, goals=own)

    def coroutines():
        """2,000 that take turns and fill a block in each, of the libraries that are there."""
        victims = HERE.parent / "victims"
        fibres = build / "tests" / "victims" / "fibres"
        turns = size(100)
        at_most = goals({"ratio": 1.5}, {})
        if fibres.exists():
            command = [str(fibres), "protected", "2000", turns, "ends"]
            yield Workload(
                "coroutines-boost", "coroutines", "2,000 fibres of Boost.Context", command,
                goals=at_most, ours_alone=True,
            )  # fmt: skip
        for kind in ("greenlet", "gevent"):
            if not has_modules(kind):
                continue
            program = str(victims / "python" / "coroutines.py")
            command = [python, program, kind, "2000", turns, "ends"]
            yield Workload(
                f"coroutines-{kind}", "coroutines", f"2,000 coroutines of {kind}", command,
                goals=at_most, ours_alone=True,
            )  # fmt: skip

    def web():
        """Where Django and FastAPI are installed."""
        if not has_modules("django, fastapi"):
            return
        yield Workload(
            "web", "web", "Django and FastAPI, requests", script("web.py", size(300)),
            goals=goals({"ratio": 1.05}, {}),
        )  # fmt: skip

    like_one = {"like": "threads-1"}
    three_ms = goals({"added": 3}, {"added": 3})
    return [
        micro("a", 10, "only the innermost changes", goals({"added": 5}, {"added": 14})),
        micro("a", 30, "only the innermost changes", goals({"added": 5}, {"added": 20})),
        micro("a", 100, "only the innermost changes", goals({"added": 5}, {"added": 40})),
        micro("b", 30, "up to half of them change", {}),
        micro("c", 30, "all of them change", {}),
        threads(1, "one thread", {}),
        threads(2, "two threads", goals(like_one, like_one)),
        threads(4, "four threads", {}),
        threads(0, "one thread makes, another frees", {}),
        labels("push", "a label is pushed and popped", goals({"added": 200}, {"added": 200})),
        labels("none", "64 KiB under no label", {}),
        labels("blocks", "64 KiB under two labels", {}),
        Workload("live-blocks", "live", "1 M live blocks, a random one replaced",
                 native("live_blocks", "1000000", size(1_000_000)), "ns", True),
        devices("blocks", "cuMemAlloc and cuMemFree of a fake driver", "blocks",
                goals({"added": 1000}, {"added": 1000})),
        devices("look-ups", "a look-up by dlsym", "look-ups", goals({"added": 20}, {"added": 20})),
        Workload("server", "server", "server, 200 threads", native("server", "200", size(200_000))),
        *coroutines(),
        *python_pair("json", "JSON and objects", script("json_objects.py", size(50)),
                     goals({"ratio": 1.12, "added_mib": 6}, {"ratio": 1.65, "added_mib": 12}),
                     goals({"ratio": 1.02}, {"ratio": 1.02})),
        *python_pair("numpy", "NumPy, small arrays", script("numpy_small.py", size(40_000)),
                     goals({"ratio": 1.06}, {"ratio": 1.40}), goals({"ratio": 1.02}, {"ratio": 1.12})),
        *python_pair("torch", "torch training loop", script("torch_loop.py", size(1_000)),
                     goals({"ratio": 1.03}, {"ratio": 1.20}), goals({"ratio": 1.02}, {"ratio": 1.12}),
                     printed=True),
        *web(),
        Workload("import-torch", "torch", "import torch", script("import_torch.py"),
                 goals=goals({"added_mib": 16}, {"added_mib": 80})),
        Workload("fib", "fib", "fib(30) in Python: no allocations",
                 script("fib.py", "22" if quick else "30"), "s", True,
                 goals=goals({"ratio": 1.0}, {"ratio": 1.0})),
        Workload("start-true", "start", "start of /bin/true", ["/bin/true"], "ms", starts=20,
                 goals=three_ms),
        Workload("start-python", "start", "start of python -c pass", [python, "-c", "pass"], "ms",
                 starts=5, goals=three_ms),
        Workload("cc1plus", "cc1plus", "cc1plus -O1, a real file", compiler(build, scratch)),
    ]  # fmt: skip


def compiler(build: Path, scratch: Path) -> list[str]:
    """The compiler proper on one of our tests, preprocessed: the driver would start it as a child,
    and some recorders do not follow children."""
    source = HERE.parent / "unit" / "tools" / "mutations.cpp"
    preprocessed = scratch / "source.ii"

    def ask(*arguments: str) -> str:
        return subprocess.run(
            ["g++", *arguments], check=True, capture_output=True, text=True
        ).stdout

    ask(
        "-E",
        "-std=c++20",
        "-D_GNU_SOURCE",
        "-w",
        f"-I{HERE.parent.parent}",
        str(source),
        "-o",
        str(preprocessed),
    )
    program = ask("-print-prog-name=cc1plus").strip()
    return shlex.split(
        f"{program} -fpreprocessed {preprocessed} -std=c++20 -quiet -O1 -o /dev/null"
    )
