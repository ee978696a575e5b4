"""oomrec from inside of a Python program."""

from __future__ import annotations

from ._library import LIBRARY

__all__ = ["LIBRARY"]
