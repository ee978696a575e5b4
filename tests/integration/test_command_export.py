"""`oomrec export`: each format is read back, and its sums are compared with the commands' figures."""

import csv
import gzip
import io
import json
import os
import pickle
import pty
import runpy
import subprocess
import sys

import protobuf
import pytest
import telemetry
from conftest import Runner
from python_programs import trains
from schemas import check


@pytest.fixture(scope="module", params=["exact", "sampled"])
def recorded(request, build_dir, tmp_path_factory):
    """A program that reached its limit: a runner of the command, and the bundle."""
    directory = tmp_path_factory.mktemp(request.param)
    (directory / "train.py").write_text(trains(3, 200))
    runner = Runner(directory, [str(build_dir / "oomrec")], {})
    words = ["--mode", request.param, "--limit", "48M"]
    if request.param == "sampled":
        # Of every 4 KiB, one small allocation: the strings of train.py are certain to be among them.
        words += ["--sample-interval", "4K"]
    bundle = runner("run", *words, "--", "python3", "-S", "train.py").only_bundle()
    yield runner, bundle
    runner.end_all()


@pytest.fixture
def export(recorded):
    """export("pprof", …) is the command's output, as bytes."""
    runner, bundle = recorded

    def run(format, *words):
        path = runner.directory / "exported"
        done = runner("export", "--format", format, *words, "-o", path, bundle)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", ""), str(done)
        return path.read_bytes()

    return run


@pytest.fixture
def shown(recorded):
    """The output of `show` and `stats` for the bundle, with all holders."""
    runner, bundle = recorded
    return runner.json("show", "--top", "1000000", bundle), runner.json("stats", bundle)


def held(shown, key="bytes"):
    """The sum over holders in the spaces that may be added up."""
    return sum(holder[key] for holder in shown["holders"] if holder["space"] != "torch")


def rows_of(folded: bytes) -> dict:
    rows = {}
    for line in folded.decode().splitlines():
        stack, _, weight = line.rpartition(" ")
        rows[stack] = rows.get(stack, 0) + int(weight)
    return rows


def test_folded_agrees_with_show(export, shown):
    rows = rows_of(export("folded"))
    assert sum(rows.values()) == held(shown[0])
    largest = max(rows, key=rows.get)
    assert largest.split(";")[-1].startswith("make_batch (train.py:")
    assert ";train (train.py:" in largest
    document = json.loads(export("json"))
    assert len(largest.split(";")) == len(document["stacks"][document["holders"][0]["stack"]])

    counts = rows_of(export("folded", "--count"))
    assert sum(counts.values()) == held(shown[0], "count")
    heap = rows_of(export("folded", "--space", "heap"))
    assert sum(heap.values()) == sum(
        h["bytes"] for h in shown[0]["holders"] if h["space"] == "heap"
    )
    assert sum(rows_of(export("folded", "--at", "ever")).values()) > sum(rows.values())


def test_speedscope_follows_its_schema(export, shown):
    document = json.loads(export("speedscope"))
    check("speedscope", document)
    live, peak, allocated = document["profiles"]
    assert sum(live["weights"]) == live["endValue"] == held(shown[0])
    assert peak["endValue"] <= allocated["endValue"]
    frames = document["shared"]["frames"]
    for profile in document["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(frame < len(frames) for stack in profile["samples"] for frame in stack)
    largest = live["samples"][live["weights"].index(max(live["weights"]))]
    innermost = frames[largest[-1]]
    assert innermost["file"].endswith("train.py") and innermost["line"] == 4
    # In exact mode, too: Python's small objects are always sampled.
    assert ("(estimated)" in allocated["name"]) == any(
        holder["estimated"] for holder in shown[0]["holders"]
    )


def pprof_profile(data: bytes) -> dict:
    """A profile with string numbers replaced by the strings."""
    fields = protobuf.message(gzip.decompress(data))
    texts = [text.decode() for text in fields[6]]
    locations, functions, mappings = {}, {}, {}
    for function in map(protobuf.message, fields[5]):
        functions[function[1][0]] = (texts[function[2][0]], texts[function.get(4, [0])[0]])
    for mapping in map(protobuf.message, fields.get(3, [])):
        mappings[mapping[1][0]] = (texts[mapping[5][0]], texts[mapping.get(6, [0])[0]])
    for location in map(protobuf.message, fields[4]):
        line = protobuf.message(location[4][0])
        mapping = location.get(2, [0])[0]
        assert mapping == 0 or mapping in mappings
        locations[location[1][0]] = (*functions[line[1][0]], line.get(2, [0])[0])
    samples = []
    for sample in map(protobuf.message, fields[2]):
        stack = [locations[number] for number in protobuf.packed(sample[1][0])]
        samples.append((stack, protobuf.packed(sample[2][0])))
    types = [[texts[n[0]] for n in protobuf.message(t).values()] for t in fields[1]]
    return {"types": types, "samples": samples, "mappings": list(mappings.values())}


def test_pprof_is_a_valid_profile(export, shown):
    profile = pprof_profile(export("pprof"))
    assert profile["types"] == [
        ["inuse_space", "bytes"],
        ["inuse_objects", "count"],
        ["alloc_space", "bytes"],
        ["alloc_objects", "count"],
    ]
    sums = [sum(values) for values in zip(*(values for _, values in profile["samples"]))]
    assert sums[0] == held(shown[0]) and sums[1] == held(shown[0], "count")
    assert sums[2] >= sums[0] and sums[3] >= sums[1]
    stack, values = max(profile["samples"], key=lambda sample: sample[1][0])
    assert stack[0][0] == "make_batch" and stack[0][1].endswith("train.py") and stack[0][2] == 4
    build_ids = {
        (frame["module"], frame["build_id"])
        for holder in shown[0]["holders"]
        for frame in holder["stack"]
        if frame["build_id"]
    }
    assert build_ids & set(profile["mappings"])
    assert "python" in profile["mappings"][0][0]  # readers call it the program


@pytest.mark.needs_program("go")
def test_pprof_is_read_by_pprof(recorded, shown):
    runner, bundle = recorded
    path = runner.directory / "profile.pb.gz"
    assert runner("export", "--format", "pprof", "-o", path, bundle).exit_code == 0
    top = subprocess.run(
        ["go", "tool", "pprof", "-top", "-unit=B", path], capture_output=True, text=True
    )
    assert top.returncode == 0, top.stderr
    assert f"{held(shown[0])}B total" in top.stdout
    assert "make_batch" in top.stdout and "Type: inuse_space" in top.stdout


def test_json_and_csv_hold_the_same_holders(export, shown):
    document = json.loads(export("json"))
    check("export_holders", document)
    assert document["mode"] == shown[1]["mode"]
    assert sum(row["live"]["bytes"] for row in document["holders"]) == held(shown[0])
    largest = document["holders"][0]
    stack = [document["frames"][n] for n in document["stacks"][largest["stack"]]]
    assert stack[0]["function"] == "make_batch" and stack[0]["line"] == 4

    rows = list(csv.DictReader(io.StringIO(export("csv").decode(), newline="")))
    assert len(rows) == len(document["holders"])
    assert [int(row["live.bytes"]) for row in rows] == [
        row["live"]["bytes"] for row in document["holders"]
    ]
    assert rows[0]["stack"].split(";")[-1] == "make_batch (train.py:4)"


def test_json_and_csv_hold_the_same_timeline(export, shown):
    document = json.loads(export("json", "--what", "timeline"))
    check("export_timeline", document)
    moments = document["moments"]
    assert [m["time_ns"] for m in moments] == sorted(m["time_ns"] for m in moments)
    last = {space: row["live_bytes"] for space, row in shown[0]["spaces"].items()}
    assert moments[-1]["live_bytes"] == last
    assert [failure["bytes"] for failure in document["refusals"]][-1] == shown[0]["request"]["size"]

    rows = list(csv.DictReader(io.StringIO(export("csv", "--what", "timeline").decode())))
    assert [int(row["live_bytes.heap"]) for row in rows] == [
        moment["live_bytes"]["heap"] for moment in moments
    ]


def test_json_and_csv_hold_the_same_events(export, recorded):
    document = json.loads(export("json", "--what", "events"))
    check("export_events", document)
    events = document["events"]
    assert [e["time_ns"] for e in events] == sorted(e["time_ns"] for e in events)
    in_bundle = json.loads((recorded[1] / "events.json").read_text())
    large = [e["bytes"] for e in events if e["kind"] == "allocate" and e["bytes"] > 3 << 20]
    assert large and large == [
        e["size"] for e in in_bundle if e["kind"] == "allocate" and e["size"] > 3 << 20
    ]
    assert any(e["event_type"] == "error" and e["bytes"] > 3 << 20 for e in events)

    rows = list(csv.DictReader(io.StringIO(export("csv", "--what", "events").decode(), newline="")))
    assert [int(row["bytes"]) for row in rows] == [e["bytes"] for e in events]


def test_telemetry_follows_the_rules(export, shown):
    for what in ("timeline", "events"):
        lines = export("telemetry", "--what", what).decode().splitlines()
        events = [json.loads(line) for line in lines]
        assert events and [found for event in events for found in telemetry.problems(event)] == []
        assert {event["device_id"] for event in events} == {-1}
        assert any(event["event_type"] == "error" and event["context"] for event in events)
        if what == "timeline":
            samples = [event for event in events if event["event_type"] == "sample"]
            spaces = shown[0]["spaces"]
            live = sum(spaces[space]["live_bytes"] for space in ("heap", "map"))
            assert samples[-1]["allocator_allocated_bytes"] == live


def test_the_telemetry_rules_are_strict(export):
    """The checker in tests/telemetry.py finds each broken rule."""
    event = json.loads(export("telemetry").splitlines()[0])
    wrong = [
        {"extra": 1},
        {"schema_version": 1},
        {"pid": True},
        {"device_id": -2},
        {"device_total_bytes": 0, "device_used_bytes": 1},
    ]
    assert all(telemetry.problems({**event, **change}) for change in wrong)
    assert telemetry.problems({key: event[key] for key in list(event)[1:]})


@pytest.mark.needs_module("perfetto")
def test_perfetto_reads_its_trace(export, shown):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString(export("perfetto"))
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet}
    events = [p for p in trace.packet if p.HasField("track_event")]
    last = {}
    for packet in events:
        if packet.track_event.type == TrackEvent.TYPE_COUNTER:
            name = tracks[packet.track_event.track_uuid].name
            last[name] = packet.track_event.counter_value
    assert last["heap live"] == shown[0]["spaces"]["heap"]["live_bytes"]
    instants = [p.track_event for p in events if p.track_event.type == TrackEvent.TYPE_INSTANT]
    refused = {a.name: a for a in instants[-1].debug_annotations}
    assert refused["bytes"].uint_value == shown[0]["request"]["size"]

    (heap,) = [p for p in trace.packet if p.HasField("profile_packet")]
    samples = [s for dump in heap.profile_packet.process_dumps for s in dump.samples]
    assert sum(s.self_allocated - s.self_freed for s in samples) == held(shown[0])
    names = {text.iid: text.str.decode() for text in heap.interned_data.function_names}
    frames = {frame.iid: frame for frame in heap.interned_data.frames}
    stacks = {stack.iid: stack.frame_ids for stack in heap.interned_data.callstacks}
    largest = max(samples, key=lambda s: s.self_allocated - s.self_freed)
    innermost = frames[stacks[largest.callstack_id][-1]]
    assert names[innermost.function_name_id] == "make_batch (train.py:4)"
    assert innermost.line_number == 4


def test_perfetto_is_a_valid_trace(export, shown):
    """The same with our own decoder, for machines without Perfetto's."""
    packets = [protobuf.message(p) for p in protobuf.message(export("perfetto"))[1]]
    (heap,) = [protobuf.message(p[37][0]) for p in packets if 37 in p]
    samples = [
        protobuf.message(sample)
        for dump in map(protobuf.message, heap[5])
        for sample in dump.get(2, [])
    ]
    kept = sum(s.get(2, [0])[0] - s.get(3, [0])[0] for s in samples)
    assert kept == held(shown[0])
    timeline = protobuf.message(export("perfetto", "--what", "timeline"))[1]
    assert all(37 not in protobuf.message(packet) for packet in timeline)


@pytest.fixture(scope="module")
def memory_viz():
    """PyTorch's own reader of snapshots. The file needs nothing else of PyTorch."""
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])",
        ],
        capture_output=True,
        text=True,
    )
    return runpy.run_path(found.stdout.strip() + "/cuda/_memory_viz.py")


@pytest.mark.needs_torch
def test_memory_viz_is_read_by_pytorch(export, shown, memory_viz):
    snapshot = pickle.loads(export("memory_viz"))
    printed = memory_viz["segsum"](snapshot)  # which checks that blocks fill their segments
    assert f"segments: {len(snapshot['segments'])}\n" in printed
    assert "\nTOTAL MEM: " in memory_viz["trace"](snapshot)
    assert "make_batch" in memory_viz["memory"](snapshot, lambda lines: lines)


def test_memory_viz_has_the_live_blocks(export, shown):
    snapshot = pickle.loads(export("memory_viz"))
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    active = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    if shown[1]["mode"] == "exact":
        assert active == held(shown[0])
    assert sum(s["total_size"] for s in snapshot["segments"]) == sum(b["size"] for b in blocks)
    (trace,) = snapshot["device_traces"]
    refused = [e for e in trace if e["action"] == "oom"]
    assert refused[-1]["size"] == shown[0]["request"]["size"]
    assert refused[-1]["frames"][0]["name"] == "make_batch"
    innermost = max(blocks, key=lambda block: block["size"])["frames"][0]
    assert (innermost["name"], innermost["line"]) == ("make_batch", 4)
    assert innermost["filename"].endswith("train.py")


def test_to_stdout_and_to_a_file_are_the_same(recorded, export):
    runner, bundle = recorded
    assert runner("export", "--format", "folded", bundle).stdout.encode() == export("folded")
    assert runner("export", "--json", bundle).stdout.encode() == export("json")


@pytest.mark.parametrize(
    "words, happened, advice",
    [
        ("", "no format was given", "Give --format folded|"),
        (
            "--format folded --what events",
            "the format folded cannot hold events",
            "It holds holders;",
        ),
        (
            "--format telemetry --what holders",
            "the format telemetry cannot hold holders",
            "It holds",
        ),
        ("--format pprof --count", "--count does not apply to the format pprof", "Leave it out"),
        ("--format csv --json", "--json and --format csv exclude each other", "Leave one"),
        ("--format gif", "invalid value 'gif' for --format", "Use one of folded, speedscope,"),
    ],
)
def test_a_wrong_combination_is_reported(oomrec, words, happened, advice):
    run = oomrec("export", *words.split(), "nowhere")
    assert run.exit_code == 2 and run.stdout == ""
    first, second = run.stderr.splitlines()
    assert first == f"oomrec export: {happened}" and second.startswith("  " + advice)


def test_binary_output_to_a_terminal_is_rejected(recorded):
    runner, bundle = recorded
    ours, theirs = pty.openpty()
    run = runner("export", "--format", "pprof", bundle, stdout=theirs)
    os.close(theirs)
    os.close(ours)
    assert run.exit_code == 2
    assert "this format is binary: not for a terminal\n  Give a file (-o FILE)" in run.stderr


def test_an_unwritable_file_is_reported(recorded):
    runner, bundle = recorded
    run = runner("export", "--format", "json", "-o", "nowhere/file", bundle, exits=2)
    assert "nowhere/file could not be written: No such file or directory" in run.stderr
    run = runner("export", "--format", "json", "-o", "/dev/full", bundle)
    assert run.exit_code == 2 and "No space left on device" in run.stderr


def test_gpu_memory_round_trips_through_pytorchs_format(
    preload, oomrec, build_dir, victim, tmp_path
):
    """A stand-in for PyTorch on the fake driver: segments and blocks match its own figures."""
    folders = [build_dir / "tests" / name for name in ("fake_gpu", "fake_torch")]
    environment = {
        "FAKE_GPU_BYTES": "256M",
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)),
        "OOMREC_MODE": "exact",
    }
    program = [sys.executable, victim("python/torch_on_gpu.py"), 2, "totals"]
    run = preload(*program, env=environment)
    result, bundle = run.json(), run.bundle_at("totals")
    path = tmp_path / "memory.pickle"
    assert oomrec("export", "--format", "memory_viz", "-o", path, bundle).exit_code == 0

    snapshot = pickle.loads(path.read_bytes())
    segments = [s for s in snapshot["segments"] if s["device"] == 0]
    assert sum(s["total_size"] for s in segments) == result["reserved"]
    assert sum(s["allocated_size"] for s in segments) == result["allocated"]
    assert all(sum(b["size"] for b in s["blocks"]) == s["total_size"] for s in segments)
    gpu, host = snapshot["device_traces"]
    actions = [e["action"] for e in gpu]
    assert actions.count("alloc") - actions.count("free_completed") == 27
    assert actions.count("segment_alloc") - actions.count("segment_free") == len(segments)
    assert host and all(e["action"] != "segment_alloc" for e in host)

    device = oomrec.json("show", path)["devices"][0]
    assert device["held_bytes"] == result["reserved"]
    assert device["torch"]["allocated_bytes"] == result["allocated"]

    lines = oomrec("export", "--format", "telemetry", bundle).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [found for event in events for found in telemetry.problems(event)] == []
    on_gpu = [e for e in events if e["device_id"] == 0]
    assert on_gpu[-1]["allocator_allocated_bytes"] == result["allocated"]
    assert on_gpu[-1]["allocator_reserved_bytes"] == result["reserved"]
