"""The Python package's readers and files made to exhaust them: each is read within bounds, or rejected."""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path

import pytest
from conftest import SOURCE, written
from hostile_files import TELEMETRY, run_bounded
from oomrec._impl import oom_children
from oomrec._impl.foreign_files import open_in, read_in, replaced_in
from oomrec.gpumemprof._bundle import add_events, add_system
from python_programs import package_environment

PACKAGE = SOURCE / "tools" / "python"
LOAD = """
import sys, warnings
warnings.simplefilter("ignore")
from oomrec.gpumemprof.telemetry import load_telemetry_events
try:
    print(len(load_telemetry_events(sys.argv[1])), "events")
except (ValueError, OSError) as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def load(build_dir):
    """load(file) is what the reader says, in one line, within the bounds of a hostile file."""

    def run(file: Path) -> str:
        environment = {**package_environment(build_dir), "PATH": os.environ["PATH"]}
        code, said = run_bounded([sys.executable, "-c", LOAD, file], environment)
        assert code == 0, (code, said[-500:])
        assert len(said) < 1000, said[:500]  # no message quotes a whole value
        return said.strip()

    return run


def test_hostile_telemetry(load, tmp_path):
    """The command reads it: test_hostile_files.py has its shapes. The package passes its reason on."""
    file = tmp_path / "hostile"
    file.write_bytes(TELEMETRY["rows"]())
    assert load(file) == "TelemetryProblem: it has more than 4194304 cells"


@pytest.mark.parametrize("count", [196_000, 197_000])
def test_many_small_events_are_bounded(load, tmp_path, count):
    """An event counts 4 KiB of the 768 MiB that a small file may take."""
    file = tmp_path / "hostile"
    file.write_bytes(b"\n".join(b'{"timestamp":%d}' % number for number in range(count)))
    too_many = f"TelemetryProblem: it has {count} events, too many for its size"
    assert load(file) == (f"{count} events" if count < 196_608 else too_many)


def test_telemetry_of_three_hours_is_read(load, tmp_path):
    """Ordinary events, however many: 66 MB."""
    event = (
        '{"schema_version": 2, "timestamp_ns": 17952561%011d, "event_type": "sample", "collector":'
        ' "gpumemprof.cuda_tracker", "sampling_interval_ms": 100, "pid": 123, "host": "node17",'
        ' "device_id": 0, "allocator_allocated_bytes": 123456789, "allocator_reserved_bytes":'
        ' 223456789, "allocator_active_bytes": null, "allocator_inactive_bytes": null,'
        ' "allocator_change_bytes": 0, "device_used_bytes": 999999999, "device_free_bytes":'
        ' 84899345921, "device_total_bytes": 85899345920, "context": "training step", "job_id":'
        ' null, "rank": 0, "local_rank": 0, "world_size": 1, "metadata": {"backend": "cuda"}}'
    )
    events = ",\n".join(event % number for number in range(110_000))
    (tmp_path / "events.json").write_text(f"[{events}]")
    assert load(tmp_path / "events.json") == "110000 events"


def test_what_is_no_file_is_not_waited_for(load, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path in (tmp_path / "fifo", tmp_path / "zero", Path("/dev/zero"), tmp_path):
        assert load(path) == "TelemetryProblem: it is not a file"
    (tmp_path / "sparse").write_bytes(b"[")
    os.truncate(tmp_path / "sparse", 2 << 30)
    assert load(tmp_path / "sparse") == "TelemetryProblem: it is larger than 1024 MiB"
    (tmp_path / "events").write_text('[{"timestamp": 1, "allocated": 2}]')
    (tmp_path / "link").symlink_to(tmp_path / "events")
    assert load(tmp_path / "link") == "1 events"  # the control: the user named it


@pytest.mark.parametrize("kind", ["link", "zero", "fifo", "directory"])
def test_files_of_a_bundle_lie_in_it(tmp_path, kind):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    outside = written(tmp_path / "outside", '{"ppid": 1}')
    file = bundle / "environment.json"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.symlink_to(outside if kind == "link" else "/dev/zero")
    for read in (
        lambda: read_in(str(bundle), file.name, 100),
        lambda: open_in(str(bundle), file.name),
    ):
        with pytest.raises((OSError, ValueError)):
            read()
    assert not add_system(str(bundle), {"platform": "Linux"})
    assert not oom_children._is_descendant({"bundle": str(bundle)})
    assert outside.read_text() == '{"ppid": 1}'
    file.rename(bundle / "events.json")
    assert not add_events(str(bundle), [{"timestamp": 1.0}])
    assert sorted(path.name for path in bundle.iterdir()) == ["events.json"]


def test_regular_files_of_a_bundle_are_read(tmp_path):
    """The control, through a link to the bundle."""
    (tmp_path / "bundle").mkdir()
    bundle = tmp_path / "latest"
    bundle.symlink_to(tmp_path / "bundle")
    text = json.dumps({"ppid": os.getpid()})
    (bundle / "environment.json").write_text(text)
    assert read_in(str(bundle), "environment.json", len(text)) == text.encode()
    with pytest.raises(ValueError, match="is larger than"):
        read_in(str(bundle), "environment.json", len(text) - 1)
    assert oom_children._is_descendant({"bundle": str(bundle)})
    assert b"Name:" in read_in("/proc/self", "status", 1 << 20)  # its size is 0


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 5_000_000, '{"ppid": "x"}', '{"ppid": 1e999}']
)
def test_a_damaged_bundle_ends_no_program(tmp_path, text):
    """It is read while an exception propagates."""
    (tmp_path / "environment.json").write_text(text)
    assert not oom_children._is_descendant({"bundle": str(tmp_path)})


def test_a_new_file_replaces_the_old_one_or_nothing(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / f".a.json.{os.getpid()}.partial").symlink_to(tmp_path / "victim")
    with replaced_in(str(tmp_path), "a.json") as file:
        file.write("new")
    with pytest.raises(KeyError), replaced_in(str(tmp_path), "a.json") as file:
        file.write("half")
        raise KeyError
    assert (tmp_path / "a.json").read_text() == "new"
    assert (tmp_path / "victim").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "victim"}


def test_no_module_unpickles():
    """Pickle runs code: the package writes PyTorch's snapshots, and only the command reads them."""
    called = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""
            if named.split(".")[0] in ("pickle", "marshal", "shelve", "eval", "exec", "Unpickler"):
                called.add((path.name, named))
    assert called == {("torch.py", "pickle.dump"), ("torch.py", "pickle")}
