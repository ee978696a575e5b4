"""into_docs.py FROM DOCS: copies the tables of a run between the marks in overhead.md, and its plot."""

import shutil
import sys
from pathlib import Path

BEGIN, END = "<!-- tables: scripts/bench --docs -->", "<!-- end of tables -->"

source, docs = Path(sys.argv[1]), Path(sys.argv[2])
page = docs / "overhead.md"
before, _, rest = page.read_text().partition(BEGIN)
_, _, after = rest.partition(END)
page.write_text(f"{before}{BEGIN}\n\n{(source / 'table.md').read_text()}\n{END}{after}")
shutil.copyfile(source / "overhead.svg", docs / "overhead.svg")
