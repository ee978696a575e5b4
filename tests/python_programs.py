"""Runs programs that use the Python package from the source tree, with the built library.

recorded = programs(preload, build_dir)
run = recorded('''
    import oomrec
    print(bool(oomrec.is_active()))
''', env={"OOMREC_LIMIT": "64M"})
"""

from __future__ import annotations

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
