"""PyTorch's memory snapshots, read by the commands as recordings; and invalid ones."""

import os
import pickle

import pytest
from schemas import check

MIB = 1 << 20
BASE = 0x7F40_0000_0000


def frame(line: int, name: str, file: str = "/srv/train.py") -> dict:
    return {"filename": file, "line": line, "name": name}


MAIN = frame(40, "<module>")
WEIGHTS = [frame(7, "make_weights"), MAIN]
BATCH = [frame(0, "c10::cuda::CUDACachingAllocator::malloc", "??"), frame(12, "load_batch"), MAIN]


def block(address: int, size: int, frames=None, state="active_allocated") -> dict:
    return {
        "address": address,
        "size": size,
        "requested_size": size if frames else 0,
        "state": state,
        "frames": list(frames or []),
    }


def segment(device: int, address: int, blocks: list) -> dict:
    active = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    return {
        "device": device,
        "address": address,
        "total_size": sum(b["size"] for b in blocks),
        "allocated_size": active,
        "active_size": active,
        "requested_size": active,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def event(action: str, second: int, **more) -> dict:
    return {
        "action": action,
        "stream": 0,
        "time_us": 1_800_000_000_000_000 + second * 1_000_000,
        "frames": [],
        **more,
    }


def snapshot(*last: dict) -> dict:
    """Two devices; a batch was freed on the first. `last`: the end of the first one's trace."""
    weights = block(BASE, 60 * MIB, WEIGHTS)
    first = [
        event("segment_alloc", 1, addr=BASE, size=100 * MIB),
        event("alloc", 1, addr=BASE, size=60 * MIB, frames=WEIGHTS),
        event("alloc", 2, addr=BASE + 60 * MIB, size=30 * MIB, frames=BATCH),
        event("free_requested", 3, addr=BASE + 60 * MIB, size=30 * MIB),
        event("free_completed", 3, addr=BASE + 60 * MIB, size=30 * MIB),
        event("alloc", 4, addr=BASE + 60 * MIB, size=20 * MIB, frames=BATCH),
    ]
    return {
        "segments": [
            segment(
                0,
                BASE,
                [
                    weights,
                    block(BASE + 60 * MIB, 20 * MIB, BATCH),
                    block(BASE + 80 * MIB, 20 * MIB, state="inactive"),
                ],
            ),
            segment(1, BASE + 1000 * MIB, [block(BASE + 1000 * MIB, 8 * MIB, WEIGHTS)]),
        ],
        "device_traces": [first + list(last), []],
        "allocator_settings": {"max_split_size": -1, "roundup_power2_divisions": {}},
        "external_annotations": [],
    }


REFUSED = event("oom", 5, size=500 * MIB, device_free=3 * MIB, frames=BATCH)


@pytest.fixture
def saved(tmp_path):
    def save(value, protocol=None, name="snapshot.pickle"):
        path = tmp_path / name
        path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol))
        return path

    return save


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_show_names_the_holders(oomrec, saved, protocol):
    shown = oomrec.json("show", saved(snapshot(), protocol))
    check("show", shown)
    assert shown["verdict"]["code"] == "requested" and shown["request"] is None
    cuda, torch = shown["spaces"]["cuda"], shown["spaces"]["torch"]
    assert (cuda["live_bytes"], torch["live_bytes"]) == (108 * MIB, 88 * MIB)
    assert torch["allocated_bytes"] == 118 * MIB and torch["peak_bytes"] == 98 * MIB

    largest = next(h for h in shown["holders"] if h["space"] == "cuda")
    assert largest["bytes"] == 68 * MIB
    assert [(f["function"], f["line"], f["kind"]) for f in largest["stack"]] == [
        ("make_weights", 7, "python"),
        ("<module>", 40, "python"),
    ]
    held = [h["bytes"] for h in shown["holders"] if h["space"] == "cuda"]
    assert sum(held) == 108 * MIB and held.count(20 * MIB) == 2
    native = [f for h in shown["holders"] for f in h["stack"] if f["kind"] == "native"]
    assert "c10::cuda::CUDACachingAllocator::malloc" in {f["function"] for f in native}
    first, second = shown["devices"]
    assert (first["device"], second["device"]) == ("cuda:0", "cuda:1")
    assert (first["held_bytes"], second["held_bytes"]) == (100 * MIB, 8 * MIB)


@pytest.mark.parametrize(
    "end, code",
    [
        ([REFUSED], "device_out_of_memory"),
        ([REFUSED, event("snapshot", 5, addr=0, size=0)], "device_out_of_memory"),
        ([{**REFUSED, "size": 15 * MIB}], "device_out_of_memory"),
        ([REFUSED, event("alloc", 6, addr=BASE + 85 * MIB, size=MIB, frames=BATCH)], "requested"),
    ],
)
def test_a_trace_that_ends_with_a_failure_gives_the_verdict(oomrec, saved, end, code):
    shown = oomrec.json("show", saved(snapshot(*end)))
    assert shown["verdict"]["code"] == code
    if code == "requested":
        return
    assert shown["request"]["size"] == end[0]["size"]
    assert shown["request"]["device"] == "cuda:0"
    assert "load_batch" in {f["function"] for f in shown["request"]["stack"]}


def test_fragmented_free_memory_is_the_verdict(oomrec, saved):
    pieces = snapshot({**REFUSED, "size": 30 * MIB})
    blocks = pieces["segments"][0]["blocks"]
    blocks[1]["state"] = "inactive"  # 20 MiB, and 20 MiB more
    assert oomrec.json("show", saved(pieces))["verdict"]["code"] == "device_fragmentation"


def test_every_reading_command_accepts_a_snapshot(oomrec, saved):
    path = saved(snapshot(REFUSED))
    check("stats", oomrec.json("stats", path))
    tree = oomrec.json("tree", "--min-percent", "0", path)
    assert tree["root"]["bytes"] == 108 * MIB
    page = path.with_name("page.html")
    for words in (["report", "-o", page, path], ["diff", path, path], ["fragmentation", path]):
        oomrec(*words, exits=0)
    assert page.stat().st_size > 10_000
    text = oomrec("show", path).stdout
    assert "a memory snapshot of PyTorch" in text and "[reserved by PyTorch" in text
    events = oomrec("export", "--json", "--what", "events", path).json()["events"]
    assert [(e["event_type"], e["space"], e["bytes"] // MIB) for e in events] == [
        ("allocation", "cuda", 100),
        ("allocation", "torch", 60),
        ("allocation", "torch", 30),
        ("deallocation", "torch", 30),
        ("allocation", "torch", 20),
        ("error", "cuda", 500),
    ]
    assert events[0]["time_ns"] == 1_800_000_001 * 10**9
    oomrec("export", "--format", "memory_viz", "-o", path.with_name("again"), path, exits=0)
    second = oomrec.json("show", path.with_name("again"))
    assert second["spaces"]["torch"]["live_bytes"] == 88 * MIB
    assert second["spaces"]["cuda"]["live_bytes"] == 108 * MIB


def test_older_snapshots_have_less(oomrec, saved):
    """They lack addresses of blocks, times and frames."""
    old = snapshot()
    for one in old["segments"]:
        for key in ("is_expandable", "segment_pool_id", "frames"):
            del one[key]
        for each in one["blocks"]:
            del each["address"], each["requested_size"]
            del each["frames"]
    for one in old["device_traces"][0]:
        del one["time_us"]
    shown = oomrec.json("show", saved(old))
    assert shown["spaces"]["torch"]["live_bytes"] == 88 * MIB


class Dangerous:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def nested(depth: int) -> bytes:
    return b"\x80\x02" + b"](" * depth + b"e" * depth + b"."


HOSTILE = {
    "empty": b"\x80\x04.",
    "no list": pickle.dumps({"segments": 3, "device_traces": "x"}),
    "another value": pickle.dumps([1, 2, 3]),
    "deep": nested(1_000_000),
    "no end": b"\x80\x04]",
    "no mark": b"\x80\x02]e.",
    "no memo": b"\x80\x02h\x05.",
    "memo of nothing": b"\x80\x02q\x00.",
    "memo far away": b"\x80\x02]r\xff\xff\xff\xff.",
    "a text longer than the file": b"\x80\x02X\xff\xff\xff\xff.",
    "a text longer than memory": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "a list of a number": b"\x80\x02K\x01(K\x02e.",
    "half an entry": b"\x80\x02}(K\x01u.",
    "protocol 9": b"\x80\x09N.",
    "many devices": pickle.dumps(
        {"segments": [{"device": 10**9, "blocks": []}], "device_traces": []}
    ),
    "the same trace again and again": pickle.dumps(
        {"segments": [], "device_traces": [[{"action": "x"}] * 9000] * 9000}
    ),
    "the same blocks again and again": pickle.dumps(
        {"segments": [segment(0, 0, [block(0, 1)] * 9000)] * 9000, "device_traces": []}
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_invalid_snapshot_is_rejected_with_a_reason(oomrec, saved, what):
    run = oomrec("show", saved(HOSTILE[what]))
    assert run.exit_code == 2 and run.stdout == "", str(run)
    happened, advice = run.stderr.splitlines()
    assert "is not a readable PyTorch memory snapshot: " in happened
    assert "torch.cuda.memory._dump_snapshot" in advice


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_no_code_in_a_snapshot_is_run(oomrec, saved, tmp_path, protocol):
    value = {**snapshot(), "more": Dangerous(tmp_path / "made")}
    run = oomrec("show", saved(value, protocol))
    assert run.exit_code == 2 and "builds an object" in run.stderr, str(run)
    assert not (tmp_path / "made").exists()


def test_names_are_not_trusted(oomrec, saved):
    hostile = snapshot()
    name = "\x1b[31m<script>" + "x" * MIB
    hostile["segments"][0]["blocks"][0]["frames"] = [
        {"filename": "/a\x07;b.py", "line": 1 << 70, "name": name}
    ]
    path = saved(hostile)
    text = oomrec("show", path)
    assert text.exit_code == 0 and "\x1b" not in text.stdout and "\x07" not in text.stdout
    assert max(map(len, text.stdout.splitlines())) < 200
    assert oomrec.json("show", path)["spaces"]["cuda"]["live_bytes"] == 108 * MIB
    for format in ("folded", "csv"):
        lines = oomrec("export", "--format", format, path).stdout
        assert "\x1b" not in lines and "\x07" not in lines and len(lines) < 10_000


def test_cyclic_references_terminate(oomrec, saved):
    circular = snapshot()
    circular["segments"].append(circular["segments"])
    circular["segments"][0]["blocks"][0]["frames"].append(circular)
    assert oomrec.json("show", saved(circular))["spaces"]["cuda"]["live_bytes"] == 108 * MIB


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_mutations_under_the_address_sanitizer(fuzz, saved, protocol):
    """Flipped bits, cuts and inserted opcodes: the file is read or rejected, without an error of memory."""
    read, accepted = fuzz("snapshot", 4_000, saved(snapshot(REFUSED), protocol))
    assert read == 4_001 and read / 20 < accepted < read * 19 / 20
