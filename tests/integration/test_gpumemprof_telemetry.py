"""TelemetryEvent version 2 in Python: every rule, the conversion of version 1, and files.

A valid record is broken in one key at a time. tests/telemetry.py implements the same rules and must
agree each time.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import UserDict

import pytest
import telemetry as rules
from conftest import clean_environment, written
from oomrec.errors import ConfigurationError
from oomrec.gpumemprof.telemetry import (
    TelemetryEventV2,
    load_telemetry_events,
    resolve_distributed_identity,
    telemetry_event_from_record,
    telemetry_event_to_dict,
    validate_telemetry_record,
    write_telemetry_events,
)

VALID = {
    "schema_version": 2,
    "timestamp_ns": 1_700_000_000_123_456_789,
    "event_type": "sample",
    "collector": "gpumemprof.cuda_tracker",
    "sampling_interval_ms": 100,
    "pid": 1234,
    "host": "node-7",
    "device_id": 0,
    "allocator_allocated_bytes": 1021,
    "allocator_reserved_bytes": 2039,
    "allocator_active_bytes": 509,
    "allocator_inactive_bytes": 1531,
    "allocator_change_bytes": -251,
    "device_used_bytes": 2039,
    "device_free_bytes": 4093,
    "device_total_bytes": 6132,
    "context": "epoch 3",
    "metadata": {"origin": "test"},
}
RANKED = {**VALID, "job_id": "77", "rank": 5, "local_rank": 1, "world_size": 8}

AT_LEAST_0 = [
    "timestamp_ns", "sampling_interval_ms", "allocator_allocated_bytes",
    "allocator_reserved_bytes", "allocator_active_bytes", "allocator_inactive_bytes",
    "device_used_bytes", "device_free_bytes", "device_total_bytes", "rank", "local_rank",
]  # fmt: skip
NULLABLE = [
    "allocator_active_bytes", "allocator_inactive_bytes", "device_free_bytes",
    "device_total_bytes", "context", "job_id",
]  # fmt: skip
INTEGERS = [
    *AT_LEAST_0,
    "schema_version",
    "pid",
    "device_id",
    "allocator_change_bytes",
    "world_size",
]
TEXTS = ["event_type", "collector", "host"]


def broken() -> list:
    """(what is wrong, key, value): each breaks one rule of a record that holds to all."""
    cases = [("below 0", key, -1) for key in AT_LEAST_0]
    cases += [("below -1", key, -2) for key in ("pid", "device_id")]
    cases += [
        ("a bool is not an integer", key, value) for key in INTEGERS for value in (True, False)
    ]
    cases += [("a float is none", key, 1.0) for key in INTEGERS]
    cases += [("a text is none", key, "1") for key in INTEGERS]
    cases += [("null", key, None) for key in RANKED if key not in NULLABLE]
    cases += [("no text", key, 7) for key in [*TEXTS, "context", "job_id"]]
    cases += [("no object", "metadata", value) for value in ([], "{}", UserDict({"a": 1}))]
    cases += [("another version", "schema_version", value) for value in (0, 1, 5)]
    cases += [("no rank below the world size", key, 8) for key in ("rank", "local_rank")]
    cases += [("no world", "world_size", 0)]
    cases += [
        ("more than there is", key, 6133) for key in ("device_used_bytes", "device_free_bytes")
    ]
    return [pytest.param(key, value, id=f"{key}={value!r}: {why}") for why, key, value in cases]


ALONE = {**VALID, "job_id": None, "rank": 0, "local_rank": 0, "world_size": 1}


@pytest.mark.parametrize("record", [ALONE, RANKED], ids=["alone", "of a job"])
def test_a_valid_record_round_trips(record):
    assert rules.problems(record) == []
    validate_telemetry_record(record)
    assert telemetry_event_to_dict(telemetry_event_from_record(record)) == record


@pytest.mark.parametrize(("key", "value"), broken())
def test_a_record_that_breaks_one_rule_is_rejected_by_name(key, value):
    record = {**RANKED, key: value}
    with pytest.raises(ValueError, match=key):
        validate_telemetry_record(record)
    with pytest.raises(ValueError, match=key):
        telemetry_event_from_record(record)


@pytest.mark.parametrize("key", rules.REQUIRED)
def test_no_required_key_may_be_missing(key):
    record = {name: value for name, value in VALID.items() if name != key}
    with pytest.raises(ValueError, match=f"Missing required telemetry fields: {key}"):
        validate_telemetry_record(record)


def test_unknown_keys_are_rejected():
    with pytest.raises(ValueError, match="Unknown telemetry fields: unknown_counter"):
        telemetry_event_from_record({**VALID, "unknown_counter": 42})


@pytest.mark.parametrize("key", NULLABLE)
def test_unknown_values_are_null(key):
    validate_telemetry_record({**RANKED, key: None})


@pytest.mark.parametrize("key", TEXTS)
def test_a_required_text_may_not_be_empty(key):
    with pytest.raises(ValueError, match=key):
        validate_telemetry_record({**VALID, key: "  "})


def test_both_readers_agree_on_the_rules():
    """Records broken at random: both readers reject the same ones."""
    rng = random.Random(8)
    values = [None, True, -2, -1, 0, 1, 7, 8, 6133, 2**70, 1.5, "", "text", [], {}, {"a": 1}]
    refused = 0
    for _ in range(4000):
        record = dict(RANKED)
        for _ in range(rng.randint(1, 3)):
            key = rng.choice([*RANKED, "other"])
            if rng.random() < 0.2:
                record.pop(key, None)
            else:
                record[key] = rng.choice(values)
        if any(record.get(key) == "" for key in TEXTS):
            continue  # tests/telemetry.py accepts an empty text
        world = record.get("world_size")
        ranks = [record.get("rank"), record.get("local_rank")]
        if rules.is_integer(world) and any(rules.is_integer(r) and r >= world for r in ranks):
            continue  # and ranks of any size
        try:
            validate_telemetry_record(record)
            problem = None
        except ValueError as error:
            problem = error
        try:
            agreed = (problem is None) == (rules.problems(record) == [])
        except TypeError:  # it compares sizes of any type
            agreed = problem is not None
        assert agreed, (record, problem)
        refused += problem is not None
    assert refused > 1000


def test_an_invalid_event_cannot_be_constructed():
    with pytest.raises(ValueError, match="device_used_bytes"):
        TelemetryEventV2(**{**VALID, "device_used_bytes": 6133})


# Version 1


def test_version_1_of_a_gpu():
    event = telemetry_event_from_record(
        {
            "timestamp": 1700000000.25,
            "event_type": "allocation",
            "memory_allocated": 10_000,
            "memory_reserved": 15_000,
            "memory_change": 512,
            "device_id": 0,
            "context": "alloc",
            "metadata": {"a": 1},
            "metadata_usage_percent": 75.5,
        },
        default_sampling_interval_ms=100,
    )
    record = telemetry_event_to_dict(event)
    assert rules.problems(record) == []
    assert record["timestamp_ns"] == 1_700_000_000_250_000_000
    assert record["collector"] == "gpumemprof.cuda_tracker"
    assert (record["allocator_allocated_bytes"], record["allocator_reserved_bytes"]) == (
        10_000,
        15_000,
    )
    assert record["allocator_change_bytes"] == 512
    assert record["metadata"] == {"a": 1, "usage_percent": 75.5}
    assert record["sampling_interval_ms"] == 100


def test_a_minimal_version_1_record_gets_the_defaults():
    record = telemetry_event_to_dict(
        telemetry_event_from_record({"timestamp": 1700000001, "memory_allocated": 8191})
    )
    assert rules.problems(record) == []
    assert {key: record[key] for key in ("pid", "host", "device_id", "event_type")} == {
        "pid": -1,
        "host": "unknown",
        "device_id": -1,
        "event_type": "sample",
    }
    assert record["allocator_reserved_bytes"] == record["device_used_bytes"] == 8191
    assert record["allocator_change_bytes"] == 0
    assert record["device_total_bytes"] is None and record["device_free_bytes"] is None
    assert record["collector"] == "gpumemprof.cpu_tracker"


@pytest.mark.parametrize(
    ("device", "device_id"),
    [
        ("/GPU:1", 1),
        ("/GPU:0", 0),
        ("cuda:3", 3),
        ("cuda", 0),
        ("/CPU:0", -1),
        ("cpu", -1),
        (2, 2),
        ("?", 0),
    ],
)
def test_version_1_device_names(device, device_id):
    record = {"timestamp": 1.0, "type": "sample", "memory_mb": 2.0, "device": device}
    event = telemetry_event_from_record(record)
    assert event.device_id == device_id
    assert (
        event.allocator_allocated_bytes == 2 << 20 and event.collector == "tfmemprof.memory_tracker"
    )


@pytest.mark.parametrize(
    "record",
    [
        {"memory_allocated": 1},
        {"timestamp": None, "memory_allocated": 1},
        {"timestamp": True, "memory_allocated": 1},
        {"timestamp": "1.0", "memory_allocated": 1},
        {"timestamp": float("nan"), "memory_allocated": 1},
        {"timestamp": 1.0, "memory_allocated": 1.5},
        {"timestamp": 1.0, "memory_allocated": True},
        {"timestamp": 1.0, "metadata": []},
        {"timestamp": 1.0, "type": ""},
        {"timestamp": -1.0},
    ],
)
def test_version_1_with_wrong_types_or_no_time_is_rejected(record):
    with pytest.raises(ValueError):
        telemetry_event_from_record(record)


@pytest.mark.parametrize(
    ("version", "words"),
    [("2", "must be an integer"), (True, "must be an integer"), (None, "must be an integer"),
     (1, "Unsupported schema_version: 1"), (5, "Unsupported schema_version: 5")],
)  # fmt: skip
def test_another_version_is_never_taken_for_version_1(version, words):
    with pytest.raises(ValueError, match=words):
        telemetry_event_from_record({"schema_version": version, "timestamp": 1.0})


def test_version_1_can_be_rejected():
    with pytest.raises(ValueError, match="Legacy record conversion is disabled"):
        telemetry_event_from_record({"timestamp": 1.0}, permissive_legacy=False)


# Files


@pytest.mark.parametrize("form", ["json", "csv"])
def test_written_files_can_be_read_back(tmp_path, form):
    events = [
        telemetry_event_from_record(record)
        for record in (
            VALID,
            RANKED,
            {**VALID, "context": None, "device_total_bytes": None, "device_free_bytes": None},
            {**VALID, "context": 'comma, "quote"\nline', "metadata": {"ä": [1, None, "x"]}},
        )
    ]
    path = tmp_path / f"events.{form}"
    write_telemetry_events(path, events, form)
    assert load_telemetry_events(path) == events


COUNTERS = ["allocator_allocated", "allocator_reserved", "allocator_active", "allocator_inactive",
            "device_used", "device_free", "device_total"]  # fmt: skip


def test_a_record_of_version_4_is_written_back_unchanged(tmp_path):
    """A device that counts nothing of an allocator."""
    unknown = dict.fromkeys([f"{name}_bytes" for name in COUNTERS[:4]] + ["allocator_change_bytes"])
    capabilities = {f"supports_{name}": f"{name}_bytes" not in unknown for name in COUNTERS}
    metadata = {"memory_capabilities": {"backend": "cuda", **capabilities}}
    record = {**RANKED, **unknown, "schema_version": 4, "session_id": "s1", "metadata": metadata}
    path = tmp_path / "events.json"
    write_telemetry_events(path, [telemetry_event_from_record(record)], schema_version=4)
    [written] = json.loads(path.read_text())
    given = metadata["memory_capabilities"]
    assert given.items() <= written["metadata"]["memory_capabilities"].items()
    assert {**written, "metadata": metadata} == record


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("version", [3, 4])
def test_files_of_later_versions_can_be_read_back(tmp_path, version, form):
    path = tmp_path / f"events.{form}"
    event = telemetry_event_from_record({**RANKED, "allocator_active_bytes": None})
    write_telemetry_events(path, [event], form, version, "mine")
    [read] = load_telemetry_events(path, permissive_legacy=False)
    session, capabilities = (
        read.metadata.pop("session_id"),
        read.metadata.pop("memory_capabilities", None),
    )
    assert (session, read) == ("mine", event)
    assert (capabilities is not None) == (version == 4)
    if version == 4:
        assert (
            not capabilities["supports_allocator_active"] and capabilities["supports_device_used"]
        )
        assert capabilities["backend"] == "cuda"


READ_BY_STORMLOG = """
import sys
from stormlog.telemetry import load_telemetry_events, telemetry_event_to_dict, validate_telemetry_record
for file in sys.argv[1:]:
    for event in load_telemetry_events(file, permissive_legacy=False):
        record = telemetry_event_to_dict(event)
        validate_telemetry_record(record)
        print(record["schema_version"], record["session_id"], record["device_used_bytes"])
"""


def test_stormlog_reads_later_versions(tmp_path, build_dir):
    source = build_dir / "stormlog-0.4.3"
    if not source.is_dir():
        pytest.skip(f"{source.name} is not downloaded: scripts/test downloads it")
    files = []
    for version in (3, 4):
        files.append(tmp_path / f"{version}.json")
        event = telemetry_event_from_record(VALID)
        write_telemetry_events(files[-1], [event], "json", version, "mine")
    run = subprocess.run([sys.executable, "-c", READ_BY_STORMLOG, *files], stdout=subprocess.PIPE,
                         text=True, env={**clean_environment(), "PYTHONPATH": str(source)})  # fmt: skip
    assert run.stdout == "4 mine 2039\n" * 2


def test_an_unknown_version_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Unsupported schema_version: 5"):
        write_telemetry_events(tmp_path / "events.json", [], "json", 5)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_empty_list_of_events_is_an_empty_file(tmp_path, form):
    path = tmp_path / f"events.{form}"
    write_telemetry_events(path, [], form)
    assert load_telemetry_events(path) == []


def test_an_unknown_format_is_rejected_before_a_file_is_created(tmp_path):
    with pytest.raises(ValueError, match="xml"):
        write_telemetry_events(tmp_path / "events.xml", [], "xml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (json.dumps([VALID, VALID]), 2),
        (json.dumps(VALID), 1),
        (json.dumps({"peak": 1, "events": [VALID]}), 1),
        (f"{json.dumps(VALID)}\n{json.dumps(RANKED)}\n\n", 2),
    ],
    ids=["array", "one", "under a key", "lines"],
)
def test_json_files(tmp_path, text, count):
    path = written(tmp_path / "events.json", text)
    assert len(load_telemetry_events(path)) == count


def test_a_custom_key(tmp_path):
    path = written(tmp_path / "events.json", json.dumps({"samples": [VALID]}))
    assert len(load_telemetry_events(path, events_key="samples")) == 1
    with pytest.raises(ValueError, match="'other'"):
        load_telemetry_events(path, events_key="other")


def test_csv_by_version_1_and_by_other_writers(tmp_path):
    """pandas writes integers as floats in a column with gaps, and dictionaries by Python's repr()."""
    path = tmp_path / "tracking.csv"
    path.write_text(
        "timestamp,event_type,memory_allocated,memory_reserved,device_id,total_memory,metadata\n"
        "1700000000.5,allocation,1021,2039,0,4096.0,\"{'usage_percent': 12.5, 'ok': True}\"\n"
        "1700000001,peak,1023,2039,0,,\n"
    )
    first, second = load_telemetry_events(path)
    assert first.device_total_bytes == 4096 and first.device_free_bytes == 4096 - 1021
    assert first.metadata == {"usage_percent": 12.5, "ok": True}
    assert second.device_total_bytes is None and second.metadata == {}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "", "empty"),
        ("a.json", "nonsense", "neither JSON nor a table"),
        ("a.json", "7", "neither JSON nor a table"),
        ("a.json", '{"peak": 1}', "no telemetry events"),
        ("a.json", json.dumps([VALID, 7]), "record 2: it is not an object"),
        ("a.json", json.dumps([VALID, {**VALID, "pid": True}]), "record 2: pid"),
        ("a.json", f"{json.dumps(VALID)}\n{{\n", "line 2 is not JSON"),
        ("a.json", "[" * 100_000, "no"),
        ("a.csv", "timestamp,pid\n1.0\n", "cells"),
        ("a.csv", "timestamp,pid\n1.0,x\n", "record 1: pid"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_explained(tmp_path, name, text, words):
    path = written(tmp_path / name, text)
    with pytest.raises(ValueError, match=words):
        load_telemetry_events(path)


@pytest.mark.parametrize("context", ["=cmd", "+1", "-5 MiB", "@x", "'=x", "''-", "'", "plain"])
def test_text_is_guarded_against_spreadsheet_formulas(tmp_path, context):
    event = telemetry_event_from_record({**VALID, "context": context})
    path = tmp_path / "events.csv"
    write_telemetry_events(path, [event], "csv")
    assert not set(path.read_text().splitlines()[1].split(",")) & {"=cmd", "+1", "-5 MiB", "@x"}
    assert "-251" in path.read_text()  # numbers are not quoted
    assert load_telemetry_events(path) == [event]


def test_a_truncated_last_line_is_reported(tmp_path):
    path = written(tmp_path / "events.jsonl", f"{json.dumps(VALID)}\n{json.dumps(VALID)[:99]}")
    with pytest.warns(UserWarning, match="events.jsonl: the last line is cut off"):
        assert len(load_telemetry_events(path)) == 1


def test_a_missing_file(tmp_path):
    with pytest.raises(OSError):
        load_telemetry_events(tmp_path / "none.json")


# Ranks

TORCHRUN = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "run-1"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "8",
}
SLURM = {"SLURM_PROCID": "6", "SLURM_LOCALID": "2", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "99"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (None, 0, 0, 1)),
        (TORCHRUN, ("run-1", 3, 1, 4)),
        (OPEN_MPI, (None, 5, 1, 8)),
        (SLURM, ("99", 6, 2, 16)),
        ({**SLURM, **TORCHRUN}, ("run-1", 3, 1, 4)),
        ({**SLURM, "RANK": "3", "WORLD_SIZE": "4"}, ("99", 3, 3, 4)),
        ({**SLURM, "RANK": "3", "LOCAL_RANK": "1"}, ("99", 6, 2, 16)),
        ({**OPEN_MPI, **TORCHRUN, "RANK": "4"}, ("run-1", 5, 1, 8)),
        ({**TORCHRUN, "RANK": "-1"}, ("run-1", 0, 0, 1)),
        ({**TORCHRUN, "RANK": "³"}, ("run-1", 0, 0, 1)),
        ({**TORCHRUN, "LOCAL_RANK": " "}, ("run-1", 3, 3, 4)),
        ({**TORCHRUN, "TORCHELASTIC_RUN_ID": " "}, (None, 3, 1, 4)),
    ],
)
def test_the_rank_comes_from_the_first_consistent_set_of_variables(environment, expected):
    identity = resolve_distributed_identity(env=environment)
    assert list(identity) == ["job_id", "rank", "local_rank", "world_size"]
    assert tuple(identity.values()) == expected


def test_given_ranks_override_metadata_and_the_environment():
    metadata = {"rank": 0, "local_rank": 0, "job_id": "theirs"}
    found = resolve_distributed_identity(job_id="mine", rank=2, metadata=metadata, env=TORCHRUN)
    assert found == {"rank": 2, "local_rank": 0, "world_size": 4, "job_id": "mine"}


@pytest.mark.parametrize(
    "given",
    [{"rank": 4}, {"rank": -1}, {"world_size": 0}, {"rank": True}, {"local_rank": "1"}],
)
def test_given_ranks_must_be_consistent(given):
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        resolve_distributed_identity(env=TORCHRUN, **given)


def test_a_rank_needs_its_world():
    with pytest.raises(ConfigurationError, match="rank must be < world_size: 1 of 1"):
        resolve_distributed_identity(rank=1)


def test_every_record_has_a_rank():
    assert rules.problems(VALID) == []  # which has none
    assert telemetry_event_to_dict(telemetry_event_from_record(VALID)) == ALONE
    version_1 = telemetry_event_from_record(
        {"timestamp": 1.0, "metadata": {"rank": 1, "world_size": 2}}
    )
    assert (version_1.rank, version_1.local_rank, version_1.world_size) == (1, 1, 2)


def test_a_rank_without_a_world_is_read_but_not_made():
    event = telemetry_event_from_record({**VALID, "rank": 5})
    assert (event.rank, event.local_rank, event.world_size) == (5, 5, 6)
    with pytest.raises(ValueError, match="rank must be < world_size: 5 of 1"):
        TelemetryEventV2(**VALID, rank=5)
    with pytest.raises(ValueError, match="world_size"):
        telemetry_event_from_record({**VALID, "rank": 2**63 - 1})
