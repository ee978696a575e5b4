"""One signature or one death: what holds the memory, where, and since when."""

from __future__ import annotations

import re
from typing import Any

from . import _queries
from ._errors import FleetError
from ._queries import Window, ask
from ._sizes import Size, retry_with_bytes
from ._table import Table, quoted
from ._text import coloured, counted, printable, share_text, size_text, table_text

DEATH = re.compile(r"[0-9a-f]{16}")
FRAMES = 8
HOLDERS = 5
BARS = " ▁▂▃▄▅▆▇█"


def deaths_by_id(table: Table, keys: list[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
    """Whole rows, by death_id; the days of the keys (id, day) keep Parquet's other days unread."""
    if not keys:
        return {}
    ids = ", ".join(quoted(key) for key, _ in keys)
    days = sorted({day for _, day in keys if day is not None})
    among = f" AND day IN ({', '.join(map(quoted, days))})" if days else ""
    found = table.query(f"SELECT * FROM deaths WHERE death_id IN ({ids}){among}")
    return {row["death_id"]: row for row in found}


def chosen_death(table: Table, window: Window, what: str) -> dict[str, Any] | None:
    """The row of a death_id with `retry_with_bytes`; None if `what` is none.

    Raises:
        FleetError: there is no such death
    """
    if not DEATH.fullmatch(what):
        return None
    death = deaths_by_id(table, [(what, None)]).get(what)
    if death is None:
        raise FleetError(f"there is no death {what}", exit_code=1)
    return {**death, "retry_with_bytes": retry_with_bytes(death, _size_of(table, window, death))}


def _size_of(table: Table, window: Window, death: dict[str, Any]) -> Size | None:
    service = death["service"] or death["script"] or death["program"]
    return next((size for size in _queries.sizes(table, window) if size.service == service), None)


def signature_named(table: Table, window: Window, what: str) -> dict[str, Any]:
    """The signature with this number in `top`, or this name, title or part of them; also by a name of earlier rules.

    Raises:
        FleetError: there is none
    """
    number = int(what) if what.isascii() and what.isdecimal() and len(what) < 6 else None
    found = _queries.signatures(table, window, most=number if number is not None else 100_000)
    if number is not None:
        if 0 < number <= len(found):
            return found[number - 1]
        raise FleetError(
            f"there is no cause number {number}: oomrec fleet top lists {len(found)}", exit_code=1
        )
    today = table.query(
        "SELECT DISTINCT signature FROM deaths WHERE signature_alias = $what ORDER BY 1", what=what
    )
    names = {what, *(row["signature"] for row in today)}
    for matches in (
        [row for row in found if names & {row["signature"], row["title"]}],
        [row for row in found if what in row["signature"] or what in (row["title"] or "")],
    ):
        if matches:
            return matches[0]
    raise FleetError(
        f"no signature of this time has {printable(what)} in it", "Look further back: --since 4w", 1
    )


def signature_report(table: Table, window: Window, row: dict[str, Any]) -> dict[str, Any]:
    """A signature with its facets, days, newest deaths and one whole death that is typical."""
    name = row["signature"]
    typical = ask(table, "typical", window, signatures=[name])
    keys = [(each["death_id"], each["day"]) for each in typical]
    deaths = list(deaths_by_id(table, keys).values())
    days = ask(table, "days", window, signatures=[name])
    return {
        **row,
        "facets": _queries.facets(table, window, [name]).get(name, {}),
        "days": [[each["day"], each["deaths"]] for each in days],
        "recent": ask(table, "recent", window, signature=name, most=10),
        "typical": deaths[0] if deaths else None,
    }


def bars(values: list[int | None]) -> str:
    """One character for each value, as high as its share of the largest."""
    known = [value or 0 for value in values]
    most = max(known, default=0) or 1
    return "".join(BARS[round(value / most * (len(BARS) - 1))] for value in known)


def signature_text(shown: dict[str, Any]) -> str:
    lines = [
        coloured(printable(shown["title"] or shown["signature"], 100), "bold"),
        f"{counted(shown['deaths'], 'death')}, {shown['lost_gib_hours']:,.0f} GiB hours lost; {shown['state']}: "
        f"first {shown['first_seen']:%Y-%m-%d}, last {shown['last_seen']:%Y-%m-%d}",
        f"by day: {bars([count for _, count in shown['days']])}",
    ]
    for name, facet in shown["facets"].items():
        listed = ", ".join(
            f"{printable(value, 40)} ({count:,})" for value, count in facet["values"]
        )
        more = facet["different"] - len(facet["values"])
        lines.append(f"{name}: {listed}" + (f" and {more:,} more" if more > 0 else ""))
    if shown["typical"]:
        lines += ["", coloured("A typical death", "bold"), death_text(shown["typical"])]
    recent = [
        (
            f"{each['time']:%Y-%m-%d %H:%M}",
            printable(each["host"] or "-", 30),
            printable(each["release"] or "-", 20),
            printable(each["verdict"] or "-", 30),
            each["death_id"],
            printable(each["raw_key"] or "-", 60),
        )
        for each in shown["recent"]
    ]
    if recent:
        lines += ["", table_text(("time", "host", "release", "verdict", "death", "bundle"), recent)]
    return "\n".join(lines)


def death_text(death: dict[str, Any]) -> str:
    lines = [
        f"{printable(death['verdict'] or '-')} ({printable(death['certainty'] or '-')}) on {printable(death['host'] or '-')}, "
        f"{death['time']:%Y-%m-%d %H:%M:%S} UTC",
        f"  {printable(death['summary'] or '', 300)}",
        f"  limit {size_text(death['limit_bytes'])}, resident {size_text(death['rss_bytes'])}, "
        f"peak {size_text(death['peak_bytes'])}, needed {'at least ' * bool(death['need_is_bound'])}"
        f"{size_text(death['need_bytes'])}",
        f"  resident over time: {bars(death['timeline_rss'] or [])}",
    ]
    if "retry_with_bytes" in death:
        lines.append(f"  retry with: {size_text(death['retry_with_bytes'])}")
    for holder in (death["holders"] or [])[:HOLDERS]:
        if holder is None:
            continue
        share = (holder["resident_bytes"] or holder["bytes"] or 0) / (death["rss_bytes"] or 1)
        lines.append(
            f"  {size_text(holder['bytes'])} in {counted(holder['count'] or 0, 'block')}, {share_text(min(share, 1.0))}"
        )
        frames = [frame for frame in holder["frames"] or [] if frame]
        for frame in frames[:FRAMES]:
            place = f" ({printable(frame['file'], 50)}:{frame['line']})" if frame["file"] else ""
            name = printable(frame["function"] or frame["module"] or "?", 70)
            lines.append("      " + (coloured(name, "bold") if frame["own"] else name) + place)
    return "\n".join(lines)
