"""A tracker's last events, put among those of a bundle's events.json.

The recorder wrote the bundle; what the tracker sampled beside it belongs there, in order of time, the
refusal still last. This runs when memory has just run out: events are copied one at a time, a file
is replaced as a whole or not at all, and what fails leaves the bundle as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import Any, Iterator, Mapping, Sequence

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
_NULLS_OF_TRACKERS = "".join(f',\n  "{key}": null' for key in _OF_TRACKERS)
_TIMESTAMP = re.compile(r'"timestamp": *([0-9.eE+-]+)')


def add_events(bundle: str, events: Sequence[Mapping[str, Any]]) -> bool:
    """Puts a tracker's events, the oldest first, into a bundle. False: it is as it was."""
    path = os.path.join(bundle, "events.json")
    partial = os.path.join(bundle, f".events.json.{os.getpid()}.partial")
    try:
        with open(path, encoding="utf-8") as old, _private(partial) as new:
            count = _write(new, _merged(_recorded(old), events))
        os.rename(partial, path)
        _set_number(bundle, "manifest.json", "event_count", count)
        _set_number(bundle, "metadata.json", "captured_event_count", count)
        return True
    except (OSError, ValueError, MemoryError):
        with contextlib.suppress(OSError):  # it was not made, or has taken its place
            os.unlink(partial)
        return False


def _private(path: str) -> Any:
    """A new file that only its owner reads, as the rest of a bundle."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


def _recorded(lines: Iterator[str]) -> Iterator[tuple[float, str]]:
    """Time and text of each event that the recorder wrote: an object on lines of its own."""
    text: list[str] = []
    for line in lines:
        word = line.strip()
        if word in ("[", "]", "[]", ""):
            continue
        if word == "{":
            text = []
        elif word in ("}", "},"):
            body = "".join(text).rstrip()
            found = _TIMESTAMP.search(body)
            if found is None:
                raise ValueError("an event without a time")
            yield float(found.group(1)), f" {{\n{body}{_NULLS_OF_TRACKERS}\n }}"
        else:
            text.append(line)


def _tracked(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, str]]:
    for event in events:
        whole: dict[str, Any] = {**event, **dict.fromkeys(_OF_THE_RECORDER)}
        timestamp = event.get("timestamp")
        when = float(timestamp) if isinstance(timestamp, (int, float)) else 0.0
        yield when, " " + json.dumps(whole, default=str)


def _merged(
    recorded: Iterator[tuple[float, str]], events: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Both in order of time. What the recorder wrote last stays last: it may be the refusal."""
    tracked = _tracked(events)
    mine: tuple[float, str] | None = next(tracked, None)
    theirs: tuple[float, str] | None = next(recorded, None)
    while theirs is not None:
        following = next(recorded, None)
        while mine is not None and (following is None or mine[0] < theirs[0]):
            yield mine[1]
            mine = next(tracked, None)
        yield theirs[1]
        theirs = following
    while mine is not None:
        yield mine[1]
        mine = next(tracked, None)


def _write(file: Any, texts: Iterator[str]) -> int:
    count = 0
    for text in texts:
        file.write(f"{',' if count else '['}\n{text}")
        count += 1
    file.write("\n]\n" if count else "[]\n")
    return count


def _set_number(bundle: str, name: str, key: str, value: int) -> None:
    """Replaces a number in a file of JSON; its key is unique, for quotes in strings are escaped."""
    path = os.path.join(bundle, name)
    partial = os.path.join(bundle, f".{name}.{os.getpid()}.partial")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with _private(partial) as file:
        file.write(re.sub(rf'("{key}": *)\d+', rf"\g<1>{value}", text, count=1))
    os.rename(partial, path)
