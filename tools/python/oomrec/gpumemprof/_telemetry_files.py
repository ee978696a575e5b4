"""Reads telemetry files into records: JSON, JSON lines and CSV, distinguished by how they begin.

A file that a killed writer left is read as far as possible. So is what Python's own writers produce: NaN in
JSON, dictionaries in CSV as Python prints them. The reader in the command `oomrec` accepts and rejects the
same files (tests/telemetry_corpus).
"""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
from typing import Any, NamedTuple

from ._telemetry_fields import (
    ASCII_BLANKS,
    FIELDS,
    TEXT_COLUMNS,
    TelemetryProblem,
    is_blank,
    is_integer,
    shown,
)

_BLANKS = " \t\r\n"
_DEEPEST = 64
_MOST_CELLS = 1 << 22
_ROW_BYTES = 64  # a list and its slot in another
# Group 1 is a lone surrogate in JSON, which is not a character; file names that are not UTF-8 lead to it.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
# A line that is not blank, from its first character that is not a blank.
_LINE = re.compile(r"[^ \t\r\n][^\n]*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# A token of a value as Python prints it: a string, a punctuation mark, a word or number. A colon after it
# makes it a key.
_TOKEN = re.compile(
    r"""\s*(?:
        ( (?P<quote>['"]) (?: (?!(?P=quote)) [^\\\r\n\0] | \\(?:[\\'"nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}) )* (?P=quote) )
      | ([{}\[\](),:])
      | (None|True|False|nan|-?inf|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    )(?=(\s*:)?)""",
    re.ASCII | re.VERBOSE,
)
_IN_JSON = {"None": "null", "True": "true", "False": "false",
            "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # fmt: skip
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_IN_STRING = re.compile(r'\\x(..)|\\U(.{8})|(\\u....)|\\(.)|(["\x00-\x1f])')
_QUOTES = re.compile('"+')
# A cell without quotes, or what follows the quoted part, and its end.
_CELL = re.compile(r"([^,\r\n]*)(,|\r\n?|\n|\Z)")
# Writers put an apostrophe before a cell that a spreadsheet would take for a formula.
_FORMULA = re.compile(r"'*[=+\-@\t]")


class Budget:
    """The memory that a file may take. Its texts share it: a byte of JSON can become a list of 64 bytes.

    A large file of ordinary events may take more: they count 13 times their size in it.
    """

    LEAST_BYTES = 768 << 20
    TIMES_SIZE = 14

    def __init__(self, file_bytes: int) -> None:
        self._bytes = self._left = max(self.LEAST_BYTES, self.TIMES_SIZE * file_bytes)

    def take(self, count: int) -> None:
        """Raises TelemetryProblem once the sum exceeds the budget."""
        self._left -= count
        if self._left < 0:
            raise TelemetryProblem("size", f"it needs more than {self._bytes >> 20} MiB of memory")

    def take_json(self, text: str) -> None:
        """Takes what the values in a JSON text need at most, if characters within strings are marks, too."""
        strings = text.count('"') // 2
        self.take(
            64 * text.count("[") + 240 * text.count("{") + 40 * text.count(",") + 56 * strings
        )

    def take_python(self, text: str) -> None:
        """Takes what it costs to convert a value as Python prints it: mostly time, for each of its tokens."""
        self.take(256 * sum(text.count(mark) for mark in "{}[](),:"))


class Records(NamedTuple):
    """Records as they are in a file."""

    rows: list[Any]
    # The last line was cut off, and is not in `rows`.
    cut: bool = False
    # The last row has no line end: its writer may have been killed within the last cell.
    may_be_cut: bool = False


def guarded(cell: Any) -> Any:
    """A text for a CSV cell, escaped so that no spreadsheet takes it for a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _decoded(data: bytes) -> str:
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    data = data[start:]
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # cut off within a character
            return data[: error.start].decode() + "\ufffd"
        message = f"it is not UTF-8 text: byte {start + error.start}"
        raise TelemetryProblem("encoding", message) from None


def _depth(value: Any) -> int:
    """The nesting depth of `value`, a list or an object."""
    members = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(each) for each in members if isinstance(each, (dict, list))), default=0)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{shown(text)} is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > 300:
        _finite(text)
    return int(text)


def _parsed(text: str, budget: Budget) -> Any:
    if re.search(r"\\u[dD]", text):
        budget.take(96 * text.count("\\"))
        text = _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    try:
        value = json.loads(text, parse_float=_finite, parse_int=_whole)
        if isinstance(value, (dict, list)) and _depth(value) > _DEEPEST:
            raise ValueError("it is nested too deep")
    except (ValueError, RecursionError) as error:
        raise TelemetryProblem("json", f"not JSON: {error}") from None
    return value


def _lines(text: str, budget: Budget) -> Records:
    rows: list[Any] = []
    for line in _LINE.finditer(text):
        budget.take(_ROW_BYTES)
        try:
            rows.append(_parsed(line[0], budget))
        except TelemetryProblem as problem:
            if problem.reason != "json":
                raise
            if rows and line.end() == len(text):
                return Records(rows, cut=True)
            number = text.count("\n", 0, line.start()) + 1
            raise TelemetryProblem("json", f"line {number}: {problem}") from None
    return Records(rows)


def _timeline(payload: dict[str, Any]) -> list[dict[str, Any]]:
    times, allocated, reserved = (
        payload.get(key) for key in ("timestamps", "allocated", "reserved")
    )
    if not (isinstance(times, list) and isinstance(allocated, list) and isinstance(reserved, list)):
        raise TelemetryProblem("timeline", "timestamps, allocated and reserved are not all lists")
    if not len(times) == len(allocated) == len(reserved):
        raise TelemetryProblem(
            "timeline", "timestamps, allocated and reserved are not equally long"
        )
    return [
        {"timestamp": time, "allocated": held, "reserved": pool}
        for time, held, pool in zip(times, allocated, reserved)
    ]


def _document(payload: Any, events_key: str | None) -> list[Any]:
    """The records of a JSON document: a list, a list under a key, a time line, or a single record."""
    if isinstance(payload, list):
        return payload
    events = payload.get("events" if events_key is None else events_key)
    if isinstance(events, list):
        return events
    if events_key is not None:
        message = f"Top-level key '{events_key}' must contain a list of events"
        raise TelemetryProblem("no_events", message)
    if isinstance(payload.get("timestamps"), list):
        return _timeline(payload)
    if any(key in payload for key in ("schema_version", *FIELDS["timestamp_ns"].version_1)):
        return [payload]
    raise TelemetryProblem(
        "no_events", "there are no telemetry events: no list, no key 'events', no timestamp"
    )


def _json_character(match: re.Match[str]) -> str:
    two, eight, four, escaped, plain = match.groups()
    if four:
        return four
    if two or eight:
        return json.dumps(chr(int(two or eight, 16)))[1:-1]
    if escaped:
        return escaped if escaped == "'" else f"\\{escaped}"
    return json.dumps(plain)[1:-1]


def _json_of_python(text: str) -> str:
    """JSON for a value as Python prints it. Raises ValueError if it is not such a value."""
    written: list[str] = []
    brackets: list[tuple[str, int]] = []  # the open brackets, and their indices in `written`
    commas: list[int] = []  # the commas in each open bracket
    position, end = 0, len(text.rstrip(ASCII_BLANKS))
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"character {position}")
        position = match.end()
        string, _, mark, word, before_colon = match.groups()
        if string:
            written.append(f'"{_IN_STRING.sub(_json_character, string[1:-1])}"')
        elif word:
            word = _IN_JSON.get(word, word)
            written.append(f'"{word}"' if before_colon else word)
        elif mark in _CLOSES:
            brackets.append((mark, len(written)))
            commas.append(0)
            written.append("[" if mark == "(" else mark)
        elif mark in ",:":
            if mark == "," and commas:
                commas[-1] += 1
            written.append(mark)
        else:
            bracket, at = brackets.pop() if brackets else ("", 0)
            if _CLOSES.get(bracket) != mark:
                raise ValueError(f"character {position}")
            is_tuple = commas.pop() > 0 or len(written) == at + 1
            if written[-1] == "," and len(written) > at + 2:
                written.pop()
            if mark == ")" and not is_tuple:
                written[at] = ""
            else:
                written.append("]" if mark == ")" else mark)
    return "".join(written)


def _literal(text: str, budget: Budget) -> Any:
    """Metadata in a cell: JSON, or a value as Python prints it; the text itself if it is neither."""
    budget.take_json(text)
    try:
        return _parsed(text, budget)
    except TelemetryProblem as problem:
        if problem.reason != "json":
            raise
    budget.take_python(text)
    try:
        return _parsed(_json_of_python(text), budget)
    except (ValueError, OverflowError):  # OverflowError: \Uffffffff
        return text


def _number(text: str) -> Any:
    """A cell's number, else its text. Some writers print 17 as 17.0 in a column with gaps."""
    if len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)  # the usual case, quickly
    digits = text.strip(" \t")
    if _INTEGER.fullmatch(digits):
        return int(digits) if len(digits) < 21 and is_integer(int(digits)) else text
    if not _NUMBER.fullmatch(digits):
        return text
    number = float(digits)
    is_underflow = number == 0 and re.search("[1-9]", digits.lower().partition("e")[0])
    if math.isinf(number) or is_underflow:
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _value(column: str, text: str, budget: Budget) -> Any:
    if column in TEXT_COLUMNS:
        return text
    return _literal(text, budget) if column == "metadata" else _number(text)


def _record(columns: list[str], cells: list[str], budget: Budget) -> dict[str, Any]:
    """A row as a JSON record: an empty cell is null in a field that version 2 requires, else the field is absent."""
    record = {
        column: _value(column, text, budget)
        for column, text in zip(columns, cells)
        if not is_blank(text)
    }
    if "schema_version" in record:
        for column in columns:
            if column in FIELDS and not FIELDS[column].optional:
                record.setdefault(column, {} if column == "metadata" else None)
    return record


def _closing_quote(text: str, position: int, budget: Budget) -> int:
    """The position of the quote that ends the cell; -1 if there is none. Within the cell they are doubled."""
    while True:
        run = _QUOTES.search(text, position)
        if run is None:
            return -1
        if (run.end() - run.start()) % 2:
            return run.end() - 1
        budget.take(64)  # of time
        position = run.end()


def _line_ends(text: str, end: int) -> int:
    return text.count("\n", 0, end) + text.count("\r", 0, end) - text.count("\r\n", 0, end)


def _cells(text: str, budget: Budget) -> tuple[list[list[str]], bool, bool]:
    """The rows of a CSV text, without blank lines; whether a cut-off last row was dropped; and whether the last
    row has its line end."""
    rows: list[list[str]] = []
    row: list[str] = []
    position, ended, cells = 0, True, 0
    while position < len(text) or row:
        cells += 1
        if cells > _MOST_CELLS:
            raise TelemetryProblem("size", f"it has more than {_MOST_CELLS} cells")
        quoted = ""
        if text.startswith('"', position):
            close = _closing_quote(text, position + 1, budget)
            if close < 0:
                if text.find("\n", position) >= 0 or text.find("\r", position) >= 0:
                    number = _line_ends(text, position) + 1
                    raise TelemetryProblem("quote", f"line {number}: a quote is not closed")
                return rows, True, True
            quoted = text[position + 1 : close].replace('""', '"')
            position = close + 1
        match = _CELL.match(text, position)
        assert match is not None
        rest, end = match.groups()
        cell = quoted + rest
        row.append(cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell)
        position = match.end()
        if end != ",":
            if len(row) > 1 or not is_blank(row[0]):
                rows.append(row)
                ended = end != ""
            row = []
    return rows, False, ended


def _table(text: str, budget: Budget) -> Records:
    rows, cut, ended = _cells(text, budget)
    if not rows or len(rows[0]) < 2:
        raise TelemetryProblem("table", "it is neither JSON nor a table")
    columns = [name.strip(_BLANKS) for name in rows[0]]
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise TelemetryProblem("columns", f"there are two columns {shown(column)}")
        seen.add(column)
    if not ended and len(rows) > 1 and len(rows[-1]) < len(columns):
        rows.pop()
        cut = ended = True
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(columns):
            message = f"row {number} has {len(row)} cells, and there are {len(columns)} columns"
            raise TelemetryProblem("cells", message)
    budget.take(2 * 240 * (len(rows) - 1))  # of its object and its metadata
    records = [_record(columns, row, budget) for row in rows[1:]]
    return Records(records, cut, may_be_cut=not ended and bool(records))


def records_of(data: bytes, events_key: str | None = None, budget: Budget | None = None) -> Records:
    """The records in a file's bytes. Raises TelemetryProblem if it is not a telemetry file.

    `events_key` names the list in a JSON object (default ``events``). `budget` is shared with what is made of them.
    """
    budget = budget or Budget(len(data))
    text = _decoded(data).lstrip(_BLANKS)
    if not text:
        raise TelemetryProblem("empty", "it is empty: there are no telemetry events")
    budget.take(sys.getsizeof(text))
    if text[0] not in "[{":
        return _table(text, budget)
    budget.take_json(text)
    try:
        payload = _parsed(text, budget)
    except TelemetryProblem as problem:
        if text[0] == "{" and problem.reason == "json":
            return _lines(text, budget)
        raise
    return Records(_document(payload, events_key))
