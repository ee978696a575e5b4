"""Checks a bundle's files and the commands' JSON against docs/schemas."""

from __future__ import annotations

import functools
import json
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
