"""What a test may need and a machine may lack: the markers, and why a test is skipped."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pythons import find_python, has_module


@functools.lru_cache(maxsize=None)
def cgroup_skip_reason() -> str | None:
    """Why no cgroup with a memory limit can be created here; None if one can."""
    for parent in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")):
        probe = parent / f"oomrec_probe_{os.getpid()}"
        try:
            probe.mkdir()
        except OSError:
            continue
        try:
            if (probe / "memory.max").exists() or (probe / "memory.limit_in_bytes").exists():
                return None
        finally:
            probe.rmdir()
    return "cannot create a cgroup with a memory limit"


def gpu_skip_reason() -> str | None:
    return None if Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists() else "no GPU here"


def module_skip_reason(module: str) -> str | None:
    return None if has_module(sys.executable, module) else f"{sys.executable} has no {module}"


def program_skip_reason(*names: str) -> str | None:
    missing = [name for name in names if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def file_skip_reason(pattern: str) -> str | None:
    return None if any(Path("/").glob(pattern.lstrip("/"))) else f"not here: {pattern}"


@functools.lru_cache(maxsize=None)
def pid_namespace_skip_reason() -> str | None:
    tried = subprocess.run(["unshare", "-fp", "--mount-proc", "true"], capture_output=True)
    return None if tried.returncode == 0 else "cannot create a pid namespace"


def python_skip_reason(version: str) -> str | None:
    return None if find_python(version) else f"no Python {version} here"


def full_skip_reason() -> str | None:
    return None if os.environ.get("OOMREC_TEST_FULL") else "only scripts/test --full runs it"


# Marker: its text in `pytest --markers`, and the function that returns why to skip (None: run).
MARKERS = {
    "needs_cgroup_write": ("permission to create a cgroup with a memory limit", cgroup_skip_reason),
    "needs_pid_namespace": ("permission to create a pid namespace", pid_namespace_skip_reason),
    "needs_gpu": ("a real GPU", gpu_skip_reason),
    "needs_numpy": ("numpy in the Python that runs the tests", lambda: module_skip_reason("numpy")),
    "needs_torch": ("torch in the Python that runs the tests", lambda: module_skip_reason("torch")),
    "needs_module(name)": ("a module in the Python that runs the tests", module_skip_reason),
    "needs_program(name, …)": ("programs on the PATH", program_skip_reason),
    "needs_file(glob)": ("a file, such as another allocator's library", file_skip_reason),
    "full": ("`scripts/test --full`, because its requirements are large", full_skip_reason),
    "needs_python(version)": ("an interpreter of this version", python_skip_reason),
}
