"""The pages: every link leads to an existing file and heading."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import SOURCE
from pythons import PYTHON_VERSIONS

LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
PAGES = sorted([SOURCE / "README.md", *(SOURCE / "docs").rglob("*.md")])


def without_code(text: str) -> str:
    """The text without fenced and indented code, which may look like links."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    return re.sub(r"(?m)^    .*$", "", text)


def anchors(page: Path) -> set[str]:
    """Headings as link targets: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    found = LINK.findall(without_code(page.read_text()))
    return [link for link in found if not link.startswith(("http:", "https:"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE)))
def test_links_have_targets(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"no file for ({link})"
        assert not anchor or anchor in anchors(target), f"no heading for ({link})"


def breakable(line: str) -> str:
    """The line with no blanks but those at which prose may be wrapped."""
    whole = re.compile(r"^[ *+>-]*|`[^`]*`|\]\([^)]*\)")
    return whole.sub(lambda found: "x" * len(found[0]), line)


def test_prose_is_wrapped():
    """A change of a word is a change of a line, not of a paragraph."""
    for page in PAGES:
        for line in without_code(page.read_text()).splitlines():
            is_table_or_heading = re.match(r" *[|#<]", line) is not None
            assert len(line) <= 100 or is_table_or_heading or " " not in breakable(line)[:100], (
                f"{page.relative_to(SOURCE)}: {line}"
            )


def test_every_page_is_reachable_from_the_readme():
    reached, todo = set(), [SOURCE / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        todo += [target for target in targets if target.suffix == ".md" and target.is_file()]
    assert not set(PAGES) - reached, sorted(map(str, set(PAGES) - reached))


def paths(text: str) -> list[str]:
    """Words in backticks that begin with a folder of the source tree or name a file in its root."""
    tops = "|".join(path.name for path in SOURCE.iterdir() if path.name[0] != ".")
    return re.findall(rf"`((?:{tops})(?:/[\w./-]*)?)`", text)


@pytest.mark.parametrize("page", ["changing.md", "how-it-works.md"])
def test_the_files_that_a_page_names_exist(page):
    named = paths((SOURCE / "docs" / page).read_text())
    assert len(named) > 50
    assert [path for path in named if not (SOURCE / path).exists()] == []


PRODUCT = ("shim/", "recorder/", "common/", "tools/")
IN_THREE_FILES = {
    "A hook",
    "A verdict",
    "An option",
    "An export format",
    "A trigger",
    "A report's tab",
}


def test_each_kind_of_change_is_a_few_steps_in_a_few_files():
    """What stands below the steps, as "Only …", is not for the usual change."""
    page = (SOURCE / "docs" / "changing.md").read_text()
    changes = {text.splitlines()[0]: text for text in page.split("\n## ")[1:]}
    assert len(changes) == 14 and set(changes) >= IN_THREE_FILES
    for name, change in changes.items():
        edited, _, test = change.partition("\nTest: ")
        assert paths(edited) and paths(test), name
        steps = re.findall(r"(?ms)^\d\. .*?(?=^\S|\Z)", edited)
        assert len(steps) <= 4 or name == "An architecture", name
        product = {
            path
            for path in paths("".join(steps))
            if path.startswith(PRODUCT) and not path.endswith(".md")
        }
        examples = {path for step in steps if "A new file beside" in step for path in paths(step)}
        if name in IN_THREE_FILES:
            assert len(product - examples) + bool(examples) <= 3, (name, product)


def test_the_names_that_changing_md_gives_are_in_the_sources():
    """What it calls by a name in capitals or kCamelCase, and functions: `kFailable`, `fits()`, `PYTHON_VERSIONS`."""
    page = (SOURCE / "docs" / "changing.md").read_text()
    named = set(re.findall(r"`(?:\w+::)?(k[A-Z]\w+|[A-Z]+_[A-Z_]+|test_\w+|\w+\(\))`", page))
    named = {name.removesuffix("()") for name in named} - {"WRITE_NAME"}
    assert len(named) > 45
    files = subprocess.check_output(["git", "ls-files"], cwd=SOURCE, text=True).splitlines()
    code = [name for name in files if not name.startswith("docs/") and (SOURCE / name).is_file()]
    text = "\n".join((SOURCE / name).read_text(errors="replace") for name in code)
    assert named <= set(re.findall(r"\w+", text)), named - set(re.findall(r"\w+", text))


def verdict_tables(build_dir, table: str) -> str:
    """What tests/unit/common/verdict/print_rules.cpp prints of the tables in common/verdict."""
    printer = build_dir / "tests/unit/common/verdict_rules"
    return subprocess.check_output([printer, table], text=True)


def test_pages_name_each_verdict_of_a_worker(build_dir):
    of_workers = set(verdict_tables(build_dir, "workers").split())
    assert {"cgroup_oom_kill", "runtime_limit"} <= of_workers and "crashed" not in of_workers
    page = (SOURCE / "docs" / "deaths.md").read_text()
    listed = page.partition("**child_killed** is the verdict if")[2].partition("\n\n")[0]
    assert of_workers <= set(re.findall(r"`(\w+)`", listed))


@pytest.mark.parametrize("table", ["events", "deaths"])
def test_the_page_has_the_table_of_rules(build_dir, table):
    page = SOURCE / "docs" / "deaths.md"
    text = page.read_text()
    begin, end = f"<!-- rules of {table} -->", f"<!-- end of {table} -->"
    old = text[text.index(begin) : text.index(end)]
    new = f"{begin}\n\n{verdict_tables(build_dir, table)}\n"
    if os.environ.get("OOMREC_WRITE_GOLDEN"):
        page.write_text(text.replace(old, new))
        return
    assert old == new, "OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table rewrites it"


def test_the_readme_names_the_pythons_that_are_tested():
    page = (SOURCE / "README.md").read_text()
    assert f"Python {PYTHON_VERSIONS[0]}–{PYTHON_VERSIONS[-1]}" in page


def test_the_glossary_is_short():
    """At most 40 private terms. A project that needs more should use common ones instead."""
    entries = re.findall(r"(?m)^\*\*.+?\*\*", (SOURCE / "docs" / "glossary.md").read_text())
    assert 20 <= len(entries) <= 40
    assert entries == sorted(entries, key=str.lower)
