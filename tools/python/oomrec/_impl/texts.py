"""Converts a program's texts to bytes for C, and its metadata to JSON.

Nothing here fails: a value that cannot be converted is replaced by words that say so. The callers handle an
exception that must reach the program unchanged.
"""

from __future__ import annotations

import json
from typing import Any, Mapping

# What the program's own methods may raise when they are called here. KeyboardInterrupt is not among them:
# it is the user's.
HOSTILE = (Exception, SystemExit, GeneratorExit)

MAX_TEXT = 16 << 10  # characters of one text
MAX_ITEMS = 1000  # of one container
MAX_DEPTH = 16
MAX_JSON = 60 << 10  # bytes of the whole object: oomrec.h takes 64 KiB


def c_text(text: object) -> bytes:
    """A text for C, in UTF-8. NULs are replaced, because they would end it."""
    words = text if isinstance(text, str) else described(text)
    return words.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")


def cut(text: str, most: int = MAX_TEXT) -> str:
    """At most about `most` characters: the beginning and the end, which is a traceback's best part."""
    if len(text) <= most:
        return text
    left_out = len(text) - most
    return f"{text[: most // 2]}… ({left_out} characters left out) …{text[-(most // 2) :]}"


def described(value: object) -> str:
    """str() or repr() of anything; a note if its `__repr__` raises."""
    shape, dtype = _array_facts(value)
    try:
        if shape is not None:  # never the contents: they may be gigabytes, and on a device
            return f"<{type(value).__module__}.{type(value).__qualname__} {shape} {dtype}>"
        return _printable(str(value) if isinstance(value, BaseException) else repr(value))
    except HOSTILE as error:
        return f"<{type(value).__qualname__}: its repr raised {type(error).__qualname__}>"


def json_object(metadata: Mapping[Any, Any] | None) -> bytes | None:
    """The metadata as a JSON object in UTF-8; None for None.

    Keys become texts. Values that JSON lacks are described: NaN and infinities, bytes, arrays (by shape and
    type), other objects (by their repr), and cycles. Values that are too long, too deep or too large are
    cut, with a note.
    """
    if metadata is None:
        return None
    try:
        plain = _plain(metadata, MAX_DEPTH, [])
        if not isinstance(plain, dict):
            plain = {"value": plain}
        text = json.dumps(plain, allow_nan=False)
        if len(text) > MAX_JSON:
            text = json.dumps({"cut": cut(text, MAX_JSON // 4)})
        return text.encode("ascii").replace(b"\0", b"")
    except HOSTILE as error:
        return json.dumps({"not_recorded": type(error).__qualname__}).encode("ascii")


def _printable(text: str, most: int = MAX_TEXT) -> str:
    """The text without lone surrogates, which JSON readers reject."""
    return cut(text, most).encode("utf-8", "backslashreplace").decode()


def _array_facts(value: object) -> tuple[object, object]:
    """Shape and element type of a value that looks like an array; else None, None."""
    try:
        shape = getattr(value, "shape", None)
        dtype = getattr(value, "dtype", None)
        if isinstance(value, type) or shape is None or dtype is None:
            return None, None
        return tuple(int(length) for length in shape), cut(str(dtype), 64)
    except HOSTILE:
        return None, None


def _plain(value: object, depth: int, containers: list[int]) -> Any:
    """The value in JSON's types. `containers`: ids of the containers around it."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 64 else f"{hex(value)[:64]}…"  # type: ignore[operator, arg-type]
    if kind is float:
        return value if value - value == 0 else repr(value)  # type: ignore[operator]
    if kind is str:
        return _printable(value)  # type: ignore[arg-type]
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        return _scalar(value)
    if not isinstance(value, (dict, list, tuple, set, frozenset, Mapping)):
        return described(value)
    if id(value) in containers:
        return "<contains itself>"
    if depth == 0:
        return "<too deep>"
    containers.append(id(value))
    try:
        return _contents(value, depth - 1, containers)
    finally:
        containers.pop()


def _scalar(value: Any) -> Any:
    """A NumPy scalar as a plain number."""
    try:
        plain = value.item()
    except HOSTILE:
        return described(value)
    return _plain(plain, 0, []) if type(plain) in (bool, int, float, str) else described(value)


def _contents(value: Any, depth: int, containers: list[int]) -> Any:
    if isinstance(value, Mapping):
        items: dict[str, Any] = {}
        for number, key in enumerate(value):
            if number == MAX_ITEMS:
                items["…"] = f"{len(value) - MAX_ITEMS} more"
                break
            name = _printable(key, 256) if isinstance(key, str) else described(key)
            items[name] = _plain(value[key], depth, containers)
        return items
    elements = []
    for number, element in enumerate(value):
        if number == MAX_ITEMS:
            elements.append(f"{len(value) - MAX_ITEMS} more")
            break
        elements.append(_plain(element, depth, containers))
    return elements
