"""The flight recorder of trackers: real failures, full disks, retention, threads, forks.

Programs run under the recorder, or load its library themselves where a test says so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import metadata, written
from oomrec.gpumemprof._bundle import add_events, add_system
from python_programs import package_environment, programs
from schemas import check
from watching import eventually

TRACKER = """
import json, os, sys, threading, time
from oomrec.gpumemprof import MemoryTracker, CPUMemoryTracker
from oomrec.gpumemprof.oom_flight_recorder import OOMFlightRecorder, OOMFlightRecorderConfig

def tracker(**options):
    return MemoryTracker(**{"device": "cpu", "enable_oom_flight_recorder": True, **options})
"""


@pytest.fixture
def recorded(preload, build_dir):
    run = programs(preload, build_dir)
    return lambda text, *args, **options: run(TRACKER + text, *args, **options)


@pytest.fixture
def loaded(plain, build_dir):
    run = programs(plain, build_dir)
    return lambda text, *args, **options: run(TRACKER + text, *args, **options)


def bundles(directory: Path) -> list[Path]:
    return sorted(manifest.parent for manifest in directory.glob("oom_*/manifest.json"))


def events_of(bundle: Path) -> list[dict]:
    return json.loads((bundle / "events.json").read_text())


def test_a_failure_its_exception_and_the_trackers_events_share_a_bundle(recorded, tmp_path):
    run = recorded(
        """
with tracker(sampling_interval=0.02, oom_dump_dir="mine") as t:
    while not t.get_events("peak"):
        time.sleep(0.01)
    with t.capture_oom("step 7", {"batch": 64}):
        bytearray(1 << 46)
"""
    )
    assert run.exit_code == 1 and run.stderr.rstrip().endswith("MemoryError"), str(run)
    [bundle] = bundles(tmp_path / "mine")
    assert run.bundles() == []
    bundle_metadata = metadata(bundle)
    assert (bundle_metadata["context"], bundle_metadata["exception_type"]) == (
        "step 7",
        "MemoryError",
    )
    assert bundle_metadata["request"]["size"] >= 1 << 46 and bundle_metadata["verdict"]["code"]
    assert "bytearray(1 << 46)" in bundle_metadata["exception_traceback"]
    events = events_of(bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["event_count"] == bundle_metadata["captured_event_count"] == len(events)
    # The recorder's event for the failure, then the tracker's for the exception.
    failure, exception = (each for each in events if each["event_type"] == "error")
    assert failure["size"] >= 1 << 46 and exception is events[-1]
    assert exception["metadata"] == {"oom_reason": "MemoryError"}
    assert {"start", "peak"} <= {event["event_type"] for event in events}
    assert any(event["api"] for event in events)  # and the recorder's events
    assert len({tuple(sorted(event)) for event in events}) == 1  # all have the same keys
    assert not list(bundle.glob(".*"))


def test_a_bundle_that_the_recorder_wrote_is_named(recorded, tmp_path):
    """The program catches the exception outside of any capture."""
    run = recorded(
        """
import oomrec
with tracker(oom_dump_dir="mine") as t:
    print(t.last_oom_dump_path)
    try:
        bytearray(1 << 46)
    except MemoryError:
        pass
    print(t.last_oom_dump_path, oomrec.last_bundle())
    print(t.get_statistics()["last_oom_dump_path"])
"""
    )
    [bundle] = bundles(tmp_path / "mine")
    assert run.stdout == f"None\n{bundle} {bundle}\n{bundle}\n", str(run)


def test_an_active_tracker_sets_the_dump_directory(recorded, tmp_path):
    run = recorded(
        """
import oomrec
oomrec.dump("before")
first, second = tracker(oom_dump_dir="first"), tracker(oom_dump_dir="second")
first.start_tracking()
oomrec.dump("in first")
second.start_tracking()
oomrec.dump("in second")
first.stop_tracking()
oomrec.dump("still in second")
with first.capture_oom():
    oomrec.dump("in first again")
oomrec.dump("in second again")
second.stop_tracking()
oomrec.dump("after")
"""
    )

    def contexts(directory):
        return [metadata(bundle)["context"] for bundle in bundles(directory)]

    assert contexts(run.dump_dir) == ["before", "after"], str(run)
    assert contexts(tmp_path / "first") == ["in first", "in first again"]
    assert contexts(tmp_path / "second") == ["in second", "still in second", "in second again"]


@pytest.mark.parametrize("kind", ["recorded", "loaded"])
def test_the_newest_bundles_are_kept(kind, request, tmp_path):
    run = request.getfixturevalue(kind)(
        """
t = tracker(oom_max_dumps=2, oom_dump_dir="mine")
for number in range(5):
    path = t.handle_exception(MemoryError(str(number)), context=str(number))
    assert path == t.last_oom_dump_path and os.path.exists(path)
"""
    )
    assert run.exit_code == 0, str(run)
    left = [metadata(bundle)["context"] for bundle in bundles(tmp_path / "mine")]
    assert "4" in left and len(left) == 2, left


def test_a_size_bound_removes_bundles_but_never_the_newest(recorded, tmp_path):
    """A bundle that alone exceeds the bound is kept."""
    run = recorded(
        """
t = tracker(oom_max_total_mb=1, oom_dump_dir="mine")
keep = [bytearray(70000) for _ in range(300)]
for number in range(3):
    for _ in range(4000):
        t._add_event("allocation", 1, "x" * 250)
    print(os.path.exists(t.handle_exception(MemoryError(), context=str(number))))
"""
    )
    assert run.stdout == "True\n" * 3, str(run)
    left = bundles(tmp_path / "mine")
    assert metadata(left[-1])["context"] == "2"
    sizes = [sum(file.stat().st_size for file in bundle.iterdir()) for bundle in left]
    assert sum(sizes) <= 1 << 20 or len(left) == 1


def test_retention_without_bounds(recorded, tmp_path):
    run = recorded(
        """
t = tracker(oom_max_dumps=0, oom_max_total_mb=-1, oom_dump_dir="mine")
for number in range(7):
    t.handle_exception(MemoryError())
"""
    )
    assert len(bundles(tmp_path / "mine")) == 7, str(run)


def test_several_processes_prune_one_directory(preload, build_dir, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        TRACKER
        + """
t = tracker(oom_max_dumps=3, oom_dump_dir="shared")
for number in range(4):
    path = t.handle_exception(MemoryError(), context=sys.argv[1])
    print(path is not None)
"""
    )
    environment = package_environment(build_dir)
    started = [preload.start(sys.executable, script, n, env=environment) for n in range(4)]
    runs = [preload.finish(process) for process in started]
    assert [run.stdout for run in runs] == ["True\n" * 4] * 4, "\n".join(map(str, runs))
    left = bundles(tmp_path / "shared")
    # A process without the lock leaves the work to its holder, which may have listed earlier.
    assert 3 <= len(left) <= 6
    for bundle in left:
        files = json.loads((bundle / "manifest.json").read_text())["files"]
        assert all((bundle / name).exists() for name in files)


def test_several_threads_at_once(recorded, tmp_path):
    """Each has its own bundle or the one being written. Every exception passes unchanged."""
    run = recorded(
        """
t = tracker(oom_dump_dir="mine", oom_max_dumps=0)
wrong = []
start = threading.Barrier(8)
def work(number):
    start.wait()
    error = MemoryError(number)
    try:
        with t.capture_oom(str(number)):
            raise error
    except MemoryError as caught:
        if caught is not error:
            wrong.append(number)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(wrong, t.stats["alert_count"])
"""
    )
    assert run.stdout == "[] 8\n", str(run)
    left = bundles(tmp_path / "mine")
    assert 1 <= len(left) <= 8
    for bundle in left:
        assert json.loads((bundle / "manifest.json").read_text())["event_count"] == len(
            events_of(bundle)
        )


@pytest.mark.parametrize("kind", ["recorded", "loaded"])
def test_a_full_disk_does_no_harm(kind, request, tmp_path):
    """/dev/full is no directory, nothing can be made in /proc: the exception passes all the same."""
    run = request.getfixturevalue(kind)(
        """
t = tracker(oom_dump_dir="/proc/none")
with t.capture_oom("x"):
    raise MemoryError("mine")
"""
    )
    assert run.stderr.rstrip().endswith("MemoryError: mine"), str(run)
    assert "Traceback" in run.stderr and run.stderr.count("Traceback") == 1


def test_a_memory_error_without_a_failed_allocation(recorded, tmp_path):
    run = recorded(
        """
t = tracker(oom_dump_dir="mine")
with t.capture_oom("huge"):
    [0] * 2**61
"""
    )
    [bundle] = bundles(tmp_path / "mine")
    bundle_metadata = metadata(bundle)
    assert (
        bundle_metadata["exception_type"] == "MemoryError" and bundle_metadata["context"] == "huge"
    ), str(run)
    assert bundle_metadata["custom_metadata"]["oom_reason"] == "MemoryError"


def test_a_bundle_is_complete_although_all_memory_is_used(oomrec, build_dir, tmp_path):
    """Under a soft limit only the reserve is left for handling, yet texts and events are complete."""
    script = tmp_path / "program.py"
    script.write_text(
        TRACKER
        + """
t = tracker(oom_dump_dir="mine", sampling_interval=0.02)
held = []
with t, t.capture_oom("fill"):
    while True:
        held.append(bytearray(1 << 20))
"""
    )
    run = oomrec(
        "run", "--limit", "128M", "--", sys.executable, script, env=package_environment(build_dir)
    )
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    written = [metadata(bundle) for bundle in bundles(tmp_path / "mine")]
    [filled] = [each for each in written if each["context"] == "fill"]
    assert filled["reason"] == "soft_limit" and filled["exception_type"] == "MemoryError"


def test_other_exceptions_pass_without_a_bundle(recorded, tmp_path):
    run = recorded(
        """
t = tracker(oom_dump_dir="mine")
for error in (ValueError("bad input"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
    try:
        with t.capture_oom():
            raise error
    except BaseException as caught:
        assert caught is error
print(t.handle_exception(ValueError("seat allocation failed for user 7")), t.events)
"""
    )
    assert run.stdout == "None []\n", str(run)
    assert not (tmp_path / "mine").exists()


def test_nested_captures_write_one_bundle(recorded, tmp_path):
    run = recorded(
        """
outer, inner = tracker(oom_dump_dir="outer"), tracker(oom_dump_dir="inner")
try:
    with outer.capture_oom("outer"):
        with inner.capture_oom("inner"):
            raise MemoryError
except MemoryError as error:
    print(outer.last_oom_dump_path == inner.last_oom_dump_path)
"""
    )
    assert run.stdout == "True\n", str(run)
    assert [metadata(bundle)["context"] for bundle in bundles(tmp_path / "inner")] == ["inner"]
    assert not (tmp_path / "outer").exists()


def test_capture_as_a_decorator(recorded, tmp_path):
    run = recorded(
        """
t = tracker(oom_dump_dir="mine")
@t.capture_oom("decorated")
def work():
    raise MemoryError
for _ in range(2):
    try:
        work()
    except MemoryError:
        pass
"""
    )
    assert [metadata(each)["context"] for each in bundles(tmp_path / "mine")] == [
        "decorated"
    ] * 2, str(run)


def test_a_forked_child_writes_its_own_bundles(recorded, tmp_path):
    run = recorded(
        """
with tracker(oom_dump_dir="mine") as t:
    pid = os.fork()
    if pid == 0:
        try:
            with t.capture_oom("child"):
                bytearray(1 << 46)
        except MemoryError:
            os._exit(0)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), t.last_oom_dump_path)
"""
    )
    assert run.stdout == "0 None\n", str(run)
    [bundle] = bundles(tmp_path / "mine")
    assert metadata(bundle)["context"] == "child"
    assert json.loads((bundle / "manifest.json").read_text())["pid"] != run.pid


def test_the_host_tracker_has_a_recorder(loaded, tmp_path):
    run = loaded(
        """
t = CPUMemoryTracker(0.05, enable_oom_flight_recorder=True, oom_dump_dir="mine", oom_max_dumps=1)
print(t.handle_exception(MemoryError()) == t.last_oom_dump_path != None)
"""
    )
    assert run.stdout == "True\n", str(run)


def test_a_recorder_without_a_tracker(recorded, tmp_path):
    """As in the original's own tests: any exception, a ring of any events."""
    run = recorded(
        """
recorder = OOMFlightRecorder(OOMFlightRecorderConfig(enabled=True, dump_dir="mine", buffer_size=4))
for number in range(6):
    recorder.record_event({"timestamp": time.time(), "event_type": "allocation", "memory_allocated": number})
path = recorder.dump(reason="message_pattern:out of memory", exception=ValueError("any"),
                     context="unit-test", backend="cuda", metadata={"test_case": "artifacts"})
print(path)
"""
    )
    bundle = Path(run.stdout.strip())
    for name in ("manifest.json", "events.json", "metadata.json", "environment.json"):
        assert (bundle / name).exists(), str(run)
    bundle_metadata = metadata(bundle)
    assert (
        bundle_metadata["context"] == "unit-test" and bundle_metadata["exception_message"] == "any"
    )
    assert bundle_metadata["custom_metadata"] == {
        "test_case": "artifacts",
        "oom_reason": "message_pattern:out of memory",
        "backend": "cuda",
    }
    environment = json.loads((bundle / "environment.json").read_text())
    check("environment", environment)
    assert environment["system"]["platform"] == "Linux"
    assert environment["system"]["detected_backend"] in ("cpu", "cuda", "rocm")
    own = [event for event in events_of(bundle) if event["api"] is None]
    assert [event["memory_allocated"] for event in own] == [2, 3, 4, 5]


def test_without_the_library_only_bundle_requests_fail(plain, build_dir):
    environment = {**package_environment(build_dir), "OOMREC_LIBRARY": "/nowhere/liboomrec.so"}
    run = plain(
        sys.executable,
        "-c",
        "import time\n"
        "from oomrec.gpumemprof import MemoryTracker, OOMFlightRecorder, OOMFlightRecorderConfig\n"
        "with MemoryTracker(device='cpu', sampling_interval=0.01) as t:\n"
        "    while not t.get_events('peak'):\n        time.sleep(0.01)\n"
        "print([event.event_type for event in t.events][:2], t.handle_exception(MemoryError()))\n"
        "for made in (lambda: MemoryTracker(device='cpu', enable_oom_flight_recorder=True),\n"
        "             lambda: OOMFlightRecorder(OOMFlightRecorderConfig(enabled=True))):\n"
        "    try:\n"
        "        made()\n"
        "    except RuntimeError as error:\n"
        "        print(type(error).__name__, 'OOMREC_LIBRARY' in str(error))\n",
        env=environment,
    )
    assert run.stdout == "['start', 'peak'] None\n" + "ConfigurationError True\n" * 2, str(run)


def test_a_trackers_share_of_a_core(recorded):
    """At 0.1 s between samples, measured for three seconds in a sleeping program.

    A busy machine, whose caches others fill, takes more time for the same work."""
    program = """
import resource
with tracker() as t:
    time.sleep(0.3)
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(3)
    after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3)
"""

    @eventually
    def takes_a_hundredth():
        run = recorded(program)
        assert float(run.stdout) <= 0.01, str(run)


# Events put into a bundle


def bundle_with(tmp_path, text: str) -> Path:
    bundle = tmp_path / "oom_cpu_20260101_000000_001"
    bundle.mkdir()
    (bundle / "events.json").write_text(text)
    (bundle / "manifest.json").write_text(
        '{\n "event_count": 2,\n "note": "\\"event_count\\": 7"\n}\n'
    )
    (bundle / "metadata.json").write_text('{\n "captured_event_count": 2\n}\n')
    return bundle


RECORDED = """[
  {"timestamp": 10.5, "event_type": "allocation", "api": "malloc"},
  {"timestamp": 12.25, "event_type": "error", "api": "malloc"}
]
"""


def test_events_are_merged_by_time(tmp_path):
    """A tracker's may be those of several threads, not in order."""
    bundle = bundle_with(tmp_path, RECORDED)
    mine = [{"timestamp": when, "event_type": "peak"} for when in (13.0, 9.0, 11.0)]
    assert add_events(str(bundle), mine)
    events = events_of(bundle)
    assert [event["timestamp"] for event in events] == [9.0, 10.5, 11.0, 12.25, 13.0]
    assert events[1]["device_used"] is None and events[0]["api"] is None
    assert json.loads((bundle / "manifest.json").read_text())["event_count"] == 5
    assert metadata(bundle)["captured_event_count"] == 5
    assert (bundle / "events.json").stat().st_mode & 0o777 == 0o600


RANK = ("job_id", "rank", "local_rank", "world_size")


@pytest.mark.parametrize("own", [{}, {"job_id": "mine", "rank": 1}], ids=["unnamed", "named"])
def test_every_event_of_a_bundle_has_the_rank_of_its_process(tmp_path, monkeypatch, own):
    """The tracker's, which its program may have named, else the launcher's."""
    for name, value in (("RANK", "2"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "4")):
        monkeypatch.setenv(name, value)
    bundle = bundle_with(tmp_path, RECORDED)
    assert add_events(str(bundle), [{"timestamp": 11.0, **own}])
    rank = {"job_id": None, "rank": 2, "local_rank": 0, "world_size": 4, **own}
    events = events_of(bundle)
    assert [event["timestamp"] for event in events] == [10.5, 11.0, 12.25]
    assert all({key: event[key] for key in RANK} == rank for event in events)


@pytest.mark.parametrize("text", ["[]\n", "[\n]\n"])
def test_events_of_a_bundle_without_events(tmp_path, text):
    bundle = bundle_with(tmp_path, text)
    assert add_events(str(bundle), [{"timestamp": 1.0, "context": 'a "quote"\n'}])
    assert [event["context"] for event in events_of(bundle)] == ['a "quote"\n']
    assert add_events(str(bundle), [])


def test_the_environment_describes_the_system(tmp_path):
    bundle = bundle_with(tmp_path, RECORDED)
    environment = written(bundle / "environment.json", '{\n  "pid": 7,\n  "argv": ["}"]\n}\n')
    assert add_system(str(bundle), {"platform": "Linux"})
    assert json.loads(environment.read_text()) == {
        "pid": 7, "argv": ["}"], "system": {"platform": "Linux"},
    }  # fmt: skip
    assert environment.stat().st_mode & 0o777 == 0o600
    environment.write_text('{"pid": ')
    assert not add_system(str(bundle), {"platform": "Linux"})
    assert environment.read_text() == '{"pid": '
    assert not list(bundle.glob(".*"))


def test_an_event_that_is_not_json_leaves_the_bundle_unchanged(tmp_path):
    bundle = bundle_with(tmp_path, RECORDED)
    assert not add_events(str(bundle), [{"timestamp": 1.0, "metadata": {(1, 2): "a tuple"}}])
    assert (bundle / "events.json").read_text() == RECORDED
    assert not list(bundle.glob(".*"))


@pytest.mark.parametrize("broken", ["a file is missing", "an event without a time"])
def test_a_bundle_that_cannot_be_extended_stays_unchanged(tmp_path, broken):
    text = '[\n  {"event_type": "x", "api": null}\n]\n' if "time" in broken else RECORDED
    bundle = bundle_with(tmp_path, text)
    if "missing" in broken:
        (bundle / "events.json").unlink()
    assert not add_events(str(bundle), [{"timestamp": 1.0}])
    assert "missing" in broken or (bundle / "events.json").read_text() == text
    assert not list(bundle.glob(".*"))
