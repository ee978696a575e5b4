"""Adds a tracker's data to a bundle of the recorder: its last events to events.json, in order of time, and
GPU Memory Profiler's description of the system to environment.json.

This runs when memory has just run out. So it copies events one at a time, and replaces a file as a whole or
not at all. A failure leaves the bundle unchanged.
"""

from __future__ import annotations

import heapq
import json
import os
import re
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from .._impl.foreign_files import open_in, replaced_in
from ._ranks import resolve_distributed_identity

# Both kinds of event have the same keys. Those of the other kind are null; the rank is the process'.
_TRACKER_KEYS = (
    "metadata",
    "active_memory",
    "inactive_memory",
    "device_used",
    "device_free",
    "device_total",
)
_RECORDER_KEYS = ("space", "kind", "address", "size", "stack", "thread", "api", "result")
_TRACKER_NULLS = "".join(f', "{key}": null' for key in _TRACKER_KEYS)
_TIMESTAMP = re.compile(r'\{"timestamp": ([0-9.]+),')


def add_events(bundle: str, events: Sequence[Mapping[str, Any]]) -> bool:
    """Adds a tracker's events, in any order, to a bundle. Returns False if the bundle is unchanged."""
    try:
        events = sorted(events, key=time_of)  # several threads may have recorded them
        with open_in(bundle, "events.json") as old, replaced_in(bundle, "events.json") as new:
            rank = _rank_of(events)
            merged = heapq.merge(_recorded(old, rank), _tracked(events, rank), key=_when)
            count = _write(new, merged)
        _set_number(bundle, "manifest.json", "event_count", count)
        _set_number(bundle, "metadata.json", "captured_event_count", count)
        return True
    except Exception:  # the disk is full, the format is unknown, or an event has no JSON form
        return False


def add_system(bundle: str, system: Mapping[str, Any]) -> bool:
    """Adds `system` to environment.json. Returns False if the file is unchanged."""

    def with_system(text: str) -> str:
        whole = text.rstrip()
        if not whole.endswith("}"):
            raise ValueError("environment.json is not an object")
        return f'{whole[:-1].rstrip()},\n  "system": {json.dumps(system, default=str)}\n}}\n'

    try:
        _rewrite(bundle, "environment.json", with_system)
        return True
    except Exception:  # for the same reasons
        return False


def _rank_of(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """This process' rank: the tracker's, which the program may have named, else the environment's."""
    rank = resolve_distributed_identity(env=os.environ)
    latest = events[-1] if events else {}
    return {key: latest.get(key, value) for key, value in rank.items()}


def _recorded(lines: Iterable[str], rank: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """Time and text of the recorder's events, one per line. Raises ValueError for another format."""
    further = f"{_TRACKER_NULLS}, {json.dumps(rank)[1:-1]}}}"
    for line in lines:
        text = line.strip().rstrip(",")
        if text in ("[", "]", "[]", ""):
            continue
        found = _TIMESTAMP.match(text)
        if found is None or not text.endswith("}"):
            raise ValueError(f"a line is not an event: {text[:80]}")
        yield float(found.group(1)), text[:-1] + further


def _tracked(
    events: Sequence[Mapping[str, Any]], rank: Mapping[str, Any]
) -> Iterator[tuple[float, str]]:
    for event in events:
        whole: dict[str, Any] = {**event, **dict.fromkeys(_RECORDER_KEYS)}
        whole.update({key: value for key, value in rank.items() if key not in event})
        yield time_of(event), json.dumps(whole, default=str)


def time_of(event: Mapping[str, Any]) -> float:
    """The event's time in seconds since 1970; 0 if it has none."""
    timestamp = event.get("timestamp")
    return float(timestamp) if isinstance(timestamp, (int, float)) else 0.0


def _when(event: tuple[float, str]) -> float:
    return event[0]


def _write(file: Any, events: Iterable[tuple[float, str]]) -> int:
    count = 0
    for _, text in events:
        file.write(f"{',' if count else '['}\n  {text}")
        count += 1
    file.write("\n]\n" if count else "[]\n")
    return count


def _set_number(bundle: str, name: str, key: str, value: int) -> None:
    """Replaces a number in a JSON file. The key matches only once: quotes within strings are escaped."""
    pattern = re.compile(rf'("{key}": *)\d+')
    _rewrite(bundle, name, lambda text: pattern.sub(rf"\g<1>{value}", text, count=1))


def _rewrite(bundle: str, name: str, edit: Callable[[str], str]) -> None:
    with open_in(bundle, name) as file:
        text = edit(file.read())
    with replaced_in(bundle, name) as file:
        file.write(text)
