"""`oomrec attach` to programs that have used the device: what they allocate from then on is recorded,
what they held is one holder, and after `--detach` they go on."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from .outcome import Failed, Skipped, expect, expect_equal, size
from .program_checks import compiled, needs, needs_a_gpu
from .recorded import PROGRAMS, Lab, names_line

FILLED = 4 * 256 << 20


class Told:
    """A program that does what it is told, line by line."""

    def __init__(self, lab: Lab, words: list[str]) -> None:
        self.lab, self.folder = lab, Path(tempfile.mkdtemp(dir=lab.directory))
        self.process = subprocess.Popen(
            words, env=lab.environment(), cwd=self.folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = self.process.pid
        self.answer()

    def answer(self) -> dict:
        for line in self.process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                if "skip" in said:
                    raise Skipped(said["skip"])
                return said
        raise Failed(f"the program ended with {self.process.wait()}")

    def __call__(self, line: str) -> dict:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def command(self, *words: object) -> str:
        return self.lab.command(*words, folder=self.folder)

    def shown(self) -> dict:
        bundle = self.command("dump", self.pid).strip()
        return json.loads(self.command("show", "--json", bundle))

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()


def on_device(shown: dict) -> list[dict]:
    return [holder for holder in shown["holders"] if holder["space"] == "cuda"]


def check_attached(program: Told, file: str) -> str:
    paused = []
    for round_ in range(2):
        said = json.loads(program.command("attach", "--json", program.pid))
        paused.append(said["paused_ns"] / 1e6)
        program("fill")
        shown = program.shown()
        rows = on_device(shown)
        before = [row for row in rows if row["stack"][0]["function"] == "[before attaching]"]
        now = [row for row in rows if names_line(row["stack"], file, "fill")]
        held = sum(row["bytes"] for row in now)
        expect(held >= FILLED, f"{size(held)} of {size(FILLED)} recorded at the line")
        expect(len(before) <= 1, f"{len(before)} holders from before")
        live = shown["spaces"]["cuda"]["live_bytes"]
        expect_equal("sum of the holders", sum(row["bytes"] for row in rows), live)
        if round_ == 0:
            count = program("free")["held"]
        program.command("attach", "--detach", program.pid)
        expect_equal("arrays", program("nothing")["held"], count + 4 * round_)
    from_before = f"{size(before[0]['bytes'])} from before" if before else "nothing from before"
    return f"{size(held)} at its line, {from_before}; paused for {paused[0]:.1f} ms"


def attached(module: str, real: bool = True):
    def check(lab: Lab, machine: dict) -> str:
        if real:
            needs_a_gpu(machine)
        needs(lab, module)
        words = [lab.python, str(PROGRAMS / "attached.py"), module]
        with Told(lab, words) as program:
            return check_attached(program, "attached.py")

    return check


def built_with_nvcc(kind: str):
    def check(lab: Lab, machine: dict) -> str:
        needs_a_gpu(machine)
        compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        if compiler is None:
            raise Skipped("no nvcc here")
        path = compiled(lab, compiler, "-g", "-cudart", kind, PROGRAMS / "attached.cu")
        with Told(lab, [path]) as program:
            return check_attached(program, "attached.cu")

    return check


CHECKS = {
    "attach: PyTorch": attached("torch"),
    "attach: JAX": attached("jax"),
    "attach: CuPy": attached("cupy"),
    "attach: cuda-bindings": attached("cuda.bindings.driver", real=False),
    "attach: a program of nvcc, shared runtime": built_with_nvcc("shared"),
    "attach: a program of nvcc, static runtime": built_with_nvcc("static"),
}
