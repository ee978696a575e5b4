"""What cases need of the machine: built programs, interpreters, a cgroup, fake files."""

from __future__ import annotations

import functools
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Iterable

import pythons

PROGRAMS = Path(__file__).resolve().parent / "programs"
_building = threading.Lock()


ENDS = (".c", ".cpp", ".go", ".rs")
COMPILERS = {".c": "gcc", ".cpp": "g++", ".go": "go", ".rs": "rustc"}
# Ends of a program's name: its compiler, if it is another one, and more flags.
VARIANTS = {
    "_static": ("", "-static"),
    "_musl": ("musl-gcc",),
    "_asan": ("", "-fsanitize=address"),
    ".so": ("", "-shared", "-fPIC"),
}


class Missing(Exception):
    """The machine lacks something that a case needs."""


class Machine:
    """Builds programs on demand and finds interpreters; shared by all cases of a run."""

    def __init__(self, build: Path):
        self.build = build
        self.command = build / "oomrec"
        self.library = build / "liboomrec.so"
        self.folder = build / "truth"
        self.folder.mkdir(exist_ok=True)

    def expand(self, words: Iterable[str]) -> list[str]:
        """Replaces words @NAME by the path of that program, interpreter or source file."""
        return [self.path_of(word[1:]) if word.startswith("@") else word for word in words]

    def path_of(self, name: str) -> str:
        if (PROGRAMS / name).exists() and not name.endswith(".go"):
            return str(PROGRAMS / name)
        if name.startswith("python"):
            return self.python(name[len("python") :])
        return self.built(name)

    def built(self, name: str) -> str:
        """NAME.c, NAME.cpp or NAME.go, built. NAME_static, NAME_musl, NAME_asan: in another way."""
        name = name.replace(".go", "")
        stem, variant = next(
            ((name[: -len(end)], flags) for end, flags in VARIANTS.items() if name.endswith(end)),
            (name, ("",)),
        )
        source = next(
            (PROGRAMS / (stem + end) for end in ENDS if (PROGRAMS / (stem + end)).exists()), None
        )
        if source is None:
            raise Missing(f"no program {name}")
        compiler, *flags = variant
        compiler = compiler or COMPILERS[source.suffix]
        if shutil.which(compiler) is None:
            raise Missing(f"not installed: {compiler}")
        target = self.folder / name
        with _building:
            if not target.exists() or target.stat().st_mtime < newest_source():
                compile_program(compiler, source, target, flags)
        return str(target)

    def python(self, version: str) -> str:
        found = pythons.find_python(version or "3.11")
        if found is None:
            raise Missing(f"no Python {version}")
        return found


def compile_program(compiler: str, source: Path, target: Path, flags: list[str]) -> None:
    words = {
        "go": ["go", "build"],
        "rustc": ["rustc", "-g", "-C", "panic=abort"],
    }.get(compiler, [compiler, "-g", "-O1", "-w", "-pthread", "-fno-builtin", *flags])
    made = subprocess.run(
        [*words, "-o", str(target), str(source)],
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        raise Missing(f"{source.name} is not built: {made.stderr[-300:]}")


@functools.lru_cache(maxsize=None)
def newest_source() -> float:
    return max(file.stat().st_mtime for file in PROGRAMS.iterdir())


@functools.lru_cache(maxsize=None)
def lacks(program: str) -> bool:
    return shutil.which(program) is None
