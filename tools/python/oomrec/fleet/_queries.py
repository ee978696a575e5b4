"""What the commands ask of a table: the SQL files of sql/, in the subset that DuckDB and Spark share."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ._sizes import Size, sizes_of

FACETS = ("service", "release", "host", "verdict", "program")


class Queryable(Protocol):
    def query(self, sql: str, **parameters: Any) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class Window:
    """From `since` up to `until`, in UTC without a zone."""

    since: dt.datetime
    until: dt.datetime

    def before(self) -> Window:
        return Window(self.since - (self.until - self.since), self.since)

    def parameters(self) -> dict[str, str]:
        return {"since": self.since.isoformat(" "), "until": self.until.isoformat(" ")}


def sql(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def ask(table: Queryable, name: str, window: Window, **parameters: Any) -> list[dict[str, Any]]:
    return table.query(sql(name), **window.parameters(), **parameters)


def totals(table: Queryable, window: Window) -> dict[str, Any]:
    return ask(table, "totals", window)[0]


def signatures(
    table: Queryable, window: Window, state: str = "any", most: int = 20
) -> list[dict[str, Any]]:
    """The signatures of a window, those that cost most first, each with its services and its cause."""
    weeks = {
        f"weeks_{n}": (window.since - dt.timedelta(weeks=n)).isoformat(" ") for n in (1, 2, 3, 4)
    }
    days = max((window.until - window.since) / dt.timedelta(days=1), 0.01)
    found = ask(table, "signatures", window, state=state, most=most, window_days=days, **weeks)
    return [{**row, "cause": _cause(row)} for row in found]


def _cause(row: dict[str, Any]) -> str | None:
    """What most of a signature's deaths are; None if most are nothing special."""
    counts = {
        "leak": row["leaks"],
        "limit_too_low": row["limits_too_low"],
        "giant_request": row["giant_requests"],
    }
    name = max(counts, key=lambda each: counts[each])
    return name if counts[name] * 2 > row["deaths"] else None


def facets(
    table: Queryable, window: Window, named: list[str], of: tuple[str, ...] = FACETS
) -> dict[str, dict[str, dict[str, Any]]]:
    """By signature and facet: {"different": n, "values": [[value, deaths], …]}."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in ask(table, "facets", window, signatures=named, facets=list(of)):
        facet = found.setdefault(row["signature"], {}).setdefault(
            row["facet"], {"different": row["different"], "values": []}
        )
        facet["values"].append([row["value"], row["deaths"]])
    return found


def sizes(table: Queryable, window: Window, release: str = "") -> list[Size]:
    return sizes_of(ask(table, "needs", window, release=release))
