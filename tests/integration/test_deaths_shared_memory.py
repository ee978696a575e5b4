"""SIGBUS of a program that writes to shared memory while /dev/shm is full.

/dev/shm has 64 MiB here, as in a container. The test mounts it, which needs root.
"""

import json
import signal
import sys
from pathlib import Path

import pytest
from machine_isolation import enter_small_dev_shm, may_mount

MIB = 1 << 20
ROOM = 64 * MIB

SHARED_BLOCK = """
import numpy, multiprocessing.shared_memory as shared
def fill(megabytes):
    block = shared.SharedMemory(create=True, size=megabytes << 20)
    numpy.ndarray((megabytes << 20,), dtype="u1", buffer=block.buf).fill(1)
fill(16)
fill(80)
"""


LOADER = """
import numpy
from multiprocessing.shared_memory import SharedMemory
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        block = SharedMemory(create=True, size=96 << 20)
        numpy.ndarray((96 << 20,), dtype="u1", buffer=block.buf).fill(1)
for batch in DataLoader(Images(), num_workers=1):
    pass
"""


@pytest.fixture(autouse=True)
def small(oomrec, preload):
    if not may_mount():
        pytest.skip("no file system can be mounted here")


def dies_under_run(oomrec, *words, **options):
    run = oomrec("run", "--", *words, preexec_fn=enter_small_dev_shm, **options)
    assert run.exit_code == 128 + signal.SIGBUS, str(run)
    return run


def shown_of(oomrec, run) -> dict:
    bundle = run.only_bundle()
    shown = oomrec.json("show", bundle)
    metadata = json.loads((bundle / "metadata.json").read_text())
    assert metadata["verdict"] == shown["verdict"]
    return shown


def assert_is_full(shown: dict, program: str) -> None:
    verdict = shown["verdict"]
    assert verdict["code"] == "shared_memory_full", shown
    assert verdict["summary"].startswith(f"{program} died of SIGBUS: /dev/shm has 64.0 MiB")
    assert shown["outcome"] == "signal 7"
    assert shown["limit"]["kind"] == "none"


def test_a_mapping_larger_than_the_file_system(oomrec, victim):
    shown = shown_of(
        oomrec, dies_under_run(oomrec, victim("shared_memory"), "too_much", "/dev/shm")
    )
    assert_is_full(shown, "shared_memory")
    assert shown["trigger"] == "killed"  # the only trace that it left
    words = "of which 64.0 MiB were free when it needed 128.0 MiB for too_much; it held "
    assert words in shown["verdict"]["summary"]
    assert shown["verdict"]["evidence"][:2] == [
        "shared mapping of /dev/shm/too_much: 128.0 MiB were still needed, 64.0 MiB of "
        "64.0 MiB were free",
        "/dev/shm was still full after its end",
    ]


def test_mappings_too_large_in_total(oomrec, victim):
    """Each fits alone. The evidence is the state of the file system."""
    shown = shown_of(oomrec, dies_under_run(oomrec, victim("shared_memory"), "pieces", "/dev/shm"))
    assert_is_full(shown, "shared_memory")
    assert "/dev/shm has 64.0 MiB and is full" in shown["verdict"]["summary"]


def test_an_earlier_failure_adds_one_line(oomrec, victim):
    run = dies_under_run(oomrec, victim("shared_memory"), "after_refusal", "/dev/shm")
    shown = shown_of(oomrec, run)
    assert_is_full(shown, "shared_memory")
    assert shown["verdict"]["evidence"][-1].startswith(
        "before that, shared_memory asked malloc for 64.0 TiB and was refused"
    )


@pytest.mark.needs_numpy
def test_a_shared_numpy_array(oomrec):
    """An array that fits is not a cause, one that does not is. The resource tracker removes the file."""
    shown = shown_of(oomrec, dies_under_run(oomrec, sys.executable, "-c", SHARED_BLOCK))
    assert_is_full(shown, Path(sys.executable).resolve().name)
    words = "of which 48.0 MiB were free when it needed 80.0 MiB for psm_"
    assert words in shown["verdict"]["summary"]


@pytest.mark.needs_torch
def test_a_data_loader_worker_with_a_full_dev_shm(oomrec):
    """The parent learns the signal. PyTorch's handlers in the worker re-raise it."""
    run = oomrec(
        "run", "--", sys.executable, "-c", LOADER, preexec_fn=enter_small_dev_shm, timeout=300
    )
    assert run.exit_code == 1 and "DataLoader worker" in run.stderr, str(run)
    oomrec("recover")
    pages = [oomrec.json("show", bundle) for bundle in run.bundles()]
    assert "child_killed" in [page["verdict"]["code"] for page in pages]
    (worker,) = [page for page in pages if page["verdict"]["code"] == "shared_memory_full"]
    words = "of which 64.0 MiB were free when it needed 96.0 MiB for psm_"
    assert words in worker["verdict"]["summary"] and worker["outcome"] == "signal 7"


def test_without_a_waiting_parent_the_signal_is_unknown(preload, oomrec, victim):
    run = preload(victim("shared_memory"), "too_much", "/dev/shm", preexec_fn=enter_small_dev_shm)
    assert run.exit_code == 128 + signal.SIGBUS
    (session,) = preload.session_dir.rglob("*.session")
    shown = oomrec.json("show", session)
    assert (shown["verdict"]["code"], shown["outcome"]) == ("unknown", "unknown")


def test_a_crash_that_the_process_caught(preload, oomrec, victim):
    run = preload(
        victim("shared_memory"), "after_refusal", "/dev/shm", preexec_fn=enter_small_dev_shm
    )
    assert run.exit_code == 128 + signal.SIGBUS
    assert_is_full(shown_of(oomrec, run), "shared_memory")
    assert "\noomrec: shared_memory died of SIGBUS: /dev/shm has 64.0 MiB" in run.stderr


# --- SIGBUS for other reasons ---------------------------------------------------------------------


@pytest.mark.parametrize("where", ["/dev/shm", "."])
def test_a_truncated_file(oomrec, victim, where):
    run = dies_under_run(oomrec, victim("shared_memory"), "truncated", where)
    assert shown_of(oomrec, run)["verdict"]["code"] == "crashed"


@pytest.mark.parametrize("way", ["raise", "another"])
def test_a_mapping_that_fit(oomrec, victim, way):
    run = dies_under_run(oomrec, victim("shared_memory"), way, "/dev/shm")
    assert shown_of(oomrec, run)["verdict"]["code"] == "crashed"


def test_a_signal_sent_by_another_process(preload, oomrec, victim):
    """The file system was nearly full, but that did not kill it."""
    process = preload.start(
        victim("shared_memory"), "wait", "/dev/shm", preexec_fn=enter_small_dev_shm
    ).once("ready")
    process.send_signal(signal.SIGBUS)
    run = preload.finish(process, exits=128 + signal.SIGBUS)
    oomrec("recover")
    refused, killed = [oomrec.json("show", bundle) for bundle in run.bundles()]
    assert (refused["verdict"]["code"], refused["outcome"]) == ("request_too_large", "recovered")
    assert (killed["verdict"]["code"], killed["outcome"]) == ("crashed", "signal 7")
