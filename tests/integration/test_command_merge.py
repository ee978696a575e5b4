"""`oomrec merge`: bundles of many ranks become one, which every command reads."""

import json
import os
import shutil
import struct
import sys
import time
from datetime import datetime

import pytest
from conftest import children_cpu_s
from report_page import Page
from schemas import check

MIB = 1 << 20

# Rank N holds (N + 1) × 8 MiB on one line and prints when it began. One rank requests too much.
RANK = """\
import ctypes, os, sys, time
rank = int(os.environ["RANK"])
mark = ctypes.CDLL(None).oomrec_mark
mark(b"step 0")
def hold():
    return [bytearray(b"x") * (1 << 20) for _ in range(8 * (rank + 1))]
held = hold()
time.sleep(0.15)
held.append(bytearray(300_000))
if rank == OUT:
    bytearray(1 << 40)
ctypes.CDLL(None).oomrec_dump(b"healthy")
"""


@pytest.fixture
def ranks(preload, tmp_path):
    """ranks(3) runs three ranks, one after the other. The middle one runs out of memory."""

    def run(count: int, out: int = 1, **environment):
        (tmp_path / "rank.py").write_text(RANK.replace("OUT", str(out)))
        for rank in range(count):
            numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count}
            done = preload(sys.executable, "rank.py", env={**numbers, **environment})
            assert done.exit_code == (rank == out), str(done)
        return done.bundles()

    return run


def rank_of(bundle) -> int:
    return json.loads((bundle / "manifest.json").read_text())["rank"]


def test_every_reading_command_shows_the_ranks_of_a_merged_bundle(oomrec, ranks, tmp_path):
    ranks(3)
    job = tmp_path / "job"

    merged = oomrec("merge", tmp_path / "oom_dumps", "-o", job)

    assert merged.exit_code == 0 and "3 ranks" in merged.stdout, str(merged)
    check("ranks", json.loads((job / "ranks.json").read_text()))
    assert sorted(path.name for path in (job / "ranks").iterdir()) == ["0", "1", "2"]
    result = oomrec.json("show", job)
    check("show", result)
    assert result["job"]["first"]["rank"] == 1
    assert result["verdict"]["code"] == "request_too_large" and result["request"]["size"] > 2**40
    held = [holder for holder in result["holders"] if holder["bytes"] > 7 * MIB]
    assert {holder["stack"][-1]["function"] for holder in held} == {
        f"[rank {rank}]" for rank in range(3)
    }
    sums = [oomrec.json("show", job / "ranks" / str(rank))["spaces"] for rank in range(3)]
    for name, space in result["spaces"].items():
        parts = [each[name] for each in sums]
        for key in ("live_bytes", "live_count", "allocated_bytes", "allocated_count"):
            assert space[key] == sum(part[key] for part in parts), (name, key, space, parts)
    # Each of these reads it like any bundle.
    tree = oomrec.json("tree", "--top-down", job)
    assert {child["function"] for child in tree["root"]["children"]} == {
        "[rank 0]",
        "[rank 1]",
        "[rank 2]",
    }
    folded = oomrec("export", "--format", "folded", job).stdout.splitlines()
    assert {line.split(";")[0] for line in folded} == {"[rank 0]", "[rank 1]", "[rank 2]"}
    top = oomrec.json("top", job)
    check("top", top)
    assert top["held_bytes"] > 48 * MIB
    timeline = oomrec.json("timeline", job)
    assert [mark["text"] for mark in timeline["marks"]] == [
        f"rank {rank}: step 0" for rank in range(3)
    ]
    for command in ("stats", "leaks"):
        check(command, oomrec.json(command, job))
    assert oomrec("fragmentation", job).exit_code == 2
    one = oomrec.json("show", "--rank", 2, job)
    assert one["bundle"] == str(job / "ranks" / "2") and one["context"] == "healthy"
    wrong = oomrec("show", "--rank", 7, job)
    assert wrong.exit_code == 2 and "It contains rank 0, 1, 2." in wrong.stderr
    timeline = oomrec.json("timeline", "--rank", 2, job)
    assert timeline == oomrec.json("timeline", job / "ranks" / "2")
    assert timeline != oomrec.json("timeline", job)
    redacted = oomrec("redact", "--rank", 2, job)
    assert redacted.stdout.strip() == str(tmp_path / "job-rank-2-redacted"), str(redacted)
    assert "ranks.json" not in os.listdir(tmp_path / "job-rank-2-redacted")
    # Merged on the fly it is the same, except for the paths of the ranks' bundles.
    on_the_fly = oomrec.json("show", tmp_path / "oom_dumps")
    for row in result["job"]["ranks"] + on_the_fly["job"]["ranks"]:
        del row["bundle"]
    assert on_the_fly["job"] == result["job"]
    assert on_the_fly["holders"] == result["holders"]


def test_the_page_has_the_first_ranks_outcome(oomrec, ranks, tmp_path):
    bundle = next(bundle for bundle in ranks(2) if rank_of(bundle) == 1)
    metadata = json.loads((bundle / "metadata.json").read_text())
    said = {"type": "MemoryError", "module": "builtins", "message": "step 7", "traceback": "at 12"}
    metadata.update({f"exception_{key}": value for key, value in said.items()})
    metadata["custom_metadata"] = {"epoch": 3}
    (bundle / "metadata.json").write_text(json.dumps(metadata))
    oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job")

    for job in (tmp_path / "job", tmp_path / "oom_dumps"):
        result = oomrec.json("show", job)
        assert (result["exception"], result["custom_metadata"]) == (said, {"epoch": 3})


def test_threads_of_all_ranks_are_exported(oomrec, ranks, tmp_path):
    bundles = ranks(2)
    oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job")
    page = Page(oomrec("report", "-o", "-", bundles[0]).stdout)
    group = next(name for name in page.json["groups"] if name != "")
    words = ("export", "--format", "csv", "--group", group)
    rows = len(oomrec(*words, tmp_path / "job").stdout.splitlines())
    parts = [len(oomrec(*words, bundle).stdout.splitlines()) for bundle in bundles]
    assert min(parts) > 1 and rows - 1 >= sum(parts) - len(parts)


def test_the_rest_is_shown_without_ranks_json(oomrec, ranks, tmp_path):
    ranks(2)
    oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job")
    (tmp_path / "job" / "ranks.json").write_text("{")
    result = oomrec.json("show", tmp_path / "job")
    assert "ranks.json is not JSON: the ranks are unknown" in result["notes"]
    assert result["holders"] and result["verdict"]["code"] == "request_too_large"
    assert oomrec("report", "-o", "page.html", tmp_path / "job").exit_code == 0


@pytest.mark.parametrize(
    "name", ["absolute", "../oom_dumps/{}", "ranks/../../oom_dumps/{}", "ranks/7"]
)
def test_a_rank_is_read_only_from_within_the_bundle(oomrec, ranks, tmp_path, name):
    """ranks.json may be forged: it leads to no other directory, by name or by a link."""
    bundles = ranks(2)
    oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job")
    (tmp_path / "job" / "ranks" / "7").symlink_to(bundles[0])
    file = tmp_path / "job" / "ranks.json"
    forged = json.loads(file.read_text())
    outside = str(bundles[0]) if name == "absolute" else name.format(bundles[0].name)
    forged["ranks"][0].update({"bundle": outside, **({"rank": 7} if name == "ranks/7" else {})})
    file.write_text(json.dumps(forged))
    run = oomrec("show", "--rank", forged["ranks"][0]["rank"], tmp_path / "job", exits=2)
    assert f"ranks.json names a bundle that is not a directory in it: {outside}" in run.stderr
    assert oomrec("show", "--rank", forged["ranks"][1]["rank"], tmp_path / "job").exit_code == 0
    assert oomrec("show", tmp_path / "job").exit_code == 0


def test_targets_of_links_in_a_bundle_are_not_copied(oomrec, ranks, tmp_path):
    bundles = ranks(2)
    (tmp_path / "secret").write_text("of whoever merges")
    (bundles[0] / "notes.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(bundles[0] / "pipe")
    (bundles[0] / "logs").mkdir()
    (bundles[0] / "logs" / "today.txt").write_text("kept")
    (bundles[0] / "logs" / "yesterday").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(bundles[0])  # a link may be given

    oomrec("merge", tmp_path / "link", bundles[1], "-o", tmp_path / "job", exits=0)
    rank = tmp_path / "job" / "ranks" / "0"
    copied = {path.name for path in rank.iterdir()}
    assert copied == {path.name for path in bundles[0].iterdir()} - {"notes.txt", "pipe"}
    assert [path.name for path in (rank / "logs").iterdir()] == ["today.txt"]
    for path in bundles[0].glob("*.json"):
        assert (rank / path.name).read_bytes() == path.read_bytes()


def test_each_rank_is_analyzed(oomrec, ranks, tmp_path):
    """Merged or on the fly: the sum over all ranks would hide each."""
    ranks(3)
    assert oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job").exit_code == 0
    for job in (tmp_path / "job", tmp_path / "oom_dumps"):
        found = oomrec.json("analyze", job)
        check("analyze", found)
        assert [stream["rank"] for stream in found["streams"]] == [0, 1, 2]
        peaks = [stream["peak_bytes"] for stream in found["streams"]]
        assert all(
            8 * MIB * (rank + 1) <= peak < 8 * MIB * (rank + 2) for rank, peak in enumerate(peaks)
        ), peaks
        assert found["oom_events"] == 1
        assert "\n  rank 2 on the host: " in oomrec("analyze", job).stdout

    # Without the ranks' bundles only their sum is left, which belongs to no process.
    shutil.rmtree(tmp_path / "job" / "ranks")
    assert "\n  memory on the host: " in oomrec("analyze", tmp_path / "job").stdout


def test_analysis_uses_the_jobs_clock(oomrec, ranks, tmp_path):
    bundles = ranks(2)
    shift_clock(bundles[0], 3600)
    merge = ["merge", "--align", "mark=step 0", tmp_path / "oom_dumps", "-o", tmp_path / "job"]
    assert oomrec(*merge).exit_code == 0
    found = oomrec.json("analyze", tmp_path / "job")
    began, ended = (found[key] for key in ("began_utc", "ended_utc"))
    seconds = [datetime.fromisoformat(time.rstrip("Z")).timestamp() for time in (began, ended)]
    assert 0 <= seconds[1] - seconds[0] < 60


def test_merged_bundles_can_be_merged_again(oomrec, ranks, tmp_path):
    """For example, those of two hosts."""
    bundles = ranks(3)
    halves = []
    for name, part in (("a", bundles[:2]), ("b", bundles[2:])):
        halves.append(oomrec.json("merge", *part, "-o", tmp_path / name))
    assert [half["missing"] for half in halves] == [[2], [0, 1]]

    whole = oomrec.json("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "whole")

    check("merge", whole)
    assert whole["ranks"] == 3 and whole["missing"] == []


def test_the_damaged_bundle_of_a_rank_is_left_out(oomrec, ranks, tmp_path):
    bundles = ranks(3)
    damaged = next(bundle for bundle in bundles if rank_of(bundle) == 1)
    recording = damaged / "recording.oomrec"
    recording.write_bytes(recording.read_bytes()[:9000])

    merged = oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job")

    assert merged.exit_code == 1 and "left out: rank 1 (" in merged.stderr, str(merged)
    result = oomrec.json("show", tmp_path / "job")
    assert [row["rank"] for row in result["job"]["ranks"]] == [0, 2]
    assert result["job"]["missing"] == [1]
    assert "not a complete recording" in result["job"]["left_out"][0]["why"]
    assert result["job"]["first"] is None and result["verdict"]["code"] == "unknown"


@pytest.mark.parametrize(
    "numbers, said",
    [
        ({"RANK": 7, "LOCAL_RANK": 7, "WORLD_SIZE": 4}, "RANK=7, LOCAL_RANK=7, WORLD_SIZE=4"),
        ({"RANK": "x", "LOCAL_RANK": 1, "WORLD_SIZE": 2}, "RANK=x, LOCAL_RANK=1, WORLD_SIZE=2"),
        ({"RANK": 7, "WORLD_SIZE": 2}, "RANK=7, no LOCAL_RANK, WORLD_SIZE=2"),
    ],
)
def test_an_inconsistent_rank_is_left_out_and_reported(
    oomrec, ranks, preload, tmp_path, numbers, said
):
    ranks(2)
    preload(sys.executable, "-c", "bytearray(1 << 40)", env=numbers)

    merged = oomrec("merge", tmp_path / "oom_dumps", "-o", tmp_path / "job")

    assert merged.exit_code == 1 and f"its rank is inconsistent: {said}" in merged.stderr, str(
        merged
    )
    for job in (tmp_path / "job", tmp_path / "oom_dumps"):
        [left_out] = oomrec.json("show", job)["job"]["left_out"]
        assert left_out["why"] == f"its rank is inconsistent: {said}"
        assert "left out  " in oomrec("show", job).stdout


def test_a_job_is_redacted_rank_by_rank(oomrec, ranks, tmp_path):
    ranks(3, TORCHELASTIC_RUN_ID="secret project")
    mark = ("--align", "mark=step 0")
    oomrec("merge", *mark, tmp_path / "oom_dumps", "-o", tmp_path / "job")
    for number, source in enumerate((tmp_path / "job", tmp_path / "oom_dumps")):
        new = tmp_path / f"given-away-{number}"

        oomrec("redact", source, "-o", new, exits=0)
        words = [b"secret project", b"step 0", b"healthy", str(tmp_path).encode()]
        files = [file for file in new.rglob("*") if file.is_file()]
        assert len(files) > 20
        for file in files:
            assert not [word for word in words if word in file.read_bytes()], file
        listed = json.loads((new / "manifest.json").read_text())["files"]
        assert set(listed) == {entry.name for entry in new.iterdir()}
        result, whole = oomrec.json("show", new), oomrec.json("show", source)
        check("show", result)
        assert result["verdict"]["code"] == whole["verdict"]["code"]
        assert result["job"]["first"]["rank"] == 1
        for key in ("rank", "live_bytes", "peak_bytes", "start_timestamp", "verdict"):
            assert [row[key] for row in result["job"]["ranks"]] == [
                row[key] for row in whole["job"]["ranks"]
            ], key
        clock = whole["job"]["clock"]["aligned_by"]
        assert result["job"]["clock"]["aligned_by"] == clock == ("mark", "wall_clock")[number]
    page = Page(oomrec("report", "--redact", "-o", "-", tmp_path / "job").stdout)
    assert page.json["meta"]["redacted"] and len(page.json["job"]["ranks"]) == 3


def shift_clock(bundle, seconds: float) -> None:
    """Shifts the bundle's times, as if its host's clock had been ahead."""
    recording = bundle / "recording.oomrec"
    image = bytearray(recording.read_bytes())
    start = 136  # Header::start_realtime_ns (common/session/layout.h)
    (realtime_ns,) = struct.unpack_from("<Q", image, start)
    assert abs(realtime_ns / 1e9 - time.time()) < 600
    struct.pack_into("<Q", image, start, realtime_ns + int(seconds * 1e9))
    host = 152
    image[host : host + 8] = b"another\0"
    recording.write_bytes(image)


def test_a_mark_aligns_clocks_that_disagree(oomrec, ranks, tmp_path):
    bundles = ranks(2)
    shift_clock(bundles[0], 3600)

    plain = oomrec.json("show", tmp_path / "oom_dumps")["job"]
    assert plain["clock"] == {"aligned_by": "wall_clock", "mark": None, "hosts": 2}
    assert plain["ranks"][0]["start_timestamp"] - plain["ranks"][1]["start_timestamp"] > 3500
    oomrec("merge", "--align", "mark=step 0", *bundles, "-o", tmp_path / "job", exits=0)
    job = oomrec.json("show", tmp_path / "job")["job"]
    assert job["clock"]["aligned_by"] == "mark" and job["clock"]["mark"] == "step 0"
    assert abs(job["ranks"][0]["start_timestamp"] - job["ranks"][1]["start_timestamp"]) < 60
    marks = oomrec.json("timeline", tmp_path / "job")["marks"]
    assert len(marks) == 2 and len({mark["timestamp"] for mark in marks}) == 1
    assert "aligned at the mark 'step 0' of each rank" in oomrec("show", tmp_path / "job").stdout
    lacking = oomrec("merge", "--align", "mark=other", *bundles, "-o", tmp_path / "no")
    assert lacking.exit_code == 2 and "rank 0, 1 made no mark 'other'" in lacking.stderr
    assert not (tmp_path / "no").exists()


def test_the_last_attempt_of_the_last_job_is_chosen(oomrec, ranks, tmp_path):
    ranks(2, TORCHELASTIC_RUN_ID="first")
    time.sleep(1.1)  # the names of bundles have whole seconds
    bundles = ranks(2, out=0, TORCHELASTIC_RUN_ID="second")

    job = oomrec.json("show", tmp_path / "oom_dumps")["job"]

    assert job["job_id"] == "second" and job["first"]["rank"] == 0
    # A rank that is given explicitly is reported as missing.
    merged = oomrec("merge", *bundles, "-o", tmp_path / "job")
    assert merged.exit_code == 1 and "it belongs to another job: first, 2 ranks" in merged.stderr


def test_bad_input(oomrec, ranks, tmp_path):
    bundles = ranks(1, out=0)
    (tmp_path / "there").mkdir()
    for words, said in (
        ([tmp_path / "oom_dumps"], "no output directory was given"),
        (["-o", tmp_path / "job"], "no bundle was given"),
        ([bundles[0], "-o", tmp_path / "there"], "cannot be made: File exists"),
        (
            [bundles[0], "--align", "step 0", "-o", tmp_path / "job"],
            "invalid value 'step 0' for --align",
        ),
    ):
        run = oomrec("merge", *words)
        assert run.exit_code == 2 and said in run.stderr, str(run)
    nothing = oomrec("merge", tmp_path / "there", "-o", tmp_path / "job")
    assert nothing.exit_code == 2 and "none of these bundles has a rank" in nothing.stderr


def of_rank(source, target, rank: int, size: int, offset: int) -> None:
    """Copies a bundle and makes it another rank's and process'."""
    shutil.copytree(source, target)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest.update(rank=rank, local_rank=rank, world_size=size, pid=rank + 1000)
    (target / "manifest.json").write_text(json.dumps(manifest))
    recording = target / "recording.oomrec"
    image = bytearray(recording.read_bytes())
    struct.pack_into("<i", image, 104, rank + 1000)  # Header::pid
    struct.pack_into("<IIII", image, offset, 1, rank, rank, size)
    recording.write_bytes(image)


MANY_STACKS = """\
import ctypes, time
def grow(depth, bytes):
    return grow(depth - 1, bytes) if depth else ctypes.create_string_buffer(bytes)
source = "".join(f"def f{i}(): return grow({i % 40}, 2000)\\n" for i in range(2000))
exec(compile(source, "many.py", "exec"))
kept = []
until = time.monotonic() + 1
while time.monotonic() < until:
    kept.append([globals()[f"f{i}"]() for i in range(2000)][:50])
bytearray(1 << 40)
"""


def test_64_ranks_of_2000_stacks(oomrec, preload, tmp_path, capsys):
    """Copies of one real recording. The time is printed; the bound allows for a busy machine."""
    (tmp_path / "many.py").write_text(MANY_STACKS)
    environment = {"RANK": 63, "LOCAL_RANK": 0, "WORLD_SIZE": 77, "OOMREC_MODE": "exact"}
    [bundle] = preload(sys.executable, "many.py", env=environment).bundles()
    image = (bundle / "recording.oomrec").read_bytes()
    offset = image.index(struct.pack("<IIII", 1, 63, 0, 77))  # Header::rank
    recorded = oomrec.json("show", bundle)["recording"]
    assert recorded["stacks"] >= 2000
    for rank in range(64):
        of_rank(bundle, tmp_path / "ranks" / str(rank), rank, 64, offset)

    before = children_cpu_s()
    merged = oomrec.json("merge", tmp_path / "ranks", "-o", tmp_path / "job")
    seconds = children_cpu_s() - before

    with capsys.disabled():
        print(f"\n64 ranks of {recorded['stacks']} stacks merged in {seconds:.2f} s of a processor")
    assert (merged["ranks"], merged["missing"]) == (64, [])
    assert seconds < 20
    assert oomrec.json("show", tmp_path / "job")["recording"]["stacks"] >= 64 * 2000
