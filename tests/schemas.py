"""Checks a bundle's files and the commands' JSON against docs/schemas."""

from __future__ import annotations

import functools
import json
import os
import textwrap
from pathlib import Path

import pytest

SCHEMAS = Path(__file__).resolve().parents[1] / "docs" / "schemas"


@functools.cache
def registry():
    """All schemas. Read once: a registry that reads them as they are referred to forgets them again."""
    referencing = pytest.importorskip("referencing")
    resources = [
        (path.as_uri(), referencing.Resource.from_contents(json.loads(path.read_text())))
        for path in SCHEMAS.rglob("*.json")
    ]
    return referencing.Registry().with_resources(resources).crawl()


@functools.cache
def validator(name: str):
    jsonschema = pytest.importorskip("jsonschema")
    schema = {"$ref": (SCHEMAS / f"{name}.json").as_uri()}
    return jsonschema.Draft202012Validator(schema, registry=registry())


def problems(name: str, document) -> list[str]:
    return [f"{list(e.path)}: {e.message}" for e in validator(name).iter_errors(document)]


def check(name: str, document) -> None:
    found = problems(name, document)
    assert not found, f"{name}: " + "\n".join(found[:5])


def compact(value, indent: int = 0) -> str:
    """JSON with each value on one line that fits into it; words fill their lines."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent < 95 or not isinstance(value, (dict, list)):
        return line
    inner, outer = "\n" + " " * (indent + 2), "\n" + " " * indent
    if isinstance(value, list) and not any(isinstance(part, (dict, list)) for part in value):
        words = [json.dumps(word, ensure_ascii=False).replace(" ", "\0") for word in value]
        filled = textwrap.fill(
            ", ".join(words), 98 - indent, break_long_words=False, break_on_hyphens=False
        )
        return "[" + inner + filled.replace("\n", inner).replace("\0", " ") + outer + "]"
    named = value.items() if isinstance(value, dict) else ((None, part) for part in value)
    parts = [
        (f"{json.dumps(key)}: " if key is not None else "") + compact(part, indent + 2)
        for key, part in named
    ]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + inner + ("," + inner).join(parts) + outer + closing


def completed(schema):
    """Each object requires all of its keys, and allows no other."""
    if isinstance(schema, list):
        return [completed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: completed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict):
        schema |= {"required": list(schema["properties"]), "additionalProperties": False}
    return schema


def with_keys(page: str, name: str, keys: str) -> str:
    """The text of a page, with these keys between the two comments that name what has them."""
    begin, end = f"<!-- keys of {name} -->\n", f"<!-- end of {name} -->\n"
    return f"{page[: page.index(begin)]}{begin}\n{keys}\n{page[page.index(end) :]}"


def compare_or_write(path: Path, new: str) -> None:
    if os.environ.get("OOMREC_WRITE_GOLDEN"):
        path.write_text(new)
    assert path.read_text() == new, "OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table rewrites it"
