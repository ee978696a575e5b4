"""Checks a bundle's files and the commands' JSON against docs/schemas."""

from __future__ import annotations

import functools
import json
import os
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


def with_keys(page: str, name: str, keys: str) -> str:
    """The text of a page, with these keys between the two comments that name what has them."""
    begin, end = f"<!-- keys of {name} -->\n", f"<!-- end of {name} -->\n"
    return f"{page[: page.index(begin)]}{begin}\n{keys}\n{page[page.index(end) :]}"


def compare_or_write(path: Path, new: str) -> None:
    if os.environ.get("OOMREC_WRITE_GOLDEN"):
        path.write_text(new)
    assert path.read_text() == new, "OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table rewrites it"
