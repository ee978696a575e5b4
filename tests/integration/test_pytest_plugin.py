"""The pytest plugin: limits that hold, limits that break, the report, xdist, other plugins' marks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SOURCE, full, written

BUILD = Path(os.environ.get("OOMREC_TEST_BUILD", SOURCE / "build")).resolve()
TIMEOUT_S = 600


class Project:
    """A directory of tests in which pytest runs as a user runs it."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.environment: dict[str, str] = {}

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.directory / f"{name}.py").write_text(text)

    def run(self, *words: str, plugin: bool = True, program: list[str] | None = None):
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OOMREC_", "PYTEST_", "LD_"))
        }
        environment |= {
            "PYTHONPATH": str(SOURCE / "tools" / "python"),
            "OOMREC_LIBRARY": str(BUILD / "liboomrec.so"),
            "OOMREC_COMMAND": str(BUILD / "oomrec"),
            "OOMREC_SESSION_DIR": str(self.directory / "sessions"),
            **self.environment,
        }
        (self.directory / "sessions").mkdir(mode=0o700, exist_ok=True)
        chosen = ["-p", "oomrec.pytest_plugin"] if plugin else []
        words = (
            (*chosen, "-p", "no:cacheprovider", *words)
            if "--cache" not in words
            else (*chosen, *words[1:])
        )
        return subprocess.run(
            [*(program or [sys.executable, "-m", "pytest"]), *words],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


@pytest.fixture
def project(tmp_path) -> Project:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return Project(tmp_path)


LIMITS = """
import threading
import pytest

def allocate(mib):
    return bytearray(mib << 20)

@pytest.mark.limit_memory("24 MB")
def test_within():
    for _ in range(5):
        allocate(10)

@pytest.mark.limit_memory("24 MB")
def test_beyond():
    kept = [allocate(10) for _ in range(3)]

@pytest.mark.limit_memory("24 MB")
def test_beyond_in_a_thread():
    thread = threading.Thread(target=lambda: [allocate(10) for _ in range(3)])
    thread.start()
    thread.join()

@pytest.mark.limit_memory("24 MB", current_thread_only=True)
def test_another_threads_memory_is_not_counted():
    thread = threading.Thread(target=lambda: [allocate(10) for _ in range(3)])
    thread.start()
    thread.join()

class TestClass:
    before = allocate(64)

    @pytest.mark.limit_memory("1 MB")
    def test_what_was_there_before_is_not_counted(self):
        assert len(self.before) == 64 << 20

def test_without_a_limit():
    allocate(100)
"""


def test_limits_apply_without_any_option(project):
    project.write(test_limits=LIMITS)
    run = project.run("-v")
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stdout.count("test session starts") == 1  # it re-executes before it prints anything
    outcomes = dict(re.findall(r"^test_limits\.py::(\S+) (.+?) +\[", run.stdout, re.M))
    assert outcomes == {
        "test_within": "PASSED",
        "test_beyond": "MEMORY PROBLEMS",
        "test_beyond_in_a_thread": "MEMORY PROBLEMS",
        "test_another_threads_memory_is_not_counted": "PASSED",
        "TestClass::test_what_was_there_before_is_not_counted": "PASSED",
        "test_without_a_limit": "PASSED",
    }
    sizes = re.findall(r"\nTest was limited to 24\.0 MiB but allocated (\d+\.\d) MiB", run.stdout)
    assert len(sizes) == 2 and all(30 <= float(size) < 31 for size in sizes)
    assert re.search(
        r"30\.0 MiB in 3 blocks allocated here:\n +allocate:\S+test_limits\.py:6", run.stdout
    )


LEAKS = """
import pytest

kept = []

def leaky(mib):
    kept.append(bytearray(mib << 20))

def tidy():
    return bytearray(8 << 20)

@pytest.mark.limit_leaks("1 MB")
def test_tidy():
    tidy()

@pytest.mark.limit_leaks("1 MB")
def test_leaky():
    leaky(2)

@pytest.mark.limit_leaks("4 MB")
def test_leaky_within():
    leaky(3)

@pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: all(f.function != "leaky" for f in stack.frames))
def test_leaky_as_known():
    leaky(2)

@pytest.mark.limit_leaks("1 MB")
def test_a_cycle_is_no_leak():
    cycle = [bytearray(2 << 20)]
    cycle.append(cycle)

@pytest.mark.limit_leaks("100 KB")
def test_many_small_blocks_of_one_stack():
    kept.append([bytes(700) for _ in range(1000)])
"""


def test_leaks_are_judged_by_stack(project):
    project.write(test_leaks=LEAKS)
    run = project.run("-v")
    outcomes = dict(re.findall(r"^test_leaks\.py::(\S+) (.+?) +\[", run.stdout, re.M))
    assert outcomes == {
        "test_tidy": "PASSED",
        "test_leaky": "MEMORY PROBLEMS",
        "test_leaky_within": "PASSED",
        "test_leaky_as_known": "PASSED",
        "test_a_cycle_is_no_leak": "PASSED",
        "test_many_small_blocks_of_one_stack": "MEMORY PROBLEMS",
    }, run.stdout
    assert "Test was allowed to leak 1.0 MiB per location" in run.stdout
    assert re.search(
        r"2\.0 MiB in 1 block allocated here:\n( +.*\n)*? +leaky:\S+test_leaks\.py:7", run.stdout
    )


def test_a_leak_is_found_after_very_many_labels(project):
    """More than a recording can have in use at a time."""
    project.write(
        test_many="""
import oomrec, pytest
kept = []

def test_many_labels():
    for number in range(40_000):
        with oomrec.context(str(number)):
            pass

@pytest.mark.limit_leaks("1 MB")
def test_leaky():
    kept.append(bytearray(2 << 20))

@pytest.mark.limit_memory("1 MB")
def test_beyond():
    bytearray(2 << 20)
"""
    )
    run = project.run()
    assert "2 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "The test's leaks are unknown" not in run.stdout
    assert "no label was left for this test" not in run.stdout


def test_a_raising_filter_fails_only_its_test(project):
    project.write(
        test_filter="""
import pytest
kept = []

@pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: 1 / 0)
def test_filtered():
    kept.append(bytearray(2 << 20))

def test_other():
    pass
"""
    )
    run = project.run()
    assert run.returncode == 1 and "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "filter_fn of limit_leaks raised ZeroDivisionError" in run.stdout


REPORT = """
import pytest

def grow(mib):
    return [bytearray(1 << 20) for _ in range(mib)]

@pytest.mark.parametrize("mib", [1, 8, 32, 16])
def test_grows(mib):
    grow(mib)
"""


def test_the_report_names_the_largest_allocators(project):
    project.write(test_report=REPORT)
    run = project.run("--oomrec", "--most-allocations=2", "--stacks=2")
    assert run.returncode == 0, run.stdout + run.stderr
    report = run.stdout[run.stdout.index("OOMREC REPORT") :]
    assert re.findall(r"^test_report\.py::(\S+)", report, re.M) == [
        "test_grows[32]",
        "test_grows[16]",
    ]
    assert re.search(
        r"high-water mark  32\.\d MiB\n    allocated        32\.\d MiB in \d+ blocks\n +32\.0 MiB  \S*listcomp\S*:\S+:5\n +grow:\S+:5",
        report,
    ) or re.search(
        r"high-water mark  32\.\d MiB\n    allocated        32\.\d MiB in \d+ blocks\n +32\.0 MiB  grow:\S+:5",
        report,
    ), report


@pytest.mark.needs_module("xdist")
def test_workers_of_xdist_measure_and_report(project):
    project.write(test_report=REPORT, test_limits=LIMITS)
    run = project.run("-n", "2", "--oomrec", "-v")
    assert run.returncode == 1, run.stdout + run.stderr
    assert len(re.findall(r"\] MEMORY PROBLEMS test_limits", run.stdout)) == 2, run.stdout
    report = run.stdout[run.stdout.index("OOMREC REPORT") :]
    assert "test_report.py::test_grows[32]" in report and re.search(
        r"32\.0 MiB  \S+test_report\.py:5", report
    )


def test_arguments_and_exit_code_are_kept_and_programs_are_not_recorded(project):
    project.write(
        test_kept="""
import os, subprocess, sys
import pytest

@pytest.mark.limit_memory("9 MB")
def test_environment(request):
    assert request.config.getoption("verbose") == 2
    assert not [name for name in os.environ if name.startswith("LD_PRELOAD") or name == "OOMREC_MODE"]
    child = subprocess.run([sys.executable, "-c", "print(open('/proc/self/maps').read())"], capture_output=True)
    assert b"liboomrec" not in child.stdout
    assert "liboomrec" in open("/proc/self/maps").read()
"""
    )
    assert project.run("-vv").returncode == 0
    assert project.run("-vv", "-k", "nothing_of_that_name").returncode == 5
    assert project.run("--no-such-option").returncode == 4


def test_a_project_without_limits_is_unaffected(project):
    project.write(
        test_plain="def test_maps():\n    assert 'liboomrec' not in open('/proc/self/maps').read()\n"
    )
    assert project.run().returncode == 0


def test_marks_added_by_a_conftest_are_found(project):
    project.write(
        conftest="""
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(getattr(pytest.mark, "limit" + "_memory")("2 MB"))
""",
        test_marked="def test_marked():\n    kept = bytearray(3 << 20)\n",
    )
    run = project.run()
    assert run.returncode == 1 and "Test was limited to 2.0 MiB" in run.stdout, (
        run.stdout + run.stderr
    )


INCREASE = """
import pytest

@pytest.mark.limit_memory("64 MB")
def test_it():
    kept = bytearray(%d << 20)
"""


def test_growth_since_the_last_success_fails_on_request(project):
    project.write(test_increase=INCREASE % 8)
    assert project.run("--cache", "--fail-on-increase").returncode == 0
    project.write(test_increase=INCREASE % 4)
    assert project.run("--cache", "--fail-on-increase").returncode == 0
    project.write(test_increase=INCREASE % 6)
    assert project.run("--cache").returncode == 0
    project.write(test_increase=INCREASE % 16)
    run = project.run("--cache", "--fail-on-increase")
    assert run.returncode == 1 and re.search(
        r"previously used 6\.\d MiB but now uses 16\.\d MiB", run.stdout
    )


def test_an_invalid_mark_fails_only_its_test(project):
    marks = [
        "limit_memory('24 apples')",
        "limit_memory('24')",
        "limit_memory()",
        "limit_leaks(24)",
        "limit_leaks('1 MB', filter_fn=3)",
    ]
    project.write(
        test_wrong="import pytest\n"
        + "".join(
            f"@pytest.mark.{mark}\ndef test_{number}():\n    pass\n"
            for number, mark in enumerate(marks)
        ),
        test_right="def test_other():\n    pass\n",
    )
    run = project.run()
    assert run.returncode == 1 and "5 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert run.stdout.count("\nthe mark limit_memory of this test: ") == 3, run.stdout
    assert run.stdout.count("\nthe mark limit_leaks of this test: ") == 2, run.stdout


def test_an_xfail_limit(project):
    project.write(
        test_expected="""
import pytest

@pytest.mark.xfail(reason="known")
@pytest.mark.limit_memory("1 MB")
def test_known():
    bytearray(2 << 20)

@pytest.mark.xfail(strict=True)
@pytest.mark.limit_memory("1 MB")
def test_known_strictly():
    bytearray(2 << 20)

@pytest.mark.xfail
@pytest.mark.limit_memory("4 MB")
def test_mended():
    bytearray(2 << 20)

@pytest.mark.xfail(strict=True)
@pytest.mark.limit_memory("4 MB")
def test_mended_strictly():
    bytearray(2 << 20)
"""
    )
    run = project.run("-v")
    outcomes = dict(re.findall(r"^test_expected\.py::(\w+) (\w+)", run.stdout, re.M))
    assert outcomes == {
        "test_known": "XFAIL",
        "test_known_strictly": "XFAIL",
        "test_mended": "XPASS",
        "test_mended_strictly": "FAILED",
    }, run.stdout


def test_limits_apply_to_unittest_methods(project):
    project.write(
        test_methods="""
import unittest, pytest
class Case(unittest.TestCase):
    @pytest.mark.limit_memory("4 MB")
    def test_beyond(self):
        bytearray(5 << 20)
    @pytest.mark.limit_memory("6 MB")
    def test_within(self):
        bytearray(5 << 20)
"""
    )
    run = project.run()
    assert run.returncode == 1 and "1 passed" in run.stdout, run.stdout + run.stderr
    assert "Test was limited to 4.0 MiB but allocated 5.0 MiB" in run.stdout


STARTER = """
import sys
import pytest
sys.exit(pytest.console_main())
"""


@pytest.mark.parametrize("name", ["pytest", "py.test-3", *map(full, ["py.test", "pytest-3"])])
def test_every_way_to_start_pytest(project, name):
    project.write(test_limits=LIMITS)
    (project.directory / name).write_text(STARTER)
    run = project.run("-k", "within", program=[sys.executable, name])
    assert run.returncode == 0 and "1 passed" in run.stdout, run.stdout + run.stderr


def test_a_program_in_a_folder_named_pytest_starts_once(project):
    (project.directory / "pytest").mkdir()
    project.write(**{"test_limits": LIMITS, "pytest/run": "print('once')" + STARTER})
    run = project.run("-k", "within", program=[sys.executable, "pytest/run.py"])
    assert run.stdout.count("once") == 1 and "pytest runs inside" in run.stdout, str(run)


def test_inside_another_program_it_explains_how_to_start_it(project):
    project.write(
        test_limits=LIMITS,
        program="import pytest, sys\nsys.exit(pytest.main(['-p', 'oomrec.pytest_plugin', '-p', 'no:cacheprovider', *sys.argv[1:]]))\n",
    )
    python = [sys.executable, "program.py"]
    run = project.run("--oomrec", plugin=False, program=python)
    assert run.returncode == 4 and "oomrec run -- python program.py" in run.stderr
    run = project.run(plugin=False, program=python)
    assert run.returncode == 1 and "the limits of this test need the recorder" in run.stdout


@pytest.mark.parametrize("folder", ["with:colon", *map(full, ["with blank", "with$ORIGIN"])])
def test_an_unsuitable_library_path_gets_advice(project, folder):
    (project.directory / folder).mkdir()
    library = project.directory / folder / "liboomrec.so"
    library.symlink_to(BUILD / "liboomrec.so")
    project.environment["OOMREC_LIBRARY"] = str(library)
    project.write(test_limits=LIMITS)
    run = project.run("-k", "within")
    assert run.returncode == 1 and "1 failed" in run.stdout, run.stdout + run.stderr
    assert f"the loader cannot preload {library}: start it with `oomrec run --" in run.stdout
    recorded = [str(BUILD / "oomrec"), "run", "--", sys.executable, "-m", "pytest"]
    assert project.run("-k", "within", program=recorded).returncode == 0


def test_a_library_that_fails_to_load_is_tried_once(project):
    library = written(project.directory / "liboomrec.so", "no library")
    project.environment["OOMREC_LIBRARY"] = str(library)
    project.write(test_limits=LIMITS)
    run = project.run("-k", "within or without")
    assert run.returncode == 1 and "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert f"the loader did not load {library}" in run.stdout
    asked = project.run("--oomrec")
    assert asked.returncode == 4 and f"the loader did not load {library}" in asked.stderr


def test_under_oomrec_run_pytest_is_not_restarted(project):
    project.write(test_limits=LIMITS)
    run = project.run(
        program=[
            str(BUILD / "oomrec"),
            "run",
            "--mode",
            "exact",
            "--",
            sys.executable,
            "-m",
            "pytest",
        ]
    )
    assert run.returncode == 1 and run.stdout.count("\nTest was limited to 24.0 MiB") == 2


@pytest.fixture
def memray(request, project) -> str:
    """The real pytest-memray, which pytest loads by itself. It needs pytest's cache."""
    places = [BUILD / f"pytest-memray-{release}" for release in (request.param, "1.11.0")]
    if not all((place / "pytest_memray").is_dir() for place in places):
        pytest.skip(f"pytest-memray {request.param} is not installed: scripts/test installs it")
    paths = [SOURCE / "tools" / "python", *places]
    project.environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    return request.param


@pytest.mark.parametrize("memray", [full("1.7.0"), "1.11.0"], indirect=True)
def test_pytest_memray_owns_the_marks_by_default(project, memray):
    project.write(test_limits=LIMITS)
    theirs = project.run("--cache")
    assert theirs.returncode == 1, theirs.stdout + theirs.stderr
    assert "Test was limited to 24.0MiB" in theirs.stdout and "OOMREC" not in theirs.stdout
    report = project.run("--cache", "--memray")
    assert "MEMRAY REPORT" in report.stdout and "OOMREC" not in report.stdout


# Each value once, not each with each release: a case starts pytest two or three times.
@pytest.mark.parametrize(
    ("memray", "words"),
    [
        full("1.7.0", ()),
        full("1.7.0", ("-p", "no:memray")),
        full("1.11.0", ()),
        ("1.11.0", ("--memray",)),
    ],
    indirect=["memray"],
)
def test_with_oomrec_the_marks_are_ours(project, memray, words):
    project.write(test_limits=LIMITS)
    ours = project.run("--cache", "--oomrec", *words)
    assert ours.returncode == 1, ours.stdout + ours.stderr
    assert "Test was limited to 24.0 MiB" in ours.stdout and "MEMRAY" not in ours.stdout
    assert ours.stdout.count("high-water mark") > 1 and "OOMREC REPORT" in ours.stdout
    prefix = "--" if words == ("-p", "no:memray") else "--oomrec-"
    fewer = project.run("--cache", "--oomrec", *words, f"{prefix}most-allocations=1")
    assert fewer.stdout.count("high-water mark") == 1, fewer.stdout + fewer.stderr


@pytest.mark.parametrize(
    ("memray", "name", "words"),
    [
        full("1.7.0", "fail-on-increase", ()),
        full("1.7.0", "fail_on_increase", ("-p", "no:memray")),
        full("1.11.0", "fail_on_increase", ()),
        ("1.11.0", "fail-on-increase", ("-p", "no:memray")),
    ],
    indirect=["memray"],
)
def test_ini_values_beside_pytest_memray(project, memray, name, words):
    (project.directory / "pytest.ini").write_text(
        f"[pytest]\nmost_allocations = 1\nstacks = 2\n{name} = true\n"
    )
    project.write(test_increase=INCREASE % 6)
    first = project.run("--cache", "--oomrec", *words)
    assert first.returncode == 0 and "Unknown" not in first.stdout, first.stdout + first.stderr
    assert first.stdout.count("high-water mark") == 1
    project.write(test_increase=INCREASE % 16)
    second = project.run("--cache", "--oomrec", *words)
    assert second.returncode == 1 and "previously used 6." in second.stdout, second.stdout
