"""Installs the recorded kernel in Jupyter, and starts it.

Jupyter starts `python -m oomrec.jupyter kernel`, which replaces itself by the usual kernel with the recorder
preloaded. It stays the same process, so signals and process groups are as Jupyter expects. The library's path
is resolved at each start, so an update of the package needs no new installation of the kernel.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any, NoReturn

from .._impl.command import command
from .._impl.library import LIBRARY, preload

NAME = "oomrec"
DISPLAY_NAME = f"Python {sys.version_info[0]} (oomrec)"
_EXTENSION = "oomrec.jupyter"


def specification(display_name: str, options: dict[str, str]) -> dict[str, Any]:
    """kernel.json; `options`: the recorder's OOMREC_* variables."""
    return {
        "argv": [sys.executable, "-m", "oomrec.jupyter", "kernel", "-f", "{connection_file}"],
        "display_name": display_name,
        "language": "python",
        "env": options,
        "metadata": {"debugger": True},
    }


def _manager() -> Any:
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError as error:
        raise LookupError(
            "jupyter_client and ipykernel are needed: pip install 'oomrec[jupyter]'"
        ) from error
    return KernelSpecManager()


def install(name: str, display_name: str, options: dict[str, str], prefix: str | None) -> str:
    """Adds the kernel, for this user if `prefix` is None; returns its directory.

    Raises:
        LookupError: Jupyter's packages are missing
        OSError: the directory cannot be written
        ValueError: Jupyter does not accept the name
    """
    manager = _manager()
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "kernel.json"), "w", encoding="utf-8") as file:
            json.dump(specification(display_name, options), file, indent=1)
        installed = manager.install_kernel_spec(directory, name, user=prefix is None, prefix=prefix)
    return str(installed)


def remove(name: str) -> str:
    """Removes the kernel; returns the directory that it had.

    Raises:
        LookupError: oomrec has no kernel of that name, or Jupyter's packages are missing
        OSError: the directory cannot be removed
    """
    manager = _manager()
    directory = manager.find_kernel_specs().get(name)
    if directory is None or "oomrec.jupyter" not in manager.get_kernel_spec(name).argv:
        raise LookupError(
            f"there is no kernel {name!r} of oomrec; `jupyter kernelspec list` lists all kernels"
        )
    return str(manager.remove_kernel_spec(name))


def become(words: list[str]) -> NoReturn:
    """Replaces this process by ipykernel's launcher under the recorder; `words` are its arguments."""
    program = [sys.executable, "-m", "ipykernel_launcher", f"--ext={_EXTENSION}", *words]
    preloaded = preload()
    if preloaded is None:
        path = command()
        if path is None:
            sys.exit(
                f"oomrec.jupyter: the loader cannot preload {LIBRARY}, and the command oomrec, which "
                "could, is missing: install the package again (pip install oomrec)"
            )
        os.execv(path, [path, "run", "--", *program])
    os.execve(sys.executable, program, {**os.environ, "LD_PRELOAD": preloaded})
