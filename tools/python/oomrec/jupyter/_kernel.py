"""The kernel: where Jupyter finds it, and how it is started.

Jupyter starts `python -m oomrec.jupyter kernel`, which becomes the usual kernel with the recorder in
it: the same process, so that signals and process groups are as Jupyter expects them. The path of
the library is looked up then, so an update of the package needs no new installation of the kernel.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any, NoReturn

from .._library import LIBRARY, command, preload

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
    """Adds the kernel, for this user where `prefix` is None; returns its directory.

    Raises:
        LookupError: Jupyter's packages are missing
        OSError: the directory cannot be written
        ValueError: Jupyter does not take the name
    """
    manager = _manager()
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "kernel.json"), "w", encoding="utf-8") as file:
            json.dump(specification(display_name, options), file, indent=1)
        place = manager.install_kernel_spec(directory, name, user=prefix is None, prefix=prefix)
    return str(place)


def remove(name: str) -> str:
    """Removes the kernel; returns where it was.

    Raises:
        LookupError: there is none of that name that is ours, or Jupyter's packages are missing
        OSError: the directory cannot be removed
    """
    manager = _manager()
    place = manager.find_kernel_specs().get(name)
    if place is None or "oomrec.jupyter" not in manager.get_kernel_spec(name).argv:
        raise LookupError(f"there is no kernel {name!r} of oomrec: jupyter kernelspec list")
    return str(manager.remove_kernel_spec(name))


def become(words: list[str]) -> NoReturn:
    """Replaces this process by ipykernel's launcher under the recorder, with its arguments `words`."""
    program = [sys.executable, "-m", "ipykernel_launcher", f"--ext={_EXTENSION}", *words]
    preloaded = preload()
    if preloaded is None:
        path = command()
        if path is None:
            sys.exit(
                f"oomrec.jupyter: the loader cannot preload {LIBRARY}, and there is no command oomrec"
            )
        os.execv(path, [path, "run", "--", *program])
    os.execve(sys.executable, program, {**os.environ, "LD_PRELOAD": preloaded})
