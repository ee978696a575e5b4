"""The pages: every link leads to a file that is there, and to a heading that it has."""

import re
from pathlib import Path

import pytest
from conftest import SOURCE

LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
PAGES = sorted([SOURCE / "README.md", *(SOURCE / "docs").rglob("*.md")])


def without_code(text: str) -> str:
    """Neither blocks between fences nor indented ones: what looks like a link there is none."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    return re.sub(r"(?m)^    .*$", "", text)


def anchors(page: Path) -> set[str]:
    """The headings as links name them: in lower case, without punctuation, blanks as hyphens."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    found = LINK.findall(without_code(page.read_text()))
    return [link for link in found if not link.startswith(("http:", "https:"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE)))
def test_links_lead_somewhere(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"no file for ({link})"
        assert not anchor or anchor in anchors(target), f"no heading for ({link})"


def test_every_page_is_reached_from_the_readme():
    reached, todo = set(), [SOURCE / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        todo += [target for target in targets if target.suffix == ".md" and target.is_file()]
    assert not set(PAGES) - reached, sorted(map(str, set(PAGES) - reached))


def test_the_glossary_is_short():
    """At most 40 words of our own; one that needs more words than that needs other words."""
    entries = re.findall(r"(?m)^\*\*.+?\*\*", (SOURCE / "docs" / "glossary.md").read_text())
    assert 20 <= len(entries) <= 40
    assert entries == sorted(entries, key=str.lower)
