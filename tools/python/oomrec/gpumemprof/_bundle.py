"""What a tracker adds to a bundle that the recorder wrote: its last events, among those of events.json in
order of time, and in environment.json the system as GPU Memory Profiler tells of it.

This runs when memory has just run out: events are copied one at a time, a file is replaced as a whole
or not at all, and what fails leaves the bundle as it was.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import re
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

# Keys of the other kind of event, which is null there: one schema for both.
_OF_TRACKERS = (
    "metadata",
    "active_memory",
    "inactive_memory",
    "device_used",
    "device_free",
    "device_total",
)
_OF_THE_RECORDER = ("space", "kind", "address", "size", "stack", "thread", "api", "result")
_NULLS_OF_TRACKERS = "".join(f', "{key}": null' for key in _OF_TRACKERS)
_TIMESTAMP = re.compile(r'\{"timestamp": ([0-9.]+),')


def add_events(bundle: str, events: Sequence[Mapping[str, Any]]) -> bool:
    """Puts a tracker's events, the oldest first, into a bundle. False: it is as it was."""
    path = os.path.join(bundle, "events.json")
    partial = os.path.join(bundle, f".events.json.{os.getpid()}.partial")
    try:
        with open(path, encoding="utf-8") as old, _private(partial) as new:
            count = _write(new, heapq.merge(_recorded(old), _tracked(events), key=_when))
        os.rename(partial, path)
        _set_number(bundle, "manifest.json", "event_count", count)
        _set_number(bundle, "metadata.json", "captured_event_count", count)
        return True
    except Exception:  # no room, another format, or what a program put into an event is no JSON
        with contextlib.suppress(OSError):  # it was not made, or has taken its place
            os.unlink(partial)
        return False


def add_system(bundle: str, system: Mapping[str, Any]) -> bool:
    """Puts `system` into environment.json. False: it is as it was."""

    def with_system(text: str) -> str:
        whole = text.rstrip()
        if not whole.endswith("}"):
            raise ValueError("environment.json is no object")
        return f'{whole[:-1].rstrip()},\n  "system": {json.dumps(system, default=str)}\n}}\n'

    try:
        _rewrite(bundle, "environment.json", with_system)
        return True
    except Exception:  # as above
        return False


def _private(path: str) -> Any:
    """A new file that only its owner reads, as the rest of a bundle."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


def _recorded(lines: Iterable[str]) -> Iterator[tuple[float, str]]:
    """Time and text of each event that the recorder wrote, a line each. ValueError: another format."""
    for line in lines:
        text = line.strip().rstrip(",")
        if text in ("[", "]", "[]", ""):
            continue
        found = _TIMESTAMP.match(text)
        if found is None or not text.endswith("}"):
            raise ValueError(f"no event on a line: {text[:80]}")
        yield float(found.group(1)), f"{text[:-1]}{_NULLS_OF_TRACKERS}}}"


def _tracked(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, str]]:
    for event in events:
        whole: dict[str, Any] = {**event, **dict.fromkeys(_OF_THE_RECORDER)}
        yield time_of(event), json.dumps(whole, default=str)


def time_of(event: Mapping[str, Any]) -> float:
    """When it was, in seconds since 1970; 0 for one that does not say so."""
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
    """Replaces a number in a file of JSON; its key is unique, for quotes in strings are escaped."""
    pattern = re.compile(rf'("{key}": *)\d+')
    _rewrite(bundle, name, lambda text: pattern.sub(rf"\g<1>{value}", text, count=1))


def _rewrite(bundle: str, name: str, edit: Callable[[str], str]) -> None:
    path = os.path.join(bundle, name)
    partial = os.path.join(bundle, f".{name}.{os.getpid()}.partial")
    try:
        with open(path, encoding="utf-8") as file:
            text = edit(file.read())
        with _private(partial) as file:
            file.write(text)
        os.rename(partial, path)
    finally:
        with contextlib.suppress(OSError):  # it was not made, or has taken its place
            os.unlink(partial)
