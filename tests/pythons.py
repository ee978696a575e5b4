"""Which Pythons are tested, and where this machine has them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 300

# Versions whose frames the recorder reads, and those that the package is tested with.
PYTHON_VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]
# Their frames are read as those of the version before, at other offsets.
SIMILAR_VERSIONS = ["3.9", "3.10", "3.12"]
PACKAGE_PYTHON_VERSIONS = PYTHON_VERSIONS[:-1]
FREE_THREADED_VERSIONS = ["3.13t", "3.14t"]  # python3.13t is built by scripts/test --full


@functools.lru_cache(maxsize=None)
def find_python(version: str) -> str | None:
    installed = sorted(
        Path.home().glob(f".pyenv/versions/{version.rstrip('t')}.*/bin/python{version}")
    )
    built = Path(os.environ.get("OOMREC_TEST_BUILD", "build")).resolve() / f"python{version}"
    for candidate in [
        *map(str, installed),
        built / "bin" / f"python{version}",
        shutil.which(f"python{version}"),
        "/usr/bin/python3",
        sys.executable,
    ]:
        if candidate is None or not Path(candidate).exists():
            continue
        asked = "import sys; print('%d.%d' % sys.version_info[:2] + sys.abiflags.strip('dm'), sys.executable)"
        answer = subprocess.run(
            [candidate, "-c", asked], capture_output=True, text=True, timeout=TIMEOUT_S
        )
        if answer.returncode == 0 and answer.stdout.split()[0] == version:
            return answer.stdout.split()[1]
    return None


@functools.lru_cache(maxsize=None)
def has_module(interpreter: str, module: str) -> bool:
    found = subprocess.run(
        [interpreter, "-c", f"import {module}"], capture_output=True, timeout=TIMEOUT_S
    )
    return found.returncode == 0
