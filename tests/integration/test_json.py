"""What every command prints with --json: it follows its schema, has every key, and is the same in
every locale.

The commands are those that `oomrec --help` lists. A command with --json needs a schema in
docs/schemas, a section in docs/json.md and, if it does not read a bundle, an entry in WORDS.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
from command_lines import commands, help_of, reading_lines
from schema_listing import Listing
from schemas import SCHEMAS, check, compact, compare_or_write, completed, with_keys

SOURCE = Path(__file__).resolve().parents[2]
LEAK = """\
import sys, time
kept = []
while len(kept) < int(sys.argv[1]):
    kept.append(bytearray(20 << 20))
print("held", flush=True)
time.sleep(600)
"""

# Command lines that do not read a bundle, or do more with it. {pid} is a live recorded
# process.
WORDS = {
    "recover": [[]],
    "dump": [["{pid}"]],
    "attach": [["{unrecorded}"]],
    "top": [["{pid}"], ["-n", "2", "--interval", "0.1", "{pid}"]],
    "redact": [["-o", "redacted", "{bundle}"]],
    "merge": [["-o", "job", "{bundle}"]],
    "info": [[], ["--", "true"]],
    "simulate": [["--list"], ["soft_limit"]],
}
# Several commands share a schema.
SCHEMA = {
    "export": "export_holders",
    "report": "report_command",
    "flamegraph": "report_command",
    "table": "report_command",
}
MAY_FIND_NOTHING = {"recover", "info"}  # their output is JSON even then


@pytest.fixture
def bundle(oomrec, tmp_path):
    (tmp_path / "leak.py").write_text(LEAK)
    return oomrec("run", "--limit", "128M", "--", "python3", "leak.py", 100).only_bundle()


@pytest.fixture
def pid(oomrec, bundle):
    """The pid of a live recorded process."""
    return oomrec.start("run", "--", "python3", "leak.py", 2).once("held").child()


@pytest.fixture
def unrecorded(plain, bundle):
    """The pid of a live process without the recorder."""
    program = plain.start("python3", "leak.py", 1).once("held")
    yield program.pid
    plain.end_all()


def schema_of(command: str) -> str:
    return SCHEMA.get(command, command)


def speaking_json(oomrec) -> list[str]:
    return [name for name in commands(oomrec) if "--json" in help_of(oomrec, name)]


def test_each_has_its_arguments_schema_and_section(oomrec, bundle):
    page = (SOURCE / "docs" / "json.md").read_text()
    reading = {name for name, _ in reading_lines(oomrec, bundle, json=True)}
    names = speaking_json(oomrec)
    assert len(names) >= 8
    for name in names:
        assert name in reading | set(WORDS), f"tests/integration/test_json.py: no words for {name}"
        assert (SCHEMAS / f"{schema_of(name)}.json").exists(), f"no schema of {name}"
        assert f"## `oomrec {name} --json`" in page, f"docs/json.md: nothing of {name}"
        assert f"schemas/{schema_of(name)}.json" in page


def listed(page: str) -> list[str]:
    """Writes the keys of all schemas that are listed in a page of docs; returns what has them."""
    text, listing = (SOURCE / "docs" / page).read_text(), Listing()
    # The others are tables (test_facts.py).
    names = [
        name
        for name, keys in re.findall(r"<!-- keys of (\S+) -->\n\n(.*)", text)
        if not keys.startswith("|")
    ]
    for name in names:
        text = with_keys(text, name, listing.of(name.removesuffix(".json")))
    compare_or_write(SOURCE / "docs" / page, text)
    return names


def test_the_page_has_the_table_of_each_command(oomrec):
    commands = {schema_of(name) for name in speaking_json(oomrec)}
    assert {*listed("json.md"), "export_holders"} >= commands


def test_the_page_has_the_table_of_each_file():
    assert "symbols.json" in listed("bundle-format.md")


@pytest.mark.parametrize("page", ["deaths.md", "json.md"])
def test_each_verdict_is_documented(page):
    facts = json.loads((SCHEMAS / "facts.json").read_text())["$defs"]
    text = (SOURCE / "docs" / page).read_text()
    assert [code for code in facts["verdict_code"]["enum"] if f"`{code}`" not in text] == []


# Objects that others may add to, of which parts are left out, or whose form is not ours.
OPEN = {"alert", "diagnose_manifest", "environment", "events", "report", "speedscope"}


@pytest.mark.parametrize(
    "path",
    [path for path in SCHEMAS.glob("*.json") if path.stem not in OPEN],
    ids=lambda path: path.stem,
)
def test_a_schema_has_the_table_of_required_keys(path):
    compare_or_write(path, compact(completed(json.loads(path.read_text()))) + "\n")


def references(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from references(part)


@pytest.mark.parametrize("shared", ["definitions.json", "facts.json"])
def test_every_shared_definition_exists_and_is_used(shared):
    definitions = json.loads((SCHEMAS / shared).read_text())["$defs"]
    used = {
        reference.rpartition("/")[2]
        for path in SCHEMAS.glob("*.json")
        for reference in references(json.loads(path.read_text()))
        if reference.startswith(f"{shared if path.name != shared else ''}#/$defs/")
    }
    assert used == set(definitions)


@pytest.mark.needs_module("jsonschema")
def test_output_follows_the_schema(oomrec, bundle, pid, unrecorded):
    names = speaking_json(oomrec)
    lines = reading_lines(oomrec, bundle, json=True)
    lines += [(name, ["--json", *words]) for name, all_of in WORDS.items() for words in all_of]
    checked = set()
    for name, words in lines:
        if name not in names:
            continue
        filled = [str(word).format(pid=pid, unrecorded=unrecorded, bundle=bundle) for word in words]
        run = oomrec(name, *filled)
        assert run.exit_code in ((0, 1) if name in MAY_FIND_NOTHING else (0,)), str(run)
        documents = map(json.loads, run.stdout.splitlines()) if "-n" in words else [run.json()]
        for document in documents:
            assert list(document)[0] == "schema_version", name
            check(schema_of(name), document)
        checked.add(name)
    assert checked == set(names)


def test_recordings_without_a_bundle_are_listed(oomrec, pid):
    recordings = oomrec.json("ls", "--all")["recordings"]
    assert {"pid": int(pid), "alive": True}.items() <= recordings[0].items()
    assert oomrec("show", recordings[0]["recording"]).exit_code == 0


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A locale with a decimal comma. It is generated, because few machines have one."""
    folder = tmp_path_factory.mktemp("locales")
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], capture_output=True
    )
    if not (folder / "de_DE.UTF-8" / "LC_NUMERIC").exists():
        pytest.skip(f"localedef makes no de_DE here: {made.stderr.decode()[:200]}")
    environment = {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"}
    script = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.str(0.5))"
    shown = subprocess.run(
        ["python3", "-c", script], env={**environment, **PATH}, capture_output=True
    )
    assert shown.stdout == b"0,5\n", shown.stderr
    return environment


PATH = {"PATH": "/usr/bin:/bin"}


@pytest.mark.needs_program("localedef")
def test_figures_are_the_same_in_every_locale(oomrec, bundle, german):
    compared = 0
    lines = reading_lines(oomrec, bundle) + reading_lines(oomrec, bundle, json=True)
    for name, words in lines:
        here = oomrec(name, *words)
        there = oomrec(name, *words, env=german)
        assert here.exit_code == 0 and here.stdout, str(here)
        assert (there.exit_code, there.stdout) == (0, here.stdout), str(there)
        compared += 1
    assert compared >= 8
