"""Deaths of many machines, explained together: `oomrec fleet` as functions.

Needs the packages of `pip install 'oomrec[fleet]'` and Python 3.10.
"""

from __future__ import annotations

from ._compact import compact
from ._errors import FleetError
from ._spark import SparkTable
from ._table import Table

__all__ = ["FleetError", "SparkTable", "Table", "compact"]
