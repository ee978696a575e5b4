"""Programs that reach the driver in other ways than ctypes: linked, through the CUDA runtime,
through frameworks. What is not installed is skipped; nothing is installed.
"""

from __future__ import annotations

import functools
import glob
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from .outcome import Failed, Skipped, expect, expect_equal, size
from .recorded import PROGRAMS, Lab, Run, names_line

SOURCE = Path(__file__).resolve().parents[2]

# A check takes the lab and the driver's properties, and returns a remark.


def check_fill(run: Run, file: str, threads: bool = False) -> str:
    """The failure that ended the function `fill` is recorded, with the holders of the rest.

    `threads`: the framework may allocate on threads of its own, where no line of Python runs, and in
    smaller pieces after the first refusal.
    """
    said, shown = run.facts(), run.failure()
    full = run.marked("full") if threads else shown
    held = full["spaces"]["cuda"]["live_bytes"]
    expect(held >= said["held"], f"{size(held)} recorded, {size(said['held'])} held")
    top = next(holder for holder in shown["holders"] if holder["space"] == "cuda")
    named = names_line(top["stack"], file, "fill")
    expect(named or threads, f"{file} is not named as the largest holder")
    where = "" if named else ", by a thread of the framework's"
    return f"{size(said['held'])}{where}; {shown['verdict']['summary']}"


# --- Compiled programs ----------------------------------------------------------------------------


def compiled(lab: Lab, *command: object) -> str:
    program = str(lab.directory / "program")
    done = subprocess.run(
        [*map(str, command), "-o", program], capture_output=True, text=True, timeout=lab.seconds()
    )
    if done.returncode != 0:
        raise Skipped(
            f"{command[0]} cannot build it: {(done.stderr.strip() or '?').splitlines()[-1]}"
        )
    return program


def linked(lab: Lab, machine: dict) -> str:
    """A program linked with the driver, whose calls reach our wrappers."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Skipped("no C compiler here")
    path = os.path.dirname(machine["library"])
    program = compiled(lab, compiler, "-g", PROGRAMS / "linked.c", machine["library"])
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    run = lab.must(program, LD_LIBRARY_PATH=f"{libraries}:{path}" if libraries else path)
    return check_fill(run, "linked.c")


def needs_a_gpu(machine: dict) -> None:
    if machine["simulated"]:
        raise Skipped("the CUDA runtime does not start on a simulated device")


def built_with_nvcc(*options: str):
    def check(lab: Lab, machine: dict) -> str:
        needs_a_gpu(machine)
        compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        if compiler is None:
            raise Skipped("no nvcc here")
        program = compiled(lab, compiler, "-g", *options, PROGRAMS / "runtime.cu")
        run = lab.must(program)
        expect(run.facts()["same"], "the kernel's result is another")
        return check_fill(run, "runtime.cu")

    return check


def runtime(lab: Lab, machine: dict) -> str:
    """The CUDA runtime's shared library, by ctypes."""
    needs_a_gpu(machine)
    places = importlib.util.find_spec("nvidia")
    roots = list(places.submodule_search_locations or []) if places else []
    found = [path for root in roots for path in glob.glob(f"{root}/*/lib/libcudart.so.*")]
    found += glob.glob("/usr/local/cuda/lib64/libcudart.so.*")
    if not found:
        raise Skipped("no libcudart.so here")
    return check_fill(lab.must("runtime.py", found[0]), "runtime.py")


# --- Frameworks -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def needs(lab: Lab, module: str) -> None:
    found = subprocess.run(
        [lab.python, "-c", f"import {module}"], capture_output=True, timeout=lab.seconds()
    )
    if found.returncode != 0:
        raise Skipped(f"{lab.python} has no {module}")


def filled_by(program: str, module: str, threads: bool = False, **options: str):
    def check(lab: Lab, machine: dict) -> str:
        needs(lab, module)
        return check_fill(lab.must(program, **options), program, threads)

    return check


# All of the device, otherwise JAX's own limit is reached first.
JAX = {"threads": True, "XLA_PYTHON_CLIENT_MEM_FRACTION": "1.0"}


def torch_figures(run: Run, mark: str) -> None:
    """At the mark PyTorch's own figures equal the recorded ones."""
    held, shown = run.marks()[mark], run.marked(mark)
    torch = run.device(shown, "cuda")["torch"]
    expect(torch, "PyTorch's reports were not seen")
    expect_equal("allocated, by PyTorch's own figures", torch["allocated_bytes"], held["allocated"])
    expect_equal("reserved, by PyTorch's own figures", torch["reserved_bytes"], held["reserved"])
    spaces = shown["spaces"]
    expect_equal("tensors alive", spaces["torch"]["live_bytes"], held["allocated"])
    live, reserved = spaces["cuda"]["live_bytes"], held["reserved"]
    expect(live >= reserved, f"{size(live)} from the driver, less than reserved: {size(reserved)}")


def torch_fill(lab: Lab, machine: dict) -> str:
    needs(lab, "torch")
    run = lab.must("with_torch.py", "fill")
    torch_figures(run, "full")
    return check_fill(run, "with_torch.py")


def torch_recover(lab: Lab, machine: dict) -> str:
    """PyTorch frees its cache and retries: one bundle, of a program that has recovered."""
    needs(lab, "torch")
    run = lab.must("with_torch.py", "recover")
    outcomes = [shown["outcome"] for shown in run.failures()]
    expect_equal("outcomes of the bundles", outcomes, ["recovered"])
    torch_figures(run, "recovered")
    return "one bundle, recovered"


def torch_fragments(lab: Lab, machine: dict) -> str:
    """A failure although more is free in PyTorch's segments."""
    needs(lab, "torch")
    run = lab.must("with_torch.py", "fragments")
    shown = run.failures()[-1] if run.failures() else None
    if shown is None:
        raise Failed("no bundle of the failure")
    expect_equal("verdict", shown["verdict"]["code"], "device_fragmentation")
    return shown["verdict"]["summary"]


def torch_profiler(lab: Lab, machine: dict) -> str:
    """torch.profiler sees as many memory events as without the recorder."""
    needs(lab, "torch")
    plain = lab.must("with_torch.py", "profile", recorded=False).facts()
    expect(plain["events"], "torch.profiler reports no memory events, even without the recorder")
    expect_equal("memory events", lab.must("with_torch.py", "profile").facts(), plain)
    return f"{plain['events']} events of memory"


# Programs of GPU Memory Profiler's users, and their arguments besides the device.
DROP_IN = {
    "configure": (), "capture": (), "classify": (), "simulate": (), "stress": (1 << 20,),
    "alerts": (), "recorder": (),
}  # fmt: skip
DROP_IN_PROGRAMS = SOURCE / "tests" / "integration" / "gpumemprof_programs"


def drop_in(lab: Lab, machine: dict) -> str:
    """Programs written for gpumemprof, with only the import changed."""
    needs(lab, "numba.cuda")
    package = {
        "PYTHONPATH": str(SOURCE / "tools" / "python"),
        "OOMREC_LIBRARY": str(lab.build / "liboomrec.so"),
        "OOMREC_COMMAND": str(lab.build / "oomrec"),
    }
    for name, words in DROP_IN.items():
        text = (DROP_IN_PROGRAMS / f"{name}.py").read_text()
        script = lab.directory / f"{name}.py"
        script.write_text(text.replace("from gpumemprof", "from oomrec.gpumemprof"))
        run = lab.must(script, "cuda:0", *words, **package)
        dumps = re.findall(r"^dump: (.+)", run.stdout, re.M)
        for dump in dumps:
            expect(os.path.exists(f"{dump}/manifest.json"), f"{name}: no bundle at {dump}")
        expect(dumps or name not in ("capture", "stress"), f"{name} left no bundle")
    return f"{len(DROP_IN)} programs"


CHECKS = {
    "a program linked with the driver": linked,
    "a program of nvcc, shared runtime": built_with_nvcc("-cudart", "shared"),
    "a program of nvcc, static runtime": built_with_nvcc("-cudart", "static"),
    "the CUDA runtime by ctypes": runtime,
    "PyTorch: fill": torch_fill,
    "PyTorch: recover": torch_recover,
    "PyTorch: fragmentation": torch_fragments,
    "PyTorch: torch.profiler": torch_profiler,
    "JAX: fill": filled_by("with_jax.py", "jax", XLA_PYTHON_CLIENT_PREALLOCATE="false", **JAX),
    "JAX: fill, each array from the driver": filled_by(
        "with_jax.py", "jax", XLA_PYTHON_CLIENT_ALLOCATOR="platform", **JAX
    ),
    "CuPy: fill": filled_by("with_cupy.py", "cupy"),
    "numba: fill": filled_by("with_numba.py", "numba.cuda"),
    "programs of gpumemprof's users": drop_in,
}
