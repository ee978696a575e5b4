"""One HTML page of a window's causes and sizes, which loads nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import _queries
from ._queries import Window, ask
from ._show import deaths_by_id
from ._table import Table

MOST_SIGNATURES = 200
MOST_DATA_BYTES = 1_800_000  # the page has at most 2 MB
MOST_TEXT = 200  # characters of a name
HOLDERS, FRAMES = 5, 12


def write_page(table: Table, window: Window, path: str) -> int:
    """Writes the page and returns its size in bytes. A reader of the file never sees half of it."""
    folder = Path(__file__).parent / "page"
    page = (folder / "triage.html").read_text(encoding="utf-8")
    data = json_of(page_data(table, window))
    for mark, text in (
        ("TRIAGE_CSS", (folder / "triage.css").read_text(encoding="utf-8")),
        ("TRIAGE_JS", (folder / "triage.js").read_text(encoding="utf-8")),
        ("TRIAGE_DATA", data),
    ):
        before, _, after = page.partition(mark)
        page = before + text + after
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(page)
    os.replace(partial, path)
    return os.path.getsize(path)


def json_of(value: Any) -> str:
    """As JSON in which a name with "</script>" does not end the page's data."""
    text = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def page_data(table: Table, window: Window) -> dict[str, Any]:
    found = _queries.signatures(table, window, most=MOST_SIGNATURES)
    named = [row["signature"] for row in found]
    facets = _queries.facets(table, window, named)
    days: dict[str, list[Any]] = {}
    for row in ask(table, "days", window, signatures=named):
        days.setdefault(row["signature"], []).append([row["day"], row["deaths"]])
    typical = {row["signature"]: row for row in ask(table, "typical", window, signatures=named)}
    deaths = deaths_by_id(table, [(row["death_id"], row["day"]) for row in typical.values()])
    sizes = [size.as_json() for size in _queries.sizes(table, window)]
    sizes.sort(key=lambda each: (-each["deaths"], each["service"]))
    causes: list[dict[str, Any]] = []
    page = {
        "url": cut(table.url),
        "window": window.parameters(),
        "total": _queries.totals(table, window),
        "before": _queries.totals(table, window.before()),
        "rejected": table.rejected.text(),
        "causes": causes,
        "sizes": [{key: cut(value) for key, value in each.items()} for each in sizes[:500]],
    }
    size = bytes_of(page)
    for row in found:
        name = row["signature"]
        typical_id = typical.get(name, {}).get("death_id")
        cause = {
            **{key: cut(value) for key, value in row.items()},
            "facets": {
                key: {**facet, "values": [[cut(value), count] for value, count in facet["values"]]}
                for key, facet in facets.get(name, {}).items()
            },
            "days": days.get(name, []),
            "typical": death_data(deaths[typical_id]) if typical_id in deaths else None,
        }
        size += bytes_of(cause)
        if size > MOST_DATA_BYTES:
            break
        causes.append(cause)
    return page


def bytes_of(value: Any) -> int:
    return len(json_of(value).encode(errors="replace"))


def cut(value: Any) -> Any:
    return value[:MOST_TEXT] if isinstance(value, str) else value


def death_data(death: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a death."""
    words = "death_id verdict certainty summary host release program limit_bytes rss_bytes need_bytes raw_key"
    return {
        **{key: cut(death[key]) for key in words.split()},
        "timeline_ms": death["timeline_ms"] or [],
        "timeline_rss": death["timeline_rss"] or [],
        "holders": [
            {
                "bytes": holder["bytes"],
                "count": holder["count"],
                "frames": [
                    [
                        cut(frame["function"] or frame["module"]),
                        cut(frame["file"]),
                        frame["line"],
                        frame["own"],
                    ]
                    for frame in (holder["frames"] or [])[:FRAMES]
                    if frame
                ],
            }
            for holder in (death["holders"] or [])[:HOLDERS]
            if holder
        ],
    }
