"""A bundle in which every name is an attack: commands show it, but never obey it.

Names have markup, quotes, terminal escapes, invalid UTF-8 or 1 MiB of text, in the recording and in
the JSON files beside it. Every command that reads a bundle is tried (command_lines.py).
"""

import json
import re
import shutil
import subprocess
import unicodedata

import pytest
from command_lines import reading_lines
from terminal import printed_on_terminal

HOSTILE = "<script>alert(1)</script>\"'`&\x1b[31m\x1b]0;owned\x07\x1b[2J\r\n\t\x7f\x9b31m\u202e"
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
KEPT = {"schema_version", "reason", "backend", "files"}  # without these it is not a bundle


def with_attacks(value, key=None):
    """The same JSON with an attack appended to every text, and one text of 1 MiB."""
    if isinstance(value, dict):
        return {name: with_attacks(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [with_attacks(part, key) for part in value]
    if isinstance(value, str) and key not in KEPT:
        return value + HOSTILE + ("x" * (1 << 20) if key == "exception_message" else "")
    return "exception" + HOSTILE if key == "exception_message" else value


def hostile_symbols() -> dict:
    frames = [
        {
            "function": f"f{HOSTILE}{more}",
            "file": f"/src/{HOSTILE}{more}.c",
            "line": 7,
            "inlined": not more,
        }
        for more in ("", HOSTILE * 20_000)
    ]
    return {
        "schema_version": 1,
        "symbols": [{"build_id": "11" * 20, "offset": 0x1234, "frames": frames}],
    }


@pytest.fixture
def bundle(oomrec, build_dir, tmp_path):
    run = oomrec("run", "--limit", "64M", "--", "python3", "-c", "bytes(1 << 30)")
    made = shutil.copytree(run.only_bundle(), tmp_path / "attack" / run.only_bundle().name)
    for file in made.glob("*.json"):
        file.write_text(json.dumps(with_attacks(json.loads(file.read_text()))))
    (made / "symbols.json").write_text(json.dumps(hostile_symbols()))
    generator = build_dir / "tests" / "unit" / "tools" / "hostile_recording"
    subprocess.run([generator, made / "recording.oomrec"], check=True)
    return made


# Characters that reverse the direction of text.
BIDI = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def assert_harmless(output: bytes, allowed: str) -> None:
    used = set(output.decode())  # raises if it is not UTF-8
    controls = {char for char in used if unicodedata.category(char) in ("Cc", "Zl", "Zp")}
    assert controls <= set(allowed), controls
    assert not any(unicodedata.bidirectional(char) in BIDI for char in used)


@pytest.fixture
def lines(oomrec, bundle):
    found = reading_lines(oomrec, bundle)
    assert {"show", "stats", "tree", "ls"} <= {command for command, _ in found}
    return found


def printed(oomrec, *words) -> bytes:
    run = oomrec.start(*words)
    stdout, stderr = run.communicate(timeout=300)
    assert run.returncode == 0 and stdout, (words, stderr[-1000:])
    assert_harmless(stderr, "\n")
    return stdout


def test_no_name_reaches_a_terminal_unescaped(oomrec, build_dir, lines):
    environment = {**oomrec.environment, "TERM": "xterm"}
    for command, words in lines:
        line_end = "\r\n" if "csv" in words else "\n"  # RFC 4180
        assert_harmless(printed(oomrec, command, *words), line_end)
        line = [build_dir / "oomrec", command, *map(str, words)]
        shown = printed_on_terminal(line, environment, oomrec.directory)
        assert_harmless(COLOUR.sub(b"", shown), "\r\n")


def test_the_json_stays_valid(oomrec, bundle):
    lines = reading_lines(oomrec, bundle, json=True)
    assert {"show", "stats", "tree", "ls"} <= {command for command, _ in lines}
    for command, words in lines:
        document = printed(oomrec, command, *words)
        assert list(json.loads(document))[0] == "schema_version", command
        assert_harmless(document, "\n")


def test_no_page_has_a_name_as_markup(oomrec, lines):
    for command, words in lines:
        printed(oomrec, command, *words)
    for page in oomrec.directory.rglob("*.html"):
        assert b"<script>alert(1)" not in page.read_bytes(), page
