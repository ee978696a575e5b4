"""What the files of a bundle and the command's JSON must look like: integration/schemas."""

import json
from pathlib import Path

import pytest

SCHEMAS = Path(__file__).resolve().parent / "integration" / "schemas"


def check(name: str, document) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_text()))
    errors = [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(document)]
    assert not errors, f"{name}: " + "\n".join(errors[:5])
