"""Measures tests while they run, checks them against their marks, and collects the report's data.

Under xdist the workers measure. Their results reach the controller with the tests' reports and, when a
worker ends, as its output.
"""

from __future__ import annotations

import gc
import unittest
from typing import Any, Generator

import pytest

from .._impl.library import library
from . import _marks, _options, _report, _rerun
from ._measure import Measurement, allocations_by_test, allocations_of


def _marks_of(item: pytest.Item) -> list[pytest.Mark]:
    return [mark for mark in item.iter_markers() if mark.name in _marks.MAKERS]


def _is_strict_xpass(report: Any) -> bool:
    return report.outcome == "failed" and str(report.longrepr).startswith("[XPASS(strict)]")


class Manager:
    """The plugin's hooks around tests."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.records_all = bool(_options.value(config, "oomrec"))
        self.is_worker = hasattr(config, "workerinput")
        self.measured: dict[str, Measurement] = {}  # of tests that ran here
        self.leaks: dict[str, list[_marks.Allocations] | None] = {}
        self.results: dict[str, _report.Result] = {}  # of all tests, for the report

    # --- Measuring ------------------------------------------------------------------------------

    def _limits(self, item: pytest.Item) -> list[_marks.MemoryLimit | _marks.LeakLimit]:
        """The limits that the test's marks set. An invalid mark fails the test."""
        made, problem = [], ""
        for mark in _marks_of(item):
            try:
                made.append(_marks.MAKERS[mark.name](*mark.args, **mark.kwargs))
            except (TypeError, ValueError) as error:
                problem = f"the mark {mark.name} of this test: {error}"
        if problem:
            pytest.fail(problem, pytrace=False)
        return made

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Restarts for marks that no test file mentions, because a plugin or a conftest adds them."""
        if self.is_worker or _rerun.is_recorded() or self.config.option.collectonly:
            return
        if any(_marks_of(item) for item in session.items):
            _rerun.become_recorded(self.config)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
        yield from self._measured(pyfuncitem)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Measures methods of unittest.TestCase, for which pytest_pyfunc_call is not called."""
        if issubclass(getattr(item, "cls", None) or object, unittest.TestCase):
            yield from self._measured(item)
        else:
            yield

    def _measured(self, item: pytest.Item) -> Generator[None, Any, None]:
        limits = self._limits(item)
        if not limits and not self.records_all:
            yield
            return
        if not _rerun.is_recorded() or not library().has("watermark"):
            why = _rerun.why_not() or "give --oomrec"
            pytest.fail(f"the limits of this test need the recorder: {why}", pytrace=False)
        with Measurement(item.nodeid) as measured:
            outcome = yield
        self.measured[item.nodeid] = measured
        leak_limits = [limit for limit in limits if isinstance(limit, _marks.LeakLimit)]
        if leak_limits and outcome.excinfo is None:
            gc.collect()  # memory that only cycles keep is not a leak
            self.leaks[item.nodeid] = allocations_of(measured, leak_limits[0].current_thread_only)

    # --- Judging --------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        measured = self.measured.get(item.nodeid)
        if call.when != "call" or measured is None:
            return
        report = outcome.get_result()
        report.oomrec_peak_bytes = measured.peak_bytes
        if report.outcome != "passed" and not _is_strict_xpass(report):
            return
        for limit in self._limits(item):
            if isinstance(limit, _marks.MemoryLimit):
                problem = self._check_memory(item.nodeid, measured, limit)
            else:
                problem = self._check_leaks(item.nodeid, limit)
            if problem is not None:
                is_expected = _is_strict_xpass(report) or hasattr(report, "wasxfail")
                report.outcome = "skipped" if is_expected else "failed"
                if is_expected:  # pytest.mark.xfail saw the test pass
                    report.wasxfail = getattr(report, "wasxfail", "")
                report.longrepr = problem.text
                report.sections.append(problem.section)
                return

    def _style(self) -> _report.Style:
        return _report.Style(
            frames=_options.value(self.config, "stacks"),
            native=_options.value(self.config, "native"),
        )

    def _check_memory(
        self, test: str, measured: Measurement, limit: _marks.MemoryLimit
    ) -> _report.Problem | None:
        peak = measured.own_thread_peak_bytes if limit.current_thread_only else measured.peak_bytes
        if peak >= limit.bytes:
            found = allocations_of(measured, limit.current_thread_only)
            return _report.over_limit(limit, peak, found, self._style())
        cache = getattr(self.config, "cache", None)  # -p no:cacheprovider
        if cache is None:
            return None
        before = cache.get(f"oomrec/{test}", None)
        if _options.value(self.config, "fail_on_increase") and before is not None and peak > before:
            return _report.more_than_before(before, peak)
        cache.set(f"oomrec/{test}", peak)
        return None

    def _check_leaks(self, test: str, limit: _marks.LeakLimit) -> _report.Problem | None:
        found = self.leaks.pop(test, [])
        if found is None:
            return _report.unreadable()
        try:
            leaking = _marks.leaks(limit, found)
        except Exception as error:
            return _report.filter_failed(error)
        return _report.leaking(limit, leaking, self._style()) if leaking else None

    # --- Reporting ------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: Any) -> None:
        peak = getattr(report, "oomrec_peak_bytes", None)
        if peak is not None:
            self.results[report.nodeid] = _report.Result(report.nodeid, peak)

    def _most(self) -> list[_report.Result]:
        number = _options.value(self.config, "most_allocations") or len(self.results)
        return sorted(self.results.values(), key=lambda result: -result.peak_bytes)[:number]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if not self.records_all or not self.measured or not _rerun.is_recorded():
            return
        # Read the recording once for all tests; this process' largest tests suffice.
        by_test = allocations_by_test() or {}
        found = {
            result.test: _report.as_plain(
                by_test.get(self.measured[result.test].number, []), self._style()
            )
            for result in self._most()
            if result.test in self.measured
        }
        if self.is_worker:
            self.config.workeroutput["oomrec"] = found  # type: ignore[attr-defined]
        else:
            self._take(found)

    def _take(self, found: dict[str, Any]) -> None:
        for test, plain in found.items():
            if test in self.results:
                self.results[test].allocations = plain

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._take(getattr(node, "workeroutput", {}).get("oomrec", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.records_all and not _options.value(self.config, "hide_oomrec_summary"):
            _report.write(terminalreporter, self._most())
