"""The tests of the published gpu-memory-profiler, and of Stormlog, as it is called today, run against
oomrec.gpumemprof and oomrec.tfmemprof.

tests/gpumemprof_shim makes their imports ours. expected_failures.json there has each test that fails, by the
reason why it is not public behaviour; docs/migration.md has the same reasons. A test that passes although it is
listed is a failure here, too: the list stays true. A name without parameters stands for all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path

import pytest
from conftest import SOURCE, clean_environment
from python_programs import PACKAGES, package_environment

SHIM = SOURCE / "tests" / "gpumemprof_shim"
PACKAGES_OF_THEIRS = json.loads((SHIM / "expected_failures.json").read_text())
OLD = "gpu-memory-profiler"

pytestmark = [pytest.mark.needs_torch, pytest.mark.needs_module("jsonschema")]


@pytest.fixture
def published(request, build_dir, library, tmp_path):
    """A directory with the published tests, their examples and documents, but without the packages."""
    name = getattr(request, "param", OLD)
    sources = build_dir / f"{name}-{PACKAGES_OF_THEIRS[name]['release']}"
    if not sources.is_dir():
        pytest.skip(f"{sources.name} is not downloaded: scripts/test downloads it")
    directory = tmp_path / "published"
    for name in ("tests", "examples", "docs"):
        shutil.copytree(sources / name, directory / name)
    shutil.copy(sources / "pytest.ini", directory)
    return directory


def environment(build_dir: Path, packages: Path = PACKAGES) -> dict[str, str]:
    ours = {
        **package_environment(build_dir),
        "PYTHONPATH": os.pathsep.join(map(str, (SHIM, packages))),
    }
    return {**clean_environment(), **ours}


def outcomes(directory: Path, env: dict[str, str], *tests: str) -> dict[str, str]:
    """Runs the tests. Their outcomes (passed, failed, skipped) by name."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=report.xml",
               "-o", "junit_family=xunit1"]  # fmt: skip
    run = subprocess.run(
        [*command, *tests], cwd=directory, env=env, timeout=540,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout[-4000:]
    found = {}
    for case in xml.parse(directory / "report.xml").iter("testcase"):
        file = case.get("file", "")
        classes = case.get("classname", "")[len(file) - len(".py") :].strip(".").split(".")
        name = "::".join([file, *filter(None, classes), case.get("name", "")])
        problems = {each.tag for each in case}
        failed = problems & {"failure", "error"}
        found[name] = "failed" if failed else "skipped" if "skipped" in problems else "passed"
    return found


@pytest.mark.parametrize(
    ("name", "published"), [(name, name) for name in PACKAGES_OF_THEIRS], indirect=["published"]
)
def test_the_published_tests_fail_only_where_listed(name, published, build_dir):
    listed = PACKAGES_OF_THEIRS[name]
    expected = {test for tests in listed["failures"].values() for test in tests}
    not_run = [f"--ignore={path}" for paths in listed["not run"].values() for path in paths]

    def is_expected(test: str) -> bool:
        return not expected.isdisjoint((test, test.partition("[")[0], test.partition("::")[0]))

    env = environment(build_dir)
    found = outcomes(published, env, *not_run, *listed["run"])
    failed = [test for test, outcome in found.items() if outcome == "failed"]
    surprising = [test for test in failed if not is_expected(test)]
    if surprising:  # some have a limit of time: alone they may hold to it
        again = outcomes(published, env, *surprising)
        surprising = [test for test in surprising if again[test] != "passed"]
    assert surprising == []
    passed = [test for test, outcome in found.items() if outcome == "passed"]
    assert [test for test in passed if is_expected(test)] == [], "listed, but it passes"
    names = {
        part for each in found for part in (each, each.partition("[")[0], each.partition("::")[0])
    }
    assert sorted(expected - names) == []
    assert len(passed) >= listed["at least"], Counter(found.values())


def test_the_published_tests_notice_a_wrong_rank(published, build_dir, tmp_path):
    """They do run our code: changed, it fails them."""
    changed = tmp_path / "changed"
    shutil.copytree(PACKAGES, changed, ignore=shutil.ignore_patterns("__pycache__"))
    ranks = changed / "oomrec" / "gpumemprof" / "_ranks.py"
    text = ranks.read_text()
    right = 'rank = identity.get("rank", 0)'
    assert text.count(right) == 1
    ranks.write_text(text.replace(right, right.replace("0", "1")))
    test = "tests/test_telemetry_v2.py::test_resolve_distributed_identity_skips_partial_env"
    assert outcomes(published, environment(build_dir), test) == {test: "passed"}
    assert outcomes(published, environment(build_dir, changed), test) == {test: "failed"}


USES = """
import gpumemprof, gpumemprof.analyzer, oomrec.gpumemprof
from gpumemprof.tracker import MemoryTracker
assert gpumemprof is oomrec.gpumemprof
assert MemoryTracker is oomrec.gpumemprof.tracker.MemoryTracker
try:
    gpumemprof.analyzer.MemoryAnalyzer()
except NotImplementedError as error:
    print(error)
import gpumemprof.tracker.other
"""


def test_the_imports_are_ours_and_what_oomrec_lacks_fails_when_used(build_dir):
    run = subprocess.run(
        [sys.executable, "-c", USES], env=environment(build_dir), capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert run.stdout == "oomrec has no gpumemprof.analyzer.MemoryAnalyzer\n", run.stderr
    assert "ModuleNotFoundError: No module named 'gpumemprof.tracker.other'" in run.stderr


def test_every_reason_is_in_the_documentation():
    page = (SOURCE / "docs" / "migration.md").read_text()
    text = " ".join(page.split())
    for name, listed in PACKAGES_OF_THEIRS.items():
        assert [reason for reason in listed["failures"] if reason not in text] == []
        assert f"{name} {listed['release']}" in text
