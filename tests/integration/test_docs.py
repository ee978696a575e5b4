"""The pages: every link leads to an existing file and heading."""

import re
from pathlib import Path

import pytest
from conftest import SOURCE

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


def test_each_kind_of_change_names_its_files_and_tests():
    page = (SOURCE / "docs" / "changing.md").read_text()
    changes = page.split("\n## ")[1:]
    assert len(changes) == 10
    for change in changes:
        edited, _, test = change.partition("\nTest: ")
        assert paths(edited) and paths(test), change.splitlines()[0]


def test_the_glossary_is_short():
    """At most 40 private terms. A project that needs more should use common ones instead."""
    entries = re.findall(r"(?m)^\*\*.+?\*\*", (SOURCE / "docs" / "glossary.md").read_text())
    assert 20 <= len(entries) <= 40
    assert entries == sorted(entries, key=str.lower)
