"""The page of verdicts, tests/golden/verdicts.txt: facts of a death, and what oomrec says of them."""

import json
import subprocess

from conftest import SOURCE

# In tests/unit/common/verdict/: each shows verdicts (page.h).
PROGRAMS = ["death", "failure", "device", "crash", "runtime"]


def shown_verdicts(build_dir, rows) -> dict[str, list[str]]:
    """Code, certainty, limit, summary and evidence, by the facts."""
    for name in PROGRAMS:
        subprocess.run(
            [build_dir / f"tests/unit/common/verdict_{name}_test"],
            env={"OOMREC_TEST_VERDICTS": rows},
            check=True,
            capture_output=True,
        )
    verdicts: dict[str, list[str]] = {}
    for row in rows.read_text().splitlines():
        facts, *verdict = row.split("\t")
        assert verdicts.setdefault(facts, verdict) == verdict, f"two verdicts on: {facts}"
    return verdicts


def test_the_golden_page_has_each_verdict(golden, build_dir, tmp_path):
    """A line of evidence is there once; the number of a verdict's lines counts those above, too."""
    page, above = "", set()
    verdicts = shown_verdicts(build_dir, tmp_path / "rows")
    for facts, (code, certainty, limit, summary, *evidence) in verdicts.items():
        of = f"; limit {limit}" if limit else ""
        page += f"{facts} → {code}, {certainty}: {summary} [evidence {len(evidence)}{of}]\n"
        page += "".join(f"  - {line}\n" for line in evidence if line not in above)
        above.update(evidence)
    golden("verdicts.txt", page)
    schema = json.loads((SOURCE / "docs/schemas/facts.json").read_text())
    assert {verdict[0] for verdict in verdicts.values()} == {
        *schema["$defs"]["verdict_code"]["enum"]
    } - {None}
