"""The keys of a schema as docs/json.md lists them: objects and arrays as in JSON, without their values.

A part like one before it in the same object is {…}, as are objects with any key.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field

from schemas import SCHEMAS

WIDTH = 100
# Definitions that stand under a name of their own, after the first listing with it.
NAMED = {
    "frame": "FRAME",
    "resident_memory": "RESIDENT_MEMORY",
    "spaces": "SPACES",
    "living_object": "OBJECT",
    "moment": "MOMENT",
    "device_figures": "DEVICE",
    "change_of_bytes": "CHANGE",
    "leak_detection": "LEAKS",
    "node": "NODE",
}


@dataclass
class Part:
    """Text, or what stands between two brackets: members of an object, or the form of elements."""

    text: str = ""
    begin: str = ""
    end: str = ""
    members: list[tuple[str, Part]] = field(default_factory=list)

    def on_one_line(self) -> str:
        members = ", ".join(key + value.on_one_line() for key, value in self.members)
        return self.text + self.begin + members + self.end


class Listing:
    """Lists schemas one after the other, and each form that is named once."""

    def __init__(self) -> None:
        self.listed: set[str] = set()
        self.forms: list[tuple[str, dict, str]] = []

    def of(self, file: str) -> str:
        schema = json.loads((SCHEMAS / f"{file}.json").read_text())
        blocks = [self.block("", root, file) for root in schema.get("oneOf", [schema])]
        while self.forms:
            name, form, where = self.forms.pop(0)
            blocks.append(self.block(f"{name} = ", form, where))
        return textwrap.indent("\n".join(blocks) + "\n", " " * 4)

    def block(self, begin: str, schema: dict, file: str) -> str:
        first, *rest = lines_of(self.part(schema, file, is_root=True), 4 + len(begin), "")
        return "\n".join([begin + first, *(" " * len(begin) + line for line in rest)])

    def part(self, schema: dict, file: str, is_root: bool = False) -> Part:
        schema, file, name = resolved(schema, file)
        if not is_root and name in NAMED:
            if name not in self.listed:
                self.listed.add(name)
                self.forms.append((NAMED[name], schema, file))
            return Part(NAMED[name])
        if "properties" in schema:
            return self.object(schema["properties"], file)
        if "items" in schema:
            return Part(begin="[", end="…]", members=[("", self.part(schema["items"], file))])
        if isinstance(schema.get("additionalProperties"), dict):
            value = self.part(schema["additionalProperties"], file)
            return Part(begin="{", end=", …}", members=[with_key("NAME", value)])
        if "object" in schema.get("type", ()):
            return Part("{…}")
        words = schema.get("enum", ())
        return Part(" | ".join(map(json.dumps, words)) if not name and 1 < len(words) < 5 else "")

    def object(self, properties: dict, file: str) -> Part:
        members, before = [], []
        for key, schema in properties.items():
            part = self.part(schema, file)
            is_repeated = len(part.members) > 3 and part in before
            before.append(part)
            members.append(with_key(json.dumps(key), Part("{…}") if is_repeated else part))
        return Part(begin="{", end="}", members=members)


def with_key(key: str, part: Part) -> tuple[str, Part]:
    return (f"{key}: " if part.on_one_line() else key), part


def resolved(schema: dict, file: str) -> tuple[dict, str, str]:
    """What stands behind references and beside null, its file, and the name of the definition."""
    name = ""
    while True:
        choices = [
            each
            for each in schema.get("anyOf", schema.get("oneOf", ()))
            if each != {"type": "null"}
        ]
        if "$ref" in schema:
            other, _, name = schema["$ref"].partition("#/$defs/")
            file = other.removesuffix(".json") or file
            schema = json.loads((SCHEMAS / f"{file}.json").read_text())["$defs"][name]
        elif len(choices) == 1:
            schema = choices[0]
        elif choices and all("properties" in choice for choice in choices):
            return {"properties": what_all_say(choices)}, file, name
        else:
            return schema, file, name


def what_all_say(choices: list[dict]) -> dict:
    """The properties of objects with the same keys: words, where each has one of its own."""
    properties = {}
    for key, schema in choices[0]["properties"].items():
        others = [choice["properties"][key] for choice in choices]
        if all("const" in other for other in others):
            schema = {"enum": [other["const"] for other in others]}
        elif any(other != schema for other in others):
            schema = {"type": schema["type"]}
        properties[key] = schema
    return properties


def lines_of(part: Part, column: int, after: str) -> list[str]:
    """`column`: where it begins; `after`: what follows its last line."""
    line = part.on_one_line()
    if column + len(line + after) <= WIDTH or not part.members:
        return [line]
    lines, current, rest = [], part.begin, []
    for number, (key, value) in enumerate(part.members, 1):
        following = "," if number < len(part.members) else part.end + after
        separator = " " if current not in (part.begin, " ") else ""
        room = WIDTH - column - len(current + separator + following)
        if separator and (rest or len(key + value.on_one_line()) > room):
            lines.append(current)
            current, separator = " ", ""
        current += separator + key
        first, *rest = lines_of(value, column + len(current), following)
        inner = " " * len(current)
        current += first
        for line in rest:
            lines.append(current)
            current = inner + line
        current += "," if number < len(part.members) else part.end
    return [*lines, current]
