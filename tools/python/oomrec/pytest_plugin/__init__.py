"""The pytest plugin: memory limits for tests, and a report of the tests that allocate most.

    @pytest.mark.limit_memory("24 MB")
    def test_batches(): ...

    @pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: all(f.function != "fill" for f in stack.frames))
    def test_again_and_again(): ...

    pytest --oomrec --most-allocations=10

The marks and options are those of pytest-memray. Where that is installed, the marks stay its own unless
--oomrec is given. `_measure` measures a test; `_rerun` restarts pytest under the recorder.
"""

from __future__ import annotations

from typing import Any, Generator

import pytest

from . import _options, _rerun
from ._marks import Stack, StackFrame

__all__ = ["Stack", "StackFrame"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    _options.add_to(parser, pluginmanager)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    _options.register_marks(config)
    if not _options.owns_marks(config):
        return
    from ._manager import Manager

    if _options.has_memray(config):
        config.pluginmanager.unregister(name="memray_manager")
    _rerun.restore_environment(config)
    config.pluginmanager.register(Manager(config), "oomrec_manager")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if _options.owns_marks(config) and _rerun.is_wanted(config):
        _rerun.become_recorded(config)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_report_teststatus(report: Any) -> Generator[None, Any, None]:
    outcome = yield
    ours = any(name.startswith("oomrec") for name, _ in getattr(report, "sections", ()))
    if report.when == "call" and report.outcome == "failed" and ours:
        outcome.force_result(("failed", "M", "MEMORY PROBLEMS"))
