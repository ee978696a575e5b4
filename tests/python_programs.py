"""Programs of several tests, and what runs those that use the Python package from the source tree.

recorded = programs(preload, build_dir)
run = recorded('''
    import oomrec
    print(bool(oomrec.is_active()))
''', env={"OOMREC_LIMIT": "64M"})
"""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

from conftest import SOURCE, metadata

PACKAGES = SOURCE / "tools" / "python"


def package_environment(build_dir: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(PACKAGES),
        "OOMREC_LIBRARY": str(build_dir / "liboomrec.so"),
        "OOMREC_COMMAND": str(build_dir / "oomrec"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def programs(runner, build_dir: Path):
    """A function that runs a program's source text with a Runner of conftest.py."""

    def run(text: str, *args, python: str = sys.executable, env: dict | None = None, **options):
        script = runner.directory / "program.py"
        script.write_text(textwrap.dedent(text))
        environment = {**package_environment(build_dir), **(env or {})}
        return runner(python, script, *args, env=environment, **options)

    return run


def limited_programs(runner, build_dir: Path):
    """programs(), with a soft limit of 128 MiB."""
    run = programs(runner, build_dir)
    return lambda text, *args, env=None, **options: run(
        text, *args, env={"OOMREC_LIMIT": "128M", **(env or {})}, **options
    )


def line_of(script: str, text: str) -> int:
    """The number of the first line with this text."""
    lines = Path(script).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def trains(mib: int, texts: int, threads: int = 0) -> str:
    """A program that keeps every batch, a block and texts, until a request fails. Line 4 makes them."""
    return f"""\
import json, threading
kept = []
def make_batch():
    return bytearray({mib} << 20), [json.dumps({{"step": n}}) for n in range({texts})]
def train():
    while True:
        kept.append(make_batch())
""" + (
        f"""\
threads = [threading.Thread(target=train) for _ in range({threads})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
        if threads
        else "train()\n"
    )


# Calls the driver of tests/fake_gpu: a program begins with this.
CUDA = """
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def use(ordinal):
    cuda.cuInit(0)
    context = ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal)
    cuda.cuCtxSetCurrent(context)
def allocate(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
"""


def in_a_child(work) -> int:
    """The exit code of a forked child that runs `work()`. 1: it raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


TOLD = ("type", "context", "reason")


def exception_of(bundle: Path) -> dict:
    """The exception in a bundle and what the program said of it: type, module, message, traceback, context, …"""
    written = metadata(bundle)
    return {
        name.replace("exception_", ""): written[name]
        for name in (
            "exception_type",
            "exception_module",
            "exception_message",
            "exception_traceback",
            "context",
            "custom_metadata",
            "reason",
        )
    }
