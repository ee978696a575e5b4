"""oomrec.torch: PyTorch's snapshot in the bundle, labels of workers, compiled functions."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from conftest import SOURCE, metadata, written
from schemas import check

PACKAGE = {"PYTHONPATH": SOURCE / "tools" / "python"}


@pytest.fixture
def attached(preload, victim):
    """attached(HOW) runs the stand-in for torch, and returns its output and its run."""

    def run(how: str) -> tuple:
        words = ["python3", victim("python/attaches_torch.py"), how]
        done = preload(*words, env={**PACKAGE, "OOMREC_LIMIT": "1G"}, exits=0)
        return json.loads(done.stdout), done

    return run


def assert_has_snapshot(oomrec, bundle: Path) -> None:
    file = bundle / "torch_snapshot.pickle"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(json.loads((bundle / "manifest.json").read_text())["files"]) == sorted(
        path.name for path in bundle.iterdir()
    )
    shown = oomrec.json("show", bundle)
    check("show", shown)
    assert shown["torch_snapshot"] == str(file)
    text = oomrec("show", bundle).stdout
    assert "PyTorch's own snapshot" in text and "load_batch" in text and "96.0 MiB" in text
    inner = oomrec.json("show", file)
    assert inner["devices"][0]["holders"][0]["bytes"] == 96 << 20
    assert oomrec("report", file, "-o", bundle.parent / "page.html").exit_code == 0


def test_a_snapshot_of_a_failure_only_torch_saw(oomrec, attached):
    """The failure requests a bundle, and the snapshot is written before the exception is raised."""
    said, run = attached("unseen")
    assert said["attachment"] == "<oomrec.torch.Attachment: history, observer, workers>"
    assert said["calls"][0] == ["history", "all", 1234] and said["calls"][-1] == ["snapshot"]
    bundle = run.only_bundle()
    assert said["bundle"] == str(bundle)
    assert metadata(bundle)["context"] == (
        "torch: 1073741824 bytes refused on device 0, 3145728 bytes free"
    )
    assert_has_snapshot(oomrec, bundle)


def test_a_snapshot_in_the_bundle_of_its_failure(oomrec, attached):
    _, run = attached("seen")
    bundle = run.only_bundle()
    assert metadata(bundle)["reason"] == "soft_limit"
    assert_has_snapshot(oomrec, bundle)


def test_a_snapshot_in_the_bundle_of_a_later_failure(attached):
    _, run = attached("seen late")
    bundles = run.bundles()
    assert [(bundle / "torch_snapshot.pickle").exists() for bundle in bundles] == [False, True]
    assert metadata(bundles[1])["request"]["size"] == (2 << 30) + 1


def test_one_snapshot_of_repeated_failures(attached):
    said, run = attached("twice")
    assert said["calls"].count(["snapshot"]) == 1
    assert len(run.bundles()) == 1


def test_a_detached_hook_writes_no_snapshot(attached):
    said, run = attached("off")
    assert said["calls"] == [["history", "all", 1234]] * 2 + [["history", None, MOST]] * 2
    assert run.bundles() == [] and "missing" not in said["attachment"]


def test_an_attachment_that_the_program_dropped_stays_active(attached):
    said, run = attached("half off")
    assert said["calls"][-1] == ["snapshot"] and len(run.bundles()) == 1


MOST = (1 << 63) - 1  # sys.maxsize, the default of the stand-in


def test_a_missing_snapshot_is_not_an_error(attached):
    _, run = attached("broken")
    assert "oomrec: no torch_snapshot.pickle: RuntimeError: no snapshot today\n" in run.stderr
    assert [path.name for path in run.only_bundle().glob("torch_snapshot*")] == []


WORKERS = """
import sys, torch, oomrec, oomrec.torch
from torch.utils.data import DataLoader, get_worker_info

class Samples(list):
    def __getitem__(self, index):
        self.block = bytearray(b"x" * 3_000_011)
        oomrec.dump(f"in worker {get_worker_info().id}")
        return index

if __name__ == "__main__":
    attachment = oomrec.torch.attach()
    print(attachment)
    print(attachment.history, attachment.observer, attachment.workers)
    attachment.detach()
    try:
        oomrec.torch.attach(history=-1)
    except ValueError as error:
        print(error)
    oomrec.torch.attach(history=0)
    loader = DataLoader(Samples([0, 1]), num_workers=2, multiprocessing_context=sys.argv[1])
    assert sorted(each.item() for each in loader) == [0, 1]
"""


@pytest.mark.needs_torch
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.full)])
def test_workers_of_a_torch_without_devices_are_labelled(oomrec, preload, tmp_path, method):
    script = written(tmp_path / "loads.py", WORKERS)
    run = preload("python3", script, method, env=PACKAGE, exits=0)
    reason = "memory history and observer: this torch was built without CUDA and HIP"
    assert run.stdout.splitlines() == [
        f"<oomrec.torch.Attachment: workers; missing: {reason}>",
        "False False True",
        "history is a number of events, at least 0, not -1",
    ]
    for number in range(2):
        shown = oomrec.json("show", run.bundle_at(f"in worker {number}"))
        block = next(row for row in shown["holders"] if 3_000_000 < row["bytes"] < 3_009_000)
        labels = {frame["function"] for frame in block["stack"]}
        assert f"[DataLoader worker {number}]" in labels


COMPILED = """
import json
import oomrec
import torch
made_before = [oomrec.context("made before")]

@oomrec.context("decorated")
def decorated(x):
    return x + 1

def labelled(x):
    with oomrec.context("epoch"):
        oomrec.mark("half")
        y = x * 2
    return decorated(y).sin()

def bare(x):
    return (x * 2 + 1).sin()

found = {}
for function in (labelled, bare):
    torch._dynamo.reset()
    explained = torch._dynamo.explain(function)(torch.ones(3))
    found[function.__name__] = [explained.graph_break_count, explained.graph_count]
torch._dynamo.reset()
whole = torch.compile(labelled, fullgraph=True, backend="eager")
assert torch.equal(whole(torch.ones(3)), bare(torch.ones(3)))
with oomrec.context("outside"):
    whole(torch.ones(3))
    held = torch.ones(1 << 20)
print(json.dumps(found))
oomrec.dump("end")
"""


@pytest.mark.needs_torch
def test_labels_add_no_graph_breaks(oomrec, preload):
    run = preload("python3", "-c", COMPILED, env=PACKAGE)
    found = json.loads(run.stdout)
    assert found["labelled"] == found["bare"] == [0, 1]
    shown = oomrec.json("show", run.bundle_at("end"))
    # With some of Python's small objects on the same line.
    blocks = [row for row in shown["holders"] if 0 <= row["bytes"] - (4 << 20) < 1 << 19]
    assert any("[outside]" in {frame["function"] for frame in row["stack"]} for row in blocks)
