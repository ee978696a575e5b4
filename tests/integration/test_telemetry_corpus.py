"""The reader of telemetry, on files as other programs write, truncate and damage them.

tests/telemetry_corpus holds the files. expected.json gives the events of each, as differences from its
`defaults`, or why it is rejected. Each line of refused_records.jsonl is a record that is rejected, and the
reason. The package is tested: it asks the command.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import pytest
from conftest import SOURCE
from oomrec.gpumemprof._telemetry_fields import TelemetryProblem
from oomrec.gpumemprof.telemetry import (
    load_telemetry_events,
    telemetry_event_from_record,
    telemetry_event_to_dict,
)

CORPUS = SOURCE / "tests" / "telemetry_corpus"
EXPECTED = json.loads((CORPUS / "expected.json").read_text())
REFUSED = [json.loads(line) for line in (CORPUS / "refused_records.jsonl").open()]
NAMES = sorted(EXPECTED["files"])
TABLE = json.loads(
    (SOURCE / "tools/python/oomrec/gpumemprof/telemetry_fields.json").read_text(encoding="utf-8")
)
NOTES = TABLE["notes"]


def read(file: Path) -> dict:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            events = load_telemetry_events(file)
        except TelemetryProblem as problem:
            return {"reason": problem.reason}
    notes = [str(warning.message).removeprefix(f"{file}: ") for warning in caught]
    events.sort(key=lambda event: event.timestamp_ns)
    return {"events": [telemetry_event_to_dict(event) for event in events], "notes": notes}


def comparable(value):
    """As JSON can express it: NaN becomes null, and integers have at most 64 bits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and abs(value) > 2**63:
        return float(value)
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
def test_a_file(name):
    assert read(CORPUS / name) == expected(name)


def test_the_command_and_the_package_reject_a_record_for_the_same_reason(tmp_path):
    """The one check that both have, by the same table: of version 2. Files are the command's."""
    file = tmp_path / "record.json"
    for number, row in enumerate(REFUSED):
        with pytest.raises(TelemetryProblem) as of_record:
            telemetry_event_from_record(row["record"])
        assert of_record.value.reason == row["reason"], row["record"]
        if number % 8 == 0:  # each starts the command
            file.write_text(json.dumps([row["record"]]))
            assert read(file) == {"reason": row["reason"]}, row["record"]


def test_every_name_that_version_1_had_is_in_the_corpus():
    """A name added to the table needs a file that uses it."""
    text = "".join((CORPUS / name).read_text() for name in NAMES if name.startswith("version_1"))
    names = {
        name
        for field in TABLE["fields"]
        for name in (*field.get("version_1", ()), *field.get("in_metadata", ()))
    }
    assert [name for name in sorted(names) if f'"{name}"' not in text] == []
    assert len(names) >= 40


def test_a_size_under_another_name_is_not_read_as_0(oomrec):
    found = oomrec.json("analyze", CORPUS / "version_1_device_used_bytes.json")
    assert [stream["mean_bytes"] for stream in found["streams"]] == [5_000_000]


def test_analyze_reports_a_truncated_last_line(oomrec):
    run = oomrec("analyze", CORPUS / "torn_last_line.jsonl")
    assert run.exit_code == 0 and NOTES["cut"] in run.stderr, str(run)


def test_the_problem_names_what_is_missing(monkeypatch):
    monkeypatch.setenv("OOMREC_COMMAND", "/nowhere/oomrec")
    with pytest.raises(RuntimeError, match="the command oomrec reads telemetry"):
        load_telemetry_events(CORPUS / NAMES[0])
