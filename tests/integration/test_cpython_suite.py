"""CPython's own tests give the same results with and without the preload.

The results of each test are compared by name, not only in total. Tests that mostly wait (signal
stress, pipe timeouts) are left out.
"""

from __future__ import annotations

import re
import signal

import pytest
from conftest import full

# Module: which of its tests, for unittest's -k; all without any. Those that only allocate run with --full, or with every
# object recorded.
SUITES = {
    "test_json": [],
    "test_re": [],
    "test_threading": ["ThreadTests", "ThreadJoinOnShutdown", "BarrierTests", "LocalTests"],
    "test_subprocess": ["POSIXProcessTestCase", "ContextManagerTests"],
    "multiprocessing": ["TestProcess", "TestQueue", "TestHeap", "TestPoolWorker", "TestSharedC"],
    "test_signal": ["PosixTests", "WakeupSignalTests", "PendingSignalsTests"],
    "test_mmap": [],
    "test_ctypes": [],
    "test_dict": [],
    "test_list": [],
    "test_gc": [],
    "test_os": [],
    "test_posix": [],
}  # fmt: skip

# Some builds of CPython lack this module of the suite. This is all of it.
MULTIPROCESSING = """
import test._test_multiprocessing
test._test_multiprocessing.install_tests_in_module_dict(globals(), "fork")
"""

EVERYTHING_RECORDED = {"OOMREC_MODE": "exact", "PYTHONMALLOC": "malloc"}


ONLY_ALLOCATE = ["test_json", "test_re", "test_ctypes", "test_dict", "test_list", "test_gc"]
ELSEWHERE = ["test_posix"]  # below, with warnings


@pytest.mark.parametrize(
    "name", [full(name) if name in ONLY_ALLOCATE + ELSEWHERE else name for name in SUITES]
)
def test_same_results(preload, plain, python, tmp_path, name):
    compare(preload, plain, python(), tmp_path, name, {})


@pytest.mark.parametrize("name", ["test_list", *map(full, ["test_gc", "test_mmap"])])
def test_same_results_with_every_object_recorded(preload, plain, python, tmp_path, name):
    compare(preload, plain, python(), tmp_path, name, EVERYTHING_RECORDED)


@pytest.mark.parametrize("version", [full("3.12"), "3.13"])
def test_fork_does_not_warn_about_recorder_threads(preload, plain, python, tmp_path, version):
    """Since 3.12 os.fork() warns when /proc shows a second thread."""
    compare(preload, plain, python(version), tmp_path, "test_posix", {"PYTHONWARNINGS": "always"})


def compare(preload, plain, interpreter, directory, name, environment):
    (directory / "multiprocessing_fork.py").write_text(MULTIPROCESSING)
    module = "multiprocessing_fork" if name == "multiprocessing" else f"test.{name}"
    if plain(interpreter, "-c", f"import {module}").exit_code != 0:
        pytest.skip(f"this interpreter has no {module}")
    command = [interpreter, "-m", "unittest", "-v"]
    for pattern in SUITES[name]:
        command += ["-k", pattern]
    environment = {"OOMREC_SESSION_DIR": None, **environment}  # some run as another user
    options = {"env": environment, "timeout": 600, "preexec_fn": interruptible}
    for _ in range(2):  # beside other programs some of them fail by themselves
        alone = plain(*command, module, **options)
        recorded = preload(*command, module, **options)
        expected, got = results(alone), results(recorded)
        assert len(expected) > 20, str(alone)
        different = {
            test: (expected.get(test), got.get(test))
            for test in expected.keys() | got.keys()
            if expected.get(test) != got.get(test) and test not in skipped_when_preloaded(recorded)
        }
        if different == {}:
            break
    assert different == {}, f"{different}\n{recorded}"
    assert recorded.exit_code == alone.exit_code
    assert warnings(recorded) <= warnings(alone)


def interruptible():
    """Tests of SIGINT need its default handler, even when we run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


OUTCOME = "ok|FAIL|ERROR|skipped|expected failure|unexpected success"
LINE = re.compile(rf"^(\w+ \([^)\n]+\))(?:\n[^\n]*)?? \.\.\. .*?({OUTCOME})\b", re.M)


def results(run):
    """{test: outcome} of a verbose unittest run.

    A test that becomes another user may not read the library where that user may not: in root's home.
    """
    text = re.sub(r"ERROR: ld\.so: object .*liboomrec\.so.*\n", "", run.stdout + run.stderr)
    return dict(LINE.findall(text))


def skipped_when_preloaded(run):
    """From Python 3.14 on, some tests skip themselves with any LD_PRELOAD."""
    return re.findall(
        r"^(\w+ \([^)\n]+\)) \.\.\. skipped .*LD_PRELOAD", run.stdout + run.stderr, re.M
    )


def warnings(run):
    """The warnings, without their numbers."""
    lines = (run.stdout + run.stderr).splitlines()
    return {re.sub(r"\d+|0x[0-9a-f]+", "N", line) for line in lines if "Warning" in line}
