"""Whether a release may replace another one: no new signature, and no service that needs clearly more."""

from __future__ import annotations

from typing import Any

from ._errors import FleetError
from ._queries import Window, sizes, sql
from ._table import Table
from ._text import printable

FEWEST = 5  # lives of a service on each side: fewer say nothing about a percentile


def gate(table: Table, window: Window, base: str, head: str, growth: float = 0.1) -> dict[str, Any]:
    """Compares the rows of two releases.

    Args:
        table: the rows
        window: from when to when
        base: the release to compare with
        head: the release that is judged
        growth: by how much the 95th percentile of a service's need may rise

    Returns:
        {"passed", "new_signatures": [{signature, title, deaths}],
        "grown": [{service, base_p95_bytes, head_p95_bytes}], "too_few": [service]}

    Raises:
        FleetError: a release has no rows
    """
    known = [row["release"] for row in table.query(sql("releases"))]
    for release in (base, head):
        if release not in known:
            listed = ", ".join(printable(each, 40) for each in known[:5])
            there = listed or "none has a release: set OTEL_RESOURCE_ATTRIBUTES"
            raise FleetError(f"release {printable(release, 40)} has no rows", f"There are: {there}")
    new = table.query(sql("gate"), base=base, head=head)
    before = {size.service: size for size in sizes(table, window, base)}
    grown, too_few = [], []
    for after in sizes(table, window, head):
        old = before.get(after.service)
        if old is None or min(old.lives, after.lives) < FEWEST:
            too_few.append(after.service)
        elif old.need_p95_bytes and _has_grown(old.need_p95_bytes, after.need_p95_bytes, growth):
            grown.append(
                {
                    "service": after.service,
                    "base_p95_bytes": old.need_p95_bytes,
                    "head_p95_bytes": after.need_p95_bytes,  # None: more than 5 % died at their limit
                }
            )
    return {
        "passed": not new and not grown,
        "new_signatures": new,
        "grown": grown,
        "too_few": too_few,
    }


def _has_grown(base: int, head: int | None, growth: float) -> bool:
    return head is None or head > (1 + growth) * base
