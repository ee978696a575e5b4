"""The libraries of the tree and their declared dependencies, read from the meson.build files.

A folder with sources has one library, `common_text_dep` for common/text; a file may include headers
of its own folder and of those that its library names in `dependencies`, or its row in the table of
common/, recorder/ or tools/, and no others.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

COMMENT = re.compile(r"#[^\n]*")
LIBRARY = re.compile(r"\b(?:static_library|shared_library|executable)\(")
# The folder of exported functions, which the root's shared library links.
LIST = re.compile(r"\bshim_dependencies = \[([^\]]*)\]")
# A row of a table: folder, sources, uses.
ROW = re.compile(r"\['([\w/]+)',\s*\[[^\]]*\],\s*\[([^\]]*)\]\]")
DEPENDENCY = re.compile(r"\b((?:common|recorder|shim|tools)(?:_\w+?)?)_dep\b")
INCLUDE = re.compile(r'^#include "((?:common|recorder|shim|tools)(?:/[^"/]+)*)/[^"/]+"', re.M)
ROOTS = ("common", "recorder", "shim", "tools")


def calls(text: str, opening: re.Pattern[str]):
    """The arguments of each call of a function in meson.build, including nested brackets."""
    for match in opening.finditer(text):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[match.end() : end - 1]


@cache
def folders(root: Path) -> tuple[str, ...]:
    """The folders with sources, as paths from the root."""
    found = {
        path.parent.relative_to(root).as_posix()
        for top in ROOTS
        for path in (root / top).rglob("*")
        if path.suffix in (".h", ".cpp")
    }
    return tuple(sorted(found))


@cache
def rows(root: Path, top: str) -> dict[str, set[str]]:
    """The rows of the table of common/, recorder/ or tools/, in their order: the libraries that each folder uses."""
    build = root / top / "meson.build"
    text = COMMENT.sub("", build.read_text(encoding="utf-8")) if build.is_file() else ""
    return {match[1]: set(re.findall(r"\w+", match[2])) for match in ROW.finditer(text)}


@cache
def declared(root: Path, folder: str) -> set[str]:
    """The folders that a folder's libraries declare as dependencies."""
    build = root / folder / "meson.build"
    text = COMMENT.sub("", build.read_text(encoding="utf-8")) if build.is_file() else ""
    top, _, below = folder.partition("/")
    names = {folder.replace("/", "_"): folder for folder in folders(root)}
    lists = [*calls(text, LIBRARY), *LIST.findall(text)]
    named = {match[1] for one in lists for match in DEPENDENCY.finditer(one)}
    named |= rows(root, top).get(below, set())
    return {names[name] for name in named if name in names}


def included(sources: dict[str, str]) -> dict[str, set[str]]:
    """For each folder the other folders whose headers it includes, from paths and texts of its files."""
    found: dict[str, set[str]] = {}
    for path, text in sources.items():
        folder = path.rpartition("/")[0]
        others = {match[1] for match in INCLUDE.finditer(text)} - {folder}
        found.setdefault(folder, set()).update(others)
    return found


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of the graph with its first node repeated at the end; empty without one."""
    done: set[str] = set()

    def walk(node: str, way: list[str]) -> list[str]:
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return []
        for other in sorted(graph.get(node, ())):
            if found := walk(other, [*way, node]):
                return found
        done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := walk(node, []))), [])
