"""A Jupyter kernel that is recorded, and the magic `%%oomrec` that shows the memory a cell keeps.

    python -m oomrec.jupyter install

adds the kernel "Python 3 (oomrec)": the same interpreter and packages, started under the recorder. There,
a cell that begins with `%%oomrec` is followed by its report. In any other kernel `%load_ext oomrec.jupyter`
loads the magic, which then reports that the kernel is not recorded.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext oomrec.jupyter`."""
    from ._magic import OomrecMagics

    shell.register_magics(OomrecMagics)
