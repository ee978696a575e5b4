"""The page of `oomrec fleet report`: in a real browser, with hostile names, and its size."""

import re
from pathlib import Path

import pytest
from conftest import SOURCE, written
from fleet_rows import Cause, line, row
from fleet_rows import fleet as made_up

HOSTILE = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>\u202e"
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def page(tmp_path, fleet):
    """page(rows) is the path of their page."""

    def of(rows):
        target = written(tmp_path / "rows.jsonl", "".join(map(line, rows)))
        made = tmp_path / "triage.html"
        code, _, errors = fleet(
            "report", target, "--since", "5w", "--until", "2026-12-01", "-o", made
        )
        assert code == 0, errors
        return made

    return of


def test_its_colours_are_those_of_the_report():
    colour = re.compile(r"^  (--[\w-]+: light-dark\(.*)$", re.M)
    parts = ("tools/python/oomrec/fleet/page/triage.css", "tools/views/report/page/page.css")
    of_fleet, of_report = (set(colour.findall((SOURCE / part).read_text())) for part in parts)
    assert len(of_fleet) > 8 and of_fleet <= of_report


def test_it_loads_nothing_and_is_small(page):
    made = page(made_up(300))
    text = made.read_text()
    assert (
        not re.search(r"(?:src|href)=\"(?!data:,)", text)
        and 'http-equiv="Content-Security-Policy"' in text
    )
    assert "https://" not in text
    assert made.stat().st_size < 2_000_000


def test_names_as_long_as_a_row_allows_do_not_make_it_large(page):
    frame = {**row()["holders"][0]["frames"][0], "function": "f" * 700, "file": "x" * 300}
    holder = {**row()["holders"][0], "frames": [frame] * 3}
    rows = []
    for number in range(300):
        cause = Cause(number, 8)
        cause.signature = f"{number} " + "s" * 400
        cause.holders = [holder] * 3
        rows.append(row(number, cause, title="<" * 900, service=f"{number} " + "<" * 300))
    assert page(rows).stat().st_size < 2_000_000


def test_a_name_cannot_end_the_data(page):
    names = dict.fromkeys(["title", "service", "host", "summary", "signature", "release"], HOSTILE)
    text = page([row(1, **names)]).read_text()
    assert text.count("</script>") == 2 and "window.owned" in text


def test_its_colours_are_those_of_the_other_report():
    style = (SOURCE / "tools/views/report/page/page.css").read_text()
    ours = (SOURCE / "tools/python/oomrec/fleet/page/triage.css").read_text()
    colours = re.findall(r"--[\w-]+: light-dark\([^)]*\);", ours)
    assert len(colours) > 8 and [each for each in colours if each not in style] == []


@pytest.mark.needs_module("playwright")
@pytest.mark.skipif(not CHROMIUM.exists(), reason="no chromium")
def test_it_works_by_keyboard_and_hostile_names_stay_text(page):
    from playwright.sync_api import sync_playwright

    names = dict.fromkeys(["title", "signature", "service", "host", "summary", "release"], HOSTILE)
    holder = {
        **row()["holders"][0],
        "frames": [{**row()["holders"][0]["frames"][0], "function": HOSTILE}],
    }
    rows = [*made_up(200), row(1, holders=[holder], lost_gib_hours=1e5, **names)]
    made = page(rows)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        shown = browser.new_page()
        problems = []
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on(
            "console",
            lambda message: problems.append(message.text) if message.type == "error" else None,
        )
        shown.goto(made.as_uri())
        first = shown.locator("tr.at")
        assert HOSTILE.strip("\u202e") in first.inner_text()
        shown.keyboard.press("Enter")
        assert HOSTILE.strip("\u202e") in shown.locator(".stack").first.inner_text()
        shown.keyboard.press("Escape")
        assert shown.locator(".detail").count() == 0
        shown.keyboard.press("j")
        assert HOSTILE.strip("\u202e") not in first.inner_text()
        shown.keyboard.press("/")
        shown.keyboard.type("onerror")
        assert shown.locator("tr.row").count() == 1
        shown.locator("#tab-sizes").click()
        shown.locator("#search").fill("service-1")
        assert shown.locator("tr.row").count() > 1
        assert shown.evaluate("() => window.owned") is None and problems == []
        browser.close()
