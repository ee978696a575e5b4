"""A folder includes what its library declares as a dependency, and nothing else; no arrow runs back."""

from __future__ import annotations

from pathlib import Path

import layers

ROOT = Path(__file__).resolve().parents[2]

# Folders whose sources are compiled into another folder's library.
PARTS = {"shim/gpu": "shim", "shim/gpu/actions": "shim", "shim/interpose": "shim"}


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


def test_every_include_is_of_a_declared_folder():
    includes = graph()
    assert len(includes) > 50

    undeclared = {
        folder: sorted(others - layers.declared(ROOT, folder))
        for folder, others in includes.items()
        if others - layers.declared(ROOT, folder)
    }
    assert undeclared == {}, "declare them in the folder's meson.build, or do not include them"


def test_every_declared_folder_is_included():
    unused = {
        folder: sorted(layers.declared(ROOT, folder) - others)
        for folder, others in graph().items()
        if layers.declared(ROOT, folder) - others
    }
    assert unused == {}


def test_no_arrow_runs_back():
    assert layers.cycle(graph()) == []
    assert layers.cycle(graph({"shim/gpu/actions": "shim/gpu"})) == []


def test_layers_are_crossed_downwards():
    """shim → recorder → common ← tools, and the layers of tools/ in the order of its meson.build."""
    build = (ROOT / "tools/meson.build").read_text(encoding="utf-8")
    order = [line.split("'")[1] for line in build.splitlines() if line.startswith("subdir(")]
    position = {f"tools/{folder}": number for number, folder in enumerate(order)}
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


def test_what_the_checks_would_find():
    found = layers.included(
        {
            "tools/a/one.cpp": '#include "tools/a/one.h"\n#include "tools/b/c/two.h"\n',
            "tools/b/c/two.h": '#include <vector>\n#include "tools/a/one.h"\n',
        }
    )
    assert found == {"tools/a": {"tools/b/c"}, "tools/b/c": {"tools/a"}}
    assert layers.cycle(found) == ["tools/a", "tools/b/c", "tools/a"]
    assert layers.cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_a_dependency_counts_where_a_library_names_it(tmp_path):
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
