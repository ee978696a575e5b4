"""Bundles and the commands' JSON follow docs/bundle-format.md and the schemas."""

import json
import sys
from pathlib import Path

import pytest
from schemas import check

PROGRAM = """
held = []
def make_batch():
    return bytearray(8 << 20)
try:
    while True:
        held.append(make_batch())
except MemoryError:
    print("refused", len(held))
"""


def run_out_of_memory(preload, *args, **env):
    run = preload(sys.executable, "-c", PROGRAM, *args, env={"OOMREC_LIMIT": "128M", **env})
    assert run.stdout.startswith("refused ") and run.exit_code == 0
    return run


@pytest.mark.parametrize(
    "name", ["manifest", "metadata", "events", "environment", "symbols", "processes"]
)
def test_files_follow_their_schema(preload, name):
    run = run_out_of_memory(preload)
    check(name, json.loads((run.only_bundle() / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", ["show", "stats", "tree"])
def test_command_output_follows_its_schema(preload, oomrec, name):
    run = run_out_of_memory(preload)
    check(name, oomrec.json(name, run.only_bundle()))


def test_a_requests_metadata_follows_the_schema(preload, oomrec, victim):
    run = preload(victim("api_in_c"), env={"OOMREC_MAX_DUMPS": 0})
    check("show", oomrec.json("show", run.bundle_at("asked in C")))


def test_a_crash_follows_the_schema(preload, oomrec, victim):
    bundle = preload(victim("crashes"), "null").only_bundle()
    metadata, shown = (
        json.loads((bundle / "metadata.json").read_text()),
        oomrec.json("show", bundle),
    )
    check("metadata", metadata)
    check("show", shown)
    assert len(metadata["crash"]["stack"]) == len(shown["crash"]["stack"]) > 0


def test_the_listing_follows_its_schema(preload, oomrec):
    run_out_of_memory(preload)
    check("ls", oomrec.json("ls"))


def test_every_verdict_follows_the_schemas(oomrec):
    kinds = [row["kind"] for row in oomrec.json("simulate", "--list")["kinds"]]
    assert len(kinds) >= 9
    for kind in kinds:
        bundle = Path(oomrec.json("simulate", kind)["bundle"])
        for name in ("manifest", "metadata"):
            check(name, json.loads((bundle / f"{name}.json").read_text()))
        check("show", oomrec.json("show", bundle))
    check("ls", oomrec.json("ls"))


def test_figures_agree_between_the_files(preload):
    bundle = run_out_of_memory(preload).only_bundle()
    manifest, metadata, events = (
        json.loads((bundle / f"{name}.json").read_text())
        for name in ("manifest", "metadata", "events")
    )
    assert manifest["event_count"] == metadata["captured_event_count"] == len(events)
    assert sorted(manifest["files"]) == sorted(path.name for path in bundle.iterdir())
    assert events[-1]["event_type"] == "error"
    assert [e["timestamp"] for e in events] == sorted(e["timestamp"] for e in events)


def test_a_bundle_contains_no_secrets(preload):
    run = run_out_of_memory(preload, "--token", "hunter2", MY_TOKEN="hunter3", AWS_KEY="hunter4")
    for path in run.only_bundle().iterdir():
        assert b"hunter" not in path.read_bytes(), path.name


def test_without_its_directory_a_bundle_goes_beside_the_session(preload, tmp_path):
    (tmp_path / "file").write_text("")
    run = run_out_of_memory(preload, OOMREC_DUMP_DIR=str(tmp_path / "file" / "dumps"))
    (line,) = [line for line in run.stderr.splitlines() if "instead" in line]
    assert "Not a directory; the bundle went to" in line
