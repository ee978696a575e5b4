"""Checks a bundle's files and the commands' JSON against docs/schemas."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

SCHEMAS = Path(__file__).resolve().parents[1] / "docs" / "schemas"


def problems(name: str, document) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")

    def retrieve(uri: str):
        schema = json.loads(Path(unquote(urlparse(uri).path)).read_text(encoding="utf-8"))
        return referencing.Resource.from_contents(schema)

    validator = jsonschema.Draft202012Validator(
        {"$ref": (SCHEMAS / f"{name}.json").as_uri()},
        registry=referencing.Registry(retrieve=retrieve),
    )
    return [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(document)]


def check(name: str, document) -> None:
    found = problems(name, document)
    assert not found, f"{name}: " + "\n".join(found[:5])
