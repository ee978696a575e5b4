"""The magic `%%oomrec`: runs its cell under a label, then shows the report of that label."""

from __future__ import annotations

import html
import os
import subprocess
import tempfile
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from .._impl.command import command, unrecorded_environment
from .._impl.labels import context
from .._impl.library import library
from .._impl.usage import is_active

NOT_RECORDED = (
    "This kernel is not recorded, so there is no report of the cell. "
    "`python -m oomrec.jupyter install` adds a recorded kernel; choose it, and run the cell again."
)
_TIMEOUT_S = 120


def _report(label: str, view: str) -> tuple[str | None, str]:
    """The report's page, or None and the reason why there is none."""
    program = command()
    if program is None:
        return None, "the command oomrec is not beside python and not in the PATH"
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "cell.html")
        words = [program, "report", str(os.getpid()), "--label", label, "--view", view, "-o", file]
        try:
            run = subprocess.run(
                words,
                env=unrecorded_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return None, str(error)
        if run.returncode == 1:
            return (
                None,
                "nothing that the cell allocated was recorded: oomrec records blocks of 64 KiB and more, and a sample of smaller ones",
            )
        if run.returncode != 0:
            return None, run.stderr.decode(errors="replace").strip()
        with open(file, encoding="utf-8") as page:
            return page.read(), ""


def _show(page: str, height: int) -> None:
    # The sandboxed frame keeps the page's scripts away from the notebook.
    text = (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8884"></iframe>'
    )
    display({"text/html": text}, raw=True)


@magics_class
class OomrecMagics(Magics):  # type: ignore[misc]  # IPython may be absent where types are checked
    """The class that IPython registers for `%%oomrec`."""

    @magic_arguments()  # type: ignore[untyped-decorator]
    @argument("--view", default="flame", help="the report's first view: flame, table, timeline, …")
    @argument("--height", type=int, default=640, help="the report's height in pixels")
    @cell_magic  # type: ignore[untyped-decorator]
    def oomrec(self, line: str, cell: str) -> None:
        """Runs the cell, then reports who holds the memory that it allocated."""
        chosen: Any = parse_argstring(self.oomrec, line)
        shell = self.shell
        recorded = library().preloaded and bool(is_active())
        label = f"cell {shell.execution_count}"
        with context(label):
            shell.run_cell(cell, store_history=False)
        if not recorded:
            print(NOT_RECORDED)
            return
        page, why_not = _report(label, chosen.view)
        if page is None:
            print(f"oomrec: no report of {label}: {why_not}")
        else:
            _show(page, chosen.height)
