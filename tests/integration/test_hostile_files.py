"""Files made to exhaust the commands that read them: each is read within bounds, or rejected by name.

A file of at most 64 MiB costs at most 1 GiB and 10 s of processor time. Where a file belongs, a FIFO, a link
or a directory is rejected at once.
"""

import json
import os
import re
import shutil

import pytest
from conftest import SOURCE, full, rounds
from hostile_files import JSON, MOST_BYTES, PICKLES, TELEMETRY, run_bounded


@pytest.fixture
def bounded(oomrec, build_dir):
    """Runs the command under a limit on its address space and processor time; returns its result."""

    def run(*words):
        command = [build_dir / "oomrec", *words]
        code, said = run_bounded(command, oomrec.environment, f"--as={3 * MOST_BYTES}")
        assert code in (0, 1, 2), (words, code, said[:500])
        return code, said[:500]

    return run


@pytest.fixture
def bundle(oomrec):
    run = oomrec("run", "--limit", "128M", "--", "python3", "-c", "kept = bytearray(1 << 30)")
    return run.only_bundle()


# Those that cost most, where another shape is rejected by the same bound.
SIMILAR = [
    "arrays",
    "numbers",
    "text",
    "digits",
    "metadata",
    "commas",
    "nested_tuple",
    "lists",
    "nones",
    "marks",
    "tuples",
]


def shapes(table):
    return [full(shape) if shape in SIMILAR else shape for shape in table]


@pytest.mark.parametrize("shape", shapes(TELEMETRY))
def test_telemetry(bounded, tmp_path, shape):
    file = tmp_path / "hostile.json"
    file.write_bytes(TELEMETRY[shape]())
    code, said = bounded("analyze", file)
    assert code in (0, 2)
    assert code == 0 or file.name in said


@pytest.mark.parametrize("shape", shapes(PICKLES))
def test_pickles(bounded, tmp_path, shape):
    file = tmp_path / "hostile.pickle"
    file.write_bytes(PICKLES[shape]())
    code, said = bounded("show", file)
    assert code == 2 and "is not a readable PyTorch memory snapshot" in said


def test_a_large_pickle_is_not_read(bounded, tmp_path):
    file = tmp_path / "sparse.pickle"
    file.write_bytes(b"\x80\x02")
    os.truncate(file, 2 << 30)
    code, said = bounded("show", file)
    assert code == 2 and "it is larger than 512 MiB" in said


# Each file of the bundle is as large.
@pytest.mark.parametrize("shape", [shape if shape == "objects" else full(shape) for shape in JSON])
def test_a_bundle_of_such_files(bounded, bundle, shape):
    """The sum of a bundle's files counts, too."""
    text = JSON[shape]()
    for name in bundle.glob("*.json"):
        name.write_bytes(text)
    for command in ("show", "report", "stats")[: rounds(1, 3)]:
        bounded(command, bundle, *(["-o", bundle / "page.html"] if command == "report" else []))
    assert bounded("ls", bundle.parent)[0] in (0, 1)


def replace(file, kind, target):
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.symlink_to(target)


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
@pytest.mark.parametrize("name", ["recording.oomrec", "manifest.json", "metadata.json"])
def test_what_is_not_a_file_does_not_block(bounded, bundle, kind, name):
    replace(bundle / name, kind, "/dev/zero")
    bounded("show", bundle)
    assert bounded("ls", bundle.parent)[0] in (0, 1)
    assert bounded("recover")[0] in (0, 1)


@pytest.mark.parametrize("command", ["show", "analyze", "stats"])
def test_a_fifo_as_argument_does_not_block(bounded, tmp_path, command):
    os.mkfifo(tmp_path / "fifo")
    assert bounded(command, tmp_path / "fifo")[0] != 0


@pytest.mark.parametrize("kind", ["absolute", "above", "link"])
def test_ranks_lie_beneath_their_bundle(oomrec, bundle, tmp_path, kind):
    job = tmp_path / "job"
    assert oomrec("merge", bundle, "-o", job).exit_code == 0
    shutil.copytree(bundle, tmp_path / "other")
    (job / "ranks" / "link").symlink_to(tmp_path / "other")
    assert oomrec("show", "--rank", "0", job).exit_code == 0
    forged = {"absolute": str(tmp_path / "other"), "above": "../other", "link": "ranks/link"}[kind]
    ranks = json.loads((job / "ranks.json").read_text())
    ranks["ranks"][0]["bundle"] = forged
    (job / "ranks.json").write_text(json.dumps(ranks))
    run = oomrec("show", "--rank", "0", job)
    assert run.exit_code == 2 and "names a bundle that is not a directory in it" in run.stderr


def test_foreign_files_pass_one_function():
    """std::ifstream waits for the writer of a FIFO: it reads only what the kernel wrote."""
    kernel = re.compile("tools/(deaths|processes|recording/live|service/watch)/")
    found = {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "tools").rglob("*.cpp")
        if "std::ifstream" in path.read_text()
    }
    assert {path for path in found if not kernel.match(path)} == set()


def test_a_recording_names_no_cgroup_elsewhere(bounded, preload, victim, tmp_path):
    """Its own name for the cgroup leads to a directory of pipes."""
    cgroup = tmp_path / "cgroup"
    cgroup.mkdir()
    (cgroup / "memory.max").write_text("104857600\n")
    (cgroup / "memory.current").write_text("100000000\n")
    process = preload.start(victim("dies"), "never", env={"OOMREC_CGROUP_ROOT": cgroup})
    assert process.stdout.readline() == b"ready\n"
    [recording] = preload.session_dir.rglob("*.session")
    process.kill()
    process.wait()
    assert str(cgroup).encode() in recording.read_bytes()
    for name in ("memory.stat", "memory.events", "memory.events.local", "memory.oom_control"):
        os.mkfifo(cgroup / name)
    (cgroup / "memory.max").unlink()
    os.mkfifo(cgroup / "memory.max")
    assert bounded("show", recording)[0] == 0
