"""Fixtures: the report's page in a real browser, with recordings made up by tests/report_data.py.

A page that loads anything from a network, or has an error in its console, fails its test at the end.
"""

from pathlib import Path

import pytest
import report_data
from report_browser import PATIENCE_MS, settled

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def template(build_dir) -> str:
    path = build_dir / "tools/views/report/page/report.html"
    assert path.exists(), f"{path} is not built"
    return path.read_text()


class Pages:
    """The browser's pages. A test gets those that earlier ones no longer use: to start one takes most of a test's time."""

    def __init__(self, browser):
        self.browser = browser
        self.unused = {}

    def take(self, scale: float, clock: str):
        unused = self.unused.setdefault((scale, clock), [])
        if unused:
            return unused.pop()
        context = self.browser.new_context(device_scale_factor=scale, timezone_id=clock)
        context.set_default_timeout(PATIENCE_MS)
        return context.new_page()

    def give_back(self, page, scale: float, clock: str) -> None:
        page.mouse.move(0, 0)  # where a new page has it
        self.unused[scale, clock].append(page)


@pytest.fixture(scope="session")
def pages(browser) -> Pages:
    return Pages(browser)


@pytest.fixture
def show(pages, template, tmp_path):
    """show(recording, "view=flame", …) is the page with the recording. Its errors fail the test."""
    problems = []
    taken = []

    def listeners(path) -> dict:
        def request(asked):
            if asked.url.split("#")[0] != path.as_uri() and not asked.url.startswith("data:"):
                problems.append(f"asked for {asked.url[:100]}")

        def console(said):
            if said.type in ("error", "warning"):
                problems.append(f"console: {said.text}")

        return {
            "request": request,
            "pageerror": lambda error: problems.append(f"error: {error.stack or error}"),
            "dialog": lambda dialog: problems.append(f"dialog: {dialog.message}"),
            "console": console,
        }

    def opened(
        recording,
        address="",
        *,
        view="",
        size=(1280, 800),
        scale=1,
        dark=False,
        clock="Asia/Kolkata",
    ):
        page = pages.take(scale, clock)
        path = tmp_path / f"{len(taken)}.html"
        watching = listeners(path)
        taken.append((page, scale, clock, watching))
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if dark else "light")
        path.write_text(
            recording
            if isinstance(recording, str)
            else report_data.page(template, recording, view=view)
        )
        for event, listener in watching.items():
            page.on(event, listener)
        page.goto(f"{path.as_uri()}#{address}")
        page.wait_for_selector("html[data-ready]", state="attached")
        settled(page)  # the graph is drawn once its size is known, in the next frame
        return page

    yield opened
    for page, scale, clock, watching in taken:
        pages.give_back(page, scale, clock)
        for event, listener in watching.items():
            page.remove_listener(event, listener)
    assert problems == []


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.needs_module("playwright"))
            item.add_marker(pytest.mark.needs_file(str(CHROMIUM)))
