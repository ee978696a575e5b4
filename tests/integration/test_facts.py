"""docs/schemas/facts.json and the tables of keys in docs/json.md are what common/facts describes.

`OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table` rewrites both.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from schemas import SCHEMAS

PAGE = SCHEMAS.parent / "json.md"
REWRITE = "OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table rewrites it"
BEGIN, END = "<!-- keys of facts -->\n", "<!-- end of facts -->\n"


@pytest.fixture(scope="module")
def facts(build_dir) -> dict:
    """The schemas of sections and of the words in them, as tests/unit/common/facts/print_facts.cpp prints them."""
    return json.loads(subprocess.check_output([build_dir / "tests/unit/common/facts"]))


def compact(value, indent: int = 0) -> str:
    """JSON with each value on one line that fits into it."""
    line = json.dumps(value)
    if len(line) + indent < 95 or not isinstance(value, (dict, list)):
        return line
    inner, outer = "\n" + " " * (indent + 2), "\n" + " " * indent
    named = value.items() if isinstance(value, dict) else ((None, part) for part in value)
    parts = [
        (f"{json.dumps(key)}: " if key is not None else "") + compact(part, indent + 2)
        for key, part in named
    ]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + inner + ("," + inner).join(parts) + outer + closing


def rows(path: str, schema: dict) -> list[str]:
    """The rows of a table of keys: a section or member, then its own."""
    words = [f"`{word}`" for word in schema.get("enum", ()) if word]
    meaning = schema["description"] + (f" ({', '.join(words)})" if words else "")
    members = schema.get("properties", {}).items()
    return [f"| `{path}` | {meaning} |"] + [
        row for key, part in members for row in rows(f"{path}.{key}", part)
    ]


def compare_or_write(path: Path, new: str) -> None:
    if os.environ.get("OOMREC_WRITE_GOLDEN"):
        path.write_text(new)
    assert path.read_text() == new, REWRITE


def test_the_schema_has_the_table_of_facts(facts):
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "facts",
        "$comment": "Sections that a bundle's files and the commands have in common. Generated.",
        "$defs": facts,
    }
    compare_or_write(SCHEMAS / "facts.json", compact(schema) + "\n")


def test_the_page_has_the_table_of_facts(facts):
    text = PAGE.read_text()
    table = ["| key | meaning |", "| --- | --- |"]
    for key, schema in facts.items():
        if "description" in schema and key != "stored_request":  # like `request`
            table += rows(key, schema)
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    compare_or_write(PAGE, before + BEGIN + "\n" + "\n".join(table) + "\n\n" + after)
