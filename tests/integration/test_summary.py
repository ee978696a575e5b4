"""tests/summary.py, whose result decides scripts/test: what it counts and what it names."""

import subprocess
import sys
from pathlib import Path

import pytest

SUMMARY = Path(__file__).parent.parent / "summary.py"
ENDS = {"passed": "", "failed": "<failure/>", "error": "<error/>", "skipped": "<skipped/>"}


@pytest.fixture
def summary(tmp_path):
    """summary("a.xml", …) is its exit code and its output lines."""

    def run(*names: str) -> tuple[int, list[str]]:
        words = [sys.executable, SUMMARY, *(tmp_path / name for name in names)]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
        assert ended.stderr == ""
        return ended.returncode, ended.stdout.splitlines()

    return run


def pytest_report(path: Path, **outcomes: str) -> None:
    cases = (
        f'<testcase classname="tests.integration.test_x" name="{name}">{ENDS[outcome]}</testcase>'
        for name, outcome in outcomes.items()
    )
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")


def test_counts_by_outcome(summary, tmp_path):
    (tmp_path / "unit.json").write_text('{"name": "a", "result": "OK"}\n' * 3)
    pytest_report(tmp_path / "integration.xml", one="passed", two="skipped")
    assert summary("unit.json", "integration.xml") == (0, ["4 passed, 0 failed, 1 skipped"])


def test_a_test_that_passes_only_on_a_rerun_has_failed(summary, tmp_path):
    first = {
        "fine": "passed",
        "late": "failed",
        "broken": "failed",
        "unbuilt": "error",
        "unasked": "failed",
    }
    pytest_report(tmp_path / "integration.xml", **first)
    pytest_report(
        tmp_path / "integration-again.xml", late="passed", broken="failed", unbuilt="error"
    )
    code, lines = summary("integration.xml")
    module = "failed: tests/integration/test_x.py"
    assert lines == [
        f"{module}::late (failed beside others, passed alone)",
        f"{module}::broken (failed beside others, failed alone)",
        f"{module}::unbuilt (failed beside others, failed alone)",
        f"{module}::unasked",
        "1 passed, 4 failed, 0 skipped",
    ]
    assert code == 1


def test_failed_unit_tests_are_named_with_their_build(summary, tmp_path):
    (tmp_path / "build-asan.json").write_text(
        '{"name": "bundle", "result": "OK"}\n'
        '{"name": "reader", "result": "TIMEOUT"}\n'
        '{"name": "absent", "result": "SKIP"}\n'
    )
    assert summary("build-asan.json") == (
        1,
        ["failed: build-asan: reader", "1 passed, 1 failed, 1 skipped"],
    )


@pytest.mark.parametrize("name", ["results.json", "results.xml"])
@pytest.mark.parametrize("text", [None, "torn <"])
def test_tests_that_did_not_run_have_not_passed(summary, tmp_path, name, text):
    if text is not None:
        (tmp_path / name).write_text(text)
    code, (line, counts) = summary(name)
    assert line.startswith(f"failed: {tmp_path / name}: no results: ")
    assert (code, counts) == (1, "0 passed, 1 failed, 0 skipped")


def test_a_report_without_a_test_is_a_failure(summary, tmp_path):
    (tmp_path / "unit.json").write_text("")
    pytest_report(tmp_path / "integration.xml")
    code, lines = summary("unit.json", "integration.xml")
    assert [line.rpartition(": ")[2] for line in lines[:2]] == ["no test has run"] * 2
    assert (code, lines[2]) == (1, "0 passed, 2 failed, 0 skipped")
