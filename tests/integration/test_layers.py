"""A folder includes exactly what its library declares as a dependency, and there are no cycles."""

from __future__ import annotations

import re
from pathlib import Path

import layers

ROOT = Path(__file__).resolve().parents[2]

# Folders whose sources are compiled into another folder's library.
MACHINE = {
    "common/machine/aarch64": "common/machine",
    "common/machine/x86_64": "common/machine",
}
PARTS = {
    **MACHINE,
    "shim/attach": "shim",
    "shim/gpu": "shim",
    "shim/gpu/actions": "shim",
    "shim/interpose": "shim",
}


def sources() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in layers.folders(ROOT)
        for path in sorted((ROOT / folder).iterdir())
        if path.suffix in (".h", ".cpp")
    }


def graph(parts: dict[str, str] = PARTS) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder, others in layers.included(sources()).items():
        whole = parts.get(folder, folder)
        wholes = {parts.get(other, other) for other in others} - {whole}
        found.setdefault(whole, set()).update(wholes)
    return found


def test_every_included_folder_is_declared():
    includes = graph()
    assert len(includes) > 50

    undeclared = {
        folder: sorted(others - layers.declared(ROOT, folder))
        for folder, others in includes.items()
        if others - layers.declared(ROOT, folder)
    }
    assert undeclared == {}, (
        "declare them in the folder's row or meson.build, or do not include them"
    )


def test_every_declared_folder_is_included():
    unused = {
        folder: sorted(layers.declared(ROOT, folder) - others)
        for folder, others in graph().items()
        if layers.declared(ROOT, folder) - others
    }
    assert unused == {}


def test_dependencies_have_no_cycle():
    assert layers.cycle(graph()) == []
    assert layers.cycle(graph({**MACHINE, "shim/gpu/actions": "shim/gpu"})) == []


def test_dependencies_point_to_lower_layers():
    """shim → recorder → common ← tools, and the layers of tools/ in the order of its meson.build."""
    position = {
        f"tools/{folder}": number for number, folder in enumerate(layers.rows(ROOT, "tools"))
    }
    allowed = {
        "common": {"common"},
        "recorder": {"recorder", "common"},
        "shim": {"shim", "recorder", "common"},
        "tools": {"tools", "common"},
    }

    for folder, others in graph().items():
        top = folder.partition("/")[0]
        assert {other.partition("/")[0] for other in others} <= allowed[top], folder
        for other in others:
            if other in position and folder in position:
                assert position[other] < position[folder], f"{folder} includes {other}"


def listed() -> list[str]:
    """The folders that docs/how-it-works.md lists, in order."""
    page = (ROOT / "docs/how-it-works.md").read_text(encoding="utf-8")
    section = page.partition("\n## Folders\n")[2].partition("\n## ")[0]
    return re.findall(r"(?m)^\| `([^`]+)/` \|", section)


def subfolders(top: str, suffixes: tuple[str, ...]) -> set[str]:
    """The folders below `top` that directly contain such files."""
    found = {path.parent for path in (ROOT / top).rglob("*") if path.suffix in suffixes}
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_page_lists_every_folder():
    package = subfolders("tools/python/oomrec", (".py",)) | subfolders("tools/views", (".js",))
    tests = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").iterdir()
        if path.is_dir() and path.name[0] not in "._"
    }
    tops = {"debian", "docs", "include", "older_glibc", "precompiled", "scripts", "subprojects"}

    assert len(listed()) == len(set(listed()))
    assert set(listed()) == set(layers.folders(ROOT)) | package | tests | tops


def test_the_page_lists_the_folders_in_dependency_order():
    """The reverse of meson's order: a folder comes before those that it includes."""
    for top in ("common", "recorder", "tools"):
        order = [*layers.rows(ROOT, top)]
        page = [folder.partition("/")[2] for folder in listed() if folder.startswith(f"{top}/")]
        assert [folder for folder in page if folder in order] == order[::-1]


def test_the_checks_find_violations():
    found = layers.included(
        {
            "tools/a/one.cpp": '#include "tools/a/one.h"\n#include "tools/b/c/two.h"\n',
            "tools/b/c/two.h": '#include <vector>\n#include "tools/a/one.h"\n',
        }
    )
    assert found == {"tools/a": {"tools/b/c"}, "tools/b/c": {"tools/a"}}
    assert layers.cycle(found) == ["tools/a", "tools/b/c", "tools/a"]
    assert layers.cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_a_dependency_counts_for_the_library_that_names_it(tmp_path):
    for folder in ("common/one", "common/two", "common/three"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.cpp").touch()
    (tmp_path / "common/one/meson.build").write_text(
        "# common_three_dep\n"
        "common_one = static_library('one', files('x.cpp'),\n"
        "  dependencies: [common_two_dep, zlib_dep])\n"
        "common_one_dep = declare_dependency(link_with: common_one)\n"
    )
    assert layers.declared(tmp_path, "common/one") == {"common/two"}
    assert layers.declared(tmp_path, "common/two") == set()
