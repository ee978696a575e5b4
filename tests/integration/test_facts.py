"""The schemas and tables of keys of a bundle's files and sections are what common/facts describes.

`OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table` rewrites both.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from schemas import SCHEMAS, compact, compare_or_write, with_keys

DOCS = SCHEMAS.parent
ROOT = DOCS.parent
# Sections as they are named in a table; None: like another.
PATHS = {
    "stored_request": None,
    "stored_process": None,
    "tree_process": "processes[]",
    "other_process": "others[]",
    "space": None,
    "map_space": "spaces.SPACE",
    "named_space": None,
}
# Sections in the table of a file instead.
IN_FILES = ["cgroup", "heap", "heap_area", "gpu", "module"]
FILES = ["manifest", "metadata", "processes", "environment"]


@pytest.fixture(scope="module")
def printed(build_dir) -> dict:
    """The schemas of sections, of the words in them and of files, as tests/unit/common/facts/print_facts.cpp prints them."""
    return json.loads(subprocess.check_output([build_dir / "tests/unit/common/facts"]))


def referred(schema: dict) -> str:
    """The section that a schema refers to, be it null or not; empty: none."""
    parts = [schema, *schema.get("anyOf", ())]
    references = [part["$ref"] for part in parts if "$ref" in part]
    return references[0].removeprefix("#/$defs/") if references else ""


def rows(path: str, schema: dict, defs: dict) -> list[str]:
    """The rows of a table of keys: a section or member, then its own, also those of IN_FILES."""
    words = [f"`{word}`" for word in schema.get("enum", ()) if word]
    meaning = schema["description"] + (f" ({', '.join(words)})" if words else "")
    members, within = schema.get("properties", {}), f"{path}."
    if (name := referred(schema)) in IN_FILES:
        members = defs[name]["properties"]
    elif (name := referred(schema.get("items", {}))) in IN_FILES:
        members, within = defs[name]["properties"], f"{path}[]."
    return [f"| `{path}` | {meaning} |"] + [
        row
        for key, part in members.items()
        if "description" in part
        for row in rows(within + key, part, defs)
    ]


def schema_of(title: str, comment: str, schema: dict) -> str:
    draft = "https://json-schema.org/draft/2020-12/schema"
    return compact({"$schema": draft, "title": title, "$comment": comment, **schema}) + "\n"


def compare_table(page: str, name: str, table: list[str]) -> None:
    lines = ["| key | meaning |", "| --- | --- |", *table]
    text = (DOCS / page).read_text()
    compare_or_write(DOCS / page, with_keys(text, name, "\n".join(lines) + "\n"))


def test_the_schema_has_the_table_of_facts(printed):
    comment = "Sections that a bundle's files and the commands have in common. Generated."
    facts = {"$defs": printed["$defs"]}
    compare_or_write(SCHEMAS / "facts.json", schema_of("facts", comment, facts))


def test_the_page_has_the_table_of_facts(printed):
    table = []
    for key, schema in printed["$defs"].items():
        path = PATHS.get(key, key)
        if "description" in schema and path and key not in IN_FILES:
            table += rows(path, schema, printed["$defs"])
    compare_table("json.md", "facts", table)


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_table_of_facts(printed, name):
    schema = printed["files"][name]
    shared = json.loads(json.dumps(schema).replace('"#/$defs/', '"facts.json#/$defs/'))
    compare_or_write(SCHEMAS / f"{name}.json", schema_of(name, "Generated.", shared))
    table = [
        row
        for key, part in schema["properties"].items()
        for row in rows(key, part, printed["$defs"])
    ]
    compare_table("bundle-format.md", f"{name}.json", table)


def keys_of(schema) -> set[str]:
    """The keys of all objects in a schema."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema))
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties")
    own = set(properties) if isinstance(properties, dict) else set()
    return own.union(*map(keys_of, schema.values()))


def test_a_key_of_a_fact_stands_only_in_its_description(printed):
    """Keys of two words and more that no other file and no command has."""
    by_hand = [path for path in SCHEMAS.glob("*.json") if path.stem not in ["facts", *FILES]]
    others = set().union(*(keys_of(json.loads(path.read_text())) for path in by_hand))
    keys = {key for key in keys_of(printed) - others if "_" in key}
    assert len(keys) > 30
    as_key = re.compile(
        r"(?:\b(?:key|member|text_of|number_of|value_in|contains)\((?:[^()\"]|\([^()]*\))*|\{\s*|\[)"
        r"\"(%s)\"" % "|".join(keys)
    )
    found = {
        f"{path.relative_to(ROOT)}: {key}"
        for folder in ("common", "recorder", "shim", "tools")
        for path in (ROOT / folder).rglob("*.[ch]*")
        if path.suffix in (".cpp", ".h") and path.parent.name != "facts"
        for key in as_key.findall(path.read_text())
    }
    assert found == set(), "describe it in common/facts, and read it there"
