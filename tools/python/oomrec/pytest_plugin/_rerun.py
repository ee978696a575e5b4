"""Restarts pytest under the recorder, which cannot be added to a running process.

If a test may need the recorder, pytest replaces itself: same command line, pid, standard streams and working
directory, but with the library in LD_PRELOAD. xdist's workers are its children, and are recorded with it.
Once all have started, the user's environment is restored, so programs that tests start are not recorded.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Iterator, NoReturn

import pytest

from .._impl.c_api import is_in_process
from .._impl.library import LIBRARY, preload
from . import _options

_RERUN = "OOMREC_PYTEST"  # in the second run: the changed variables' previous values, as JSON
# Read at import: restore_environment() removes the variable before anyone checks for a third run.
_IS_SECOND = _RERUN in os.environ
_WORDS = (b"limit_memory", b"limit_leaks")
_MOST_FILES = 20_000

# Programs that start pytest, and do nothing before it that must not happen twice.
_STARTERS = ("pytest", "py.test", "coverage", "_jb_pytest_runner", "run_pytest_script")


def is_recorded() -> bool:
    """Whether this process started with the recorder. Does not load it."""
    return is_in_process()


def is_wanted(config: pytest.Config) -> bool:
    """Whether this run must be restarted under the recorder."""
    if is_recorded() or hasattr(config, "workerinput"):
        return False
    option = config.option
    if any(
        getattr(option, name, None)
        for name in ("collectonly", "help", "version", "showfixtures", "markers", "cacheshow")
    ):
        return False
    return bool(_options.value(config, "oomrec")) or _mentions_limits(config)


def _test_files(config: pytest.Config) -> Iterator[Path]:
    skipped = {"node_modules", "__pycache__", "build", "dist", "venv"}
    for word in config.args or [str(config.rootpath)]:
        path = Path(word.split("::", 1)[0])
        if path.is_file():
            yield path
            path = path.parent
            yield from (
                p / "conftest.py"
                for p in (path, *path.parents)
                if p == config.rootpath or config.rootpath in p.parents
            )
            continue
        for folder, folders, files in os.walk(path):
            folders[:] = [
                name for name in folders if name not in skipped and not name.startswith(".")
            ]
            yield from (Path(folder, name) for name in files if name.endswith(".py"))


def _mentions_limits(config: pytest.Config) -> bool:
    for count, file in enumerate(_test_files(config)):
        if count == _MOST_FILES:
            return False
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if any(word in text for word in _WORDS):
            return True
    return False


def why_not() -> str:
    """Why pytest cannot be restarted from here; "" if it can."""
    if _IS_SECOND:
        return f"the loader did not load {LIBRARY}: is this Python linked statically, or for another C library?"
    if not os.path.isfile(LIBRARY):
        return f"there is no {LIBRARY}: set OOMREC_LIBRARY to the path of liboomrec.so"
    if preload() is None:
        return (
            f"the loader cannot preload {LIBRARY}: start it with `oomrec run -- python -m pytest …`"
        )
    program = sys.argv[0] if sys.argv else ""
    path = Path(program)
    name = path.parent.name if path.name == "__main__.py" else path.name
    if re.sub(r"(-3(\.\d+)?)?(\.py)?$", "", name) not in _STARTERS:  # Debian's are pytest-3
        return f"pytest runs inside {program or 'another program'}: start that with `oomrec run -- python {program} …`"
    return ""


def become_recorded(config: pytest.Config) -> None:
    """Restarts pytest in this process. Returns only if that is impossible; `why_not` says why."""
    if why_not():
        if _options.value(config, "oomrec"):
            raise pytest.UsageError(f"--oomrec: {why_not()}")
        return  # tests with a limit fail with that reason
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()  # gives the streams back
    _exec(config)


def _exec(config: pytest.Config) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    changes = {"LD_PRELOAD": preload() or LIBRARY}
    if "OOMREC_MODE" not in os.environ:
        changes["OOMREC_MODE"] = "exact"
    if _options.value(config, "trace_python_allocators"):
        changes.update(OOMREC_PYTHON_OBJECTS="1", PYTHONMALLOC="malloc")
    before = json.dumps({name: os.environ.get(name) for name in changes})
    words = Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    os.execve(
        sys.executable,
        [os.fsencode(sys.executable), *words[1:]],
        {**os.environ, **changes, _RERUN: before},
    )


def restore_environment(config: pytest.Config) -> None:
    """In the second run: restores what `_exec` changed, once all processes to be recorded have started."""
    controls_workers = bool(
        getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None)
    )
    if _RERUN not in os.environ or (controls_workers and not hasattr(config, "workerinput")):
        return
    for name, value in json.loads(os.environ.pop(_RERUN)).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
