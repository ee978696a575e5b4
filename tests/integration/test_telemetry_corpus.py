"""Two readers of telemetry, the command's and the Python package's, agree on every file.

tests/telemetry_corpus holds files as other programs write, truncate and damage them. expected.json
gives the events of each, as differences from its `defaults`, or why both readers must reject it.
Each line of refused_records.jsonl is a record that both must reject, and the reason.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import warnings
from pathlib import Path

import pytest
from oomrec.gpumemprof._telemetry_fields import FIELDS, NOTES, TelemetryProblem
from oomrec.gpumemprof.telemetry import load_telemetry_events, telemetry_event_to_dict

CORPUS = Path(__file__).resolve().parents[1] / "telemetry_corpus"
EXPECTED = json.loads((CORPUS / "expected.json").read_text())
REFUSED = [json.loads(line) for line in (CORPUS / "refused_records.jsonl").open()]
NAMES = sorted(EXPECTED["files"])


@pytest.fixture(scope="session")
def by_command(build_dir):
    """by_command(files) is what the command reads in each file."""
    program = build_dir / "tests" / "unit" / "tools" / "tools_telemetry_events"

    def read(files: list[Path]) -> list[dict]:
        run = subprocess.run([program, *files], capture_output=True, timeout=120)
        assert run.returncode == 0, run.stderr
        return [comparable(json.loads(line)) for line in run.stdout.split(b"\n") if line]

    return read


@pytest.fixture(scope="session")
def command_read(by_command):
    """What the command reads in each file of the corpus."""
    return dict(zip(NAMES, by_command([CORPUS / name for name in NAMES])))


def by_package(file: Path) -> dict:
    """What the Python package reads in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            events = load_telemetry_events(file)
        except TelemetryProblem as problem:
            return {"reason": problem.reason}
    events.sort(key=lambda event: event.timestamp_ns)
    notes = [str(warning.message).removeprefix(f"{file}: ") for warning in caught]
    records = [telemetry_event_to_dict(event) for event in events]
    return comparable({"events": records, "notes": notes})


def comparable(value):
    """As JSON can express it: NaN becomes null, and integers have at most 64 bits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and abs(value) > 2**63:
        return float(value)
    if isinstance(value, dict) and "reason" in value and "message" in value:
        return {"reason": value["reason"]}
    if isinstance(value, dict):
        return {key: comparable(member) for key, member in value.items()}
    return [comparable(member) for member in value] if isinstance(value, list) else value


def expected(name: str) -> dict:
    wanted = EXPECTED["files"][name]
    if "reason" in wanted:
        return wanted
    events = [{**EXPECTED["defaults"], **event} for event in wanted["events"]]
    events.sort(key=lambda event: event["timestamp_ns"])
    return comparable(
        {"events": events, "notes": [NOTES[note] for note in wanted.get("notes", [])]}
    )


def test_every_file_of_the_corpus_is_expected():
    files = {path.name for path in CORPUS.iterdir()}
    assert files == {*NAMES, "expected.json", "refused_records.jsonl"}


@pytest.mark.parametrize("name", NAMES)
def test_both_read_what_is_in_a_file(name, command_read):
    wanted = expected(name)
    assert command_read[name] == wanted
    assert by_package(CORPUS / name) == wanted


def test_both_reject_a_record_for_the_same_reason(by_command, tmp_path):
    files = []
    for number, row in enumerate(REFUSED):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps([row["record"]]))
    for row, file, read in zip(REFUSED, files, by_command(files)):
        wanted = {"reason": row["reason"]}
        assert (read, by_package(file)) == (wanted, wanted), row["record"]


def test_every_name_that_version_1_had_is_in_the_corpus():
    """A name added to the table needs a file that uses it."""
    read = "".join((CORPUS / name).read_text() for name in NAMES if name.startswith("version_1"))
    names = {name for field in FIELDS.values() for name in (*field.version_1, *field.in_metadata)}
    assert [name for name in sorted(names) if f'"{name}"' not in read] == []
    assert len(names) >= 40


def test_the_table_has_only_keys_that_both_readers_know():
    bases = {"integer", "bytes", "mebibytes", "seconds", "device", "text", "any text", "object"}
    ways = {"", "null", "nothing", "zero"}
    for field in FIELDS.values():
        for kind in (field.kind, *field.version_1.values(), *field.in_metadata.values()):
            base, _, way = kind.partition(" or ")
            assert base in bases and way in ways, (field.key, kind)


def test_both_read_damaged_files_alike(by_command, tmp_path):
    """Files of the corpus with random cuts, insertions, deletions and changes of bytes."""
    rng = random.Random(16)
    originals = [(CORPUS / name).read_bytes() for name in NAMES]
    pieces = [b'"', b"'", b"\\", b"\n", b"\r", b",", b":", b"{", b"}", b"(", b")", b"[", b"]", b"\t",
              b" ", b"-", b"0", b"1e5", b"1.5", b"NaN", b"nan", b"None", b"null", b"true", b"\xff",
              b"\xc3", b"\xef\xbb\xbf", b"\\ud800", b"\\x41", b"'=", b"schema_version", b"\0"]  # fmt: skip
    files = []
    for number in range(1500):
        text = bytearray(rng.choice(originals)[:4000])
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(text))
            if rng.random() < 0.25:
                del text[at:]
            else:
                text[at : at + rng.choice([0, 0, 1, 4])] = rng.choice(pieces)
        files.append(tmp_path / f"{number}.json")
        files[-1].write_bytes(text)
    refused = 0
    for file, read in zip(files, by_command(files)):
        assert by_package(file) == read, file.read_bytes()
        refused += "reason" in read
    assert 300 < refused < 1200


def test_a_size_under_another_name_is_not_read_as_0(oomrec):
    found = oomrec.json("analyze", CORPUS / "version_1_device_used_bytes.json")
    assert [stream["mean_bytes"] for stream in found["streams"]] == [5_000_000]


def test_the_command_reports_a_truncated_last_line(oomrec):
    run = oomrec("analyze", CORPUS / "torn_last_line.jsonl")
    assert run.exit_code == 0 and NOTES["cut"] in run.stderr, str(run)
