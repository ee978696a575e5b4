"""A Jupyter kernel that is recorded, and the magic `%%oomrec` that shows what a cell holds.

    python -m oomrec.jupyter install

adds the kernel "Python 3 (oomrec)": the same interpreter and packages, started under the recorder.
There a cell that begins with `%%oomrec` is followed by its report. In any other kernel
`%load_ext oomrec.jupyter` brings the magic, which then says that the kernel is not recorded.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext oomrec.jupyter` calls."""
    from ._magic import OomrecMagics

    shell.register_magics(OomrecMagics)
