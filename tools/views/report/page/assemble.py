"""Joins the parts of the report's page into one file that loads nothing from a network.

assemble.py PAGE.html D3.min.js OUT DEPFILE: replaces each <script src="…"> and <link rel="stylesheet" href="…"> of
the skeleton PAGE.html by an element with that file's text. The files are beside the skeleton, except d3.
"""

import re
import sys
from pathlib import Path

WORDS = ("OOMREC_VIEW", "OOMREC_LABEL", "OOMREC_FRAMES", "OOMREC_TITLE", "OOMREC_DATA")


def assembled(skeleton: Path, d3: Path) -> tuple[str, list[Path]]:
    """The page, and the files that it is made of."""
    parts = []

    def part(name: str) -> str:
        path = d3 if name == d3.name else skeleton.parent / name
        parts.append(path)
        text = path.read_text(encoding="utf-8")
        # An end tag in the text would end the element early, and `oomrec report` replaces each word once.
        for forbidden in ("</script", "</style", *WORDS):
            if forbidden in text.lower() or forbidden in text:
                raise SystemExit(f"{path}: must not contain {forbidden}")
        return text

    page = skeleton.read_text(encoding="utf-8")
    for word in WORDS:
        if page.count(word) != 1:
            raise SystemExit(f"{skeleton}: {word} must occur once, not {page.count(word)} times")
    page = re.sub(
        r'<link rel="stylesheet" href="([^"]+)">',
        lambda found: f"<style>\n{part(found[1])}</style>",
        page,
    )
    page = re.sub(
        r'<script src="([^"]+)"></script>',
        lambda found: f"<script>\n{part(found[1])}</script>",
        page,
    )
    return page, parts


if __name__ == "__main__":
    skeleton, d3, out, depfile = map(Path, sys.argv[1:])
    page, parts = assembled(skeleton, d3)
    out.write_text(page, encoding="utf-8")
    named = " ".join(str(path).replace(" ", r"\ ") for path in parts)
    depfile.write_text(f"{out}: {named}\n", encoding="utf-8")
