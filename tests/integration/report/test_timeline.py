"""The timeline, its window, and what a window does to the other views."""

import pytest
import report_data
from report_browser import address, change, choice, settled, tree
from report_data import MIB


def test_a_timeline_window_applies_to_the_other_views(show):
    page = show(report_data.small(), "view=timeline")
    settled(page)
    chart = page.locator("svg.chart").first
    at = chart.bounding_box()
    left, wide = at["x"] + 74, at["width"] - 74 - 28
    page.mouse.move(left + wide * 0.3, at["y"] + 100)
    page.mouse.down()
    page.mouse.move(left + wide * 0.5, at["y"] + 100, steps=4)
    page.mouse.up()
    # 30 of 60 s: its last checkpoint is at 28 s.
    assert "Window: 18" in page.locator("#window-bar").inner_text()
    page.get_by_role("button", name="Show in the flame graph").click()
    settled(page)
    whole, _, below = tree(page)
    assert choice(page, "Show").input_value() == "window_end"
    assert whole == pytest.approx((10 + 6.7 * 28 + 40 + 300) * MIB)
    assert below["<module>"][2]["main"][2]["make_batch"][0] == pytest.approx(384 * 28 / 60 * MIB)
    others = below["[stacks that the checkpoint does not name]"][0]
    assert others == pytest.approx(whole - (384 * 28 / 60 + 300) * MIB)
    choice(page, "Show").select_option("window_growth")
    settled(page)
    # Since the checkpoint at 16 s, when the device was empty.
    assert tree(page)[2]["<module>"][2]["main"][0] == pytest.approx((384 * 12 / 60 + 300) * MIB)
    page.locator("#tab-table").click()
    assert page.locator(".virtual tbody tr:not(.gap)").count() == 5
    assert "[stacks that" not in page.locator(".virtual").inner_text()
    page.get_by_role("button", name="Clear").click()
    assert "window" not in address(page) and "mode" not in address(page)


def test_a_timeline_window_by_keyboard(show):
    page = show(report_data.small(), "view=timeline")
    settled(page)
    page.locator("svg.chart").first.focus()
    page.keyboard.press("ArrowLeft")
    assert (
        "11:07:39.000 UTC (2026-11-18 16:37:39 local)"
        in page.locator(".caption").first.inner_text()
    )
    assert "resident (RSS)" in page.locator(".caption").first.inner_text()
    for _ in range(10):
        page.keyboard.press("Shift+ArrowLeft")
    assert "Window: 49.0 s – 59.0 s" in page.locator("#window-bar").inner_text()
    page.keyboard.press("Escape")
    assert "window" not in address(page)


def test_a_time_appears_once_if_clocks_agree(show):
    page = show(report_data.small(), clock="UTC")
    text = page.locator("body").inner_text()
    assert "2026-11-18 11:07:40 UTC\n" in text and " local)" not in text
    change(page, view="timeline")
    page.locator("svg.chart").first.focus()
    page.keyboard.press("ArrowLeft")
    assert "11:07:39.000 UTC: " in page.locator(".caption").first.inner_text()


def test_the_timeline_shows_limits_marks_and_failures(show):
    page = show(report_data.small(), "view=timeline")
    settled(page)
    text = page.locator("#panel").inner_text()
    assert "limit RAM 64.0 GiB: above the picture" in text
    drawn = page.locator("svg.chart text").all_text_contents()
    for words in [
        "--limit 512.0 MiB",
        "--limit-gpu cuda:0 512.0 MiB",
        "epoch 2",
        "32.0 MiB refused (mallo",
        "make_batch train.py:21",
    ]:
        assert any(words in one for one in drawn), words
    # The axis shows the selected clock.
    assert "11:07:00" in drawn
    choice(page, "Time").select_option("local")
    settled(page)
    assert "16:37:00" in page.locator("svg.chart text").all_text_contents()


@pytest.mark.parametrize("seconds", [0.5, 4, 6, 8, 45, 400, 3000, 40_000, 200_000])
def test_labels_of_the_time_axis_do_not_repeat(show, seconds):
    made = report_data.Recording()
    for part in range(11):
        made.moment(seconds * part / 10, 300 * MIB, [200 * MIB, 0, 0, 0])
    page = show(made, "view=timeline")
    settled(page)
    labels = page.locator("svg.chart .time text").all_text_contents()
    first = labels[: len(labels) // page.locator("svg.chart").count()]
    assert len(first) >= 3 and len(set(first)) == len(first), first


def holders_over_time(made, show, most=8) -> dict:
    page = show(made, "view=timeline")
    series = page.evaluate(
        """(most) => report.holdersOverTime(report.data, most)
                     .map(({name, values}) => [name, Array.from(values, (bytes) => bytes / 1048576)])""",
        most,
    )
    return dict(series)


def recording_of(names: list[str]):
    """(recording, rows): a row of each function."""
    made = report_data.Recording()
    for second in (0, 10):
        made.moment(second, 300 * MIB, [200 * MIB, 0, 0, 0])
    locations = {name: made.location(name) for name in names}
    return made, [made.row(made.stack([locations[name]]), MIB) for name in names]


def test_holders_do_not_jump_when_the_last_checkpoint_names_more(show):
    """Earlier checkpoints have at most 256 rows, here two."""
    made, rows = recording_of(["first", *["second"] * 3])
    first, *second = rows
    for i in range(4):
        made.checkpoint(
            i, [(first, 50 * MIB), (second[0], 9 * MIB)], [100 * MIB, 0, 0, 0], full=True
        )
    every = [(second[2], 7 * MIB), (first, 50 * MIB), (second[1], 8 * MIB), (second[0], 9 * MIB)]
    made.checkpoint(3.01, every, [100 * MIB, 0, 0, 0])
    assert holders_over_time(made, show) == {
        "first": [50] * 5,
        "second": [9] * 5,
        "all others": [41] * 5,
    }
    # Earlier ones were not full, so holders only in the last one are new.
    made.columns["c_full"][3] = 0
    assert holders_over_time(made, show)["second"] == [9, 9, 9, 9, 24]


def test_holders_do_not_dip_when_a_full_checkpoint_omits_them(show):
    made, (first, second, third) = recording_of(["first", "second", "third"])
    total = [200 * MIB, 0, 0, 0]
    made.checkpoint(0, [(first, 100 * MIB), (second, 20 * MIB)], total, full=True)
    made.checkpoint(1, [(first, 100 * MIB), (third, 90 * MIB)], total, full=True)
    made.checkpoint(3, [(first, 100 * MIB), (third, 5 * MIB)], total, full=True)
    # Not full, so holders that it omits were empty.
    made.checkpoint(5, [(first, 100 * MIB)], total)
    made.checkpoint(6, [(first, 100 * MIB), (second, 60 * MIB)], total, full=True)
    made.checkpoint(7, [(first, 100 * MIB), (third, 55 * MIB)], total, full=True)
    made.checkpoint(8, [(first, 100 * MIB), (second, 40 * MIB)], total, full=True)
    made.checkpoint(9, [(first, 100 * MIB), (second, 40 * MIB)], total)
    assert holders_over_time(made, show) == {
        "first": [100] * 8,
        # Interpolated, but at most the smallest listed value: 5.
        "second": [20, 16, 5, 0, 60, 50, 40, 40],
        "third": [0, 90, 5, 0, 27.5, 55, 0, 0],
        "all others": [80, 0, 90, 100, 12.5, 0, 60, 60],
    }


def window(first: float, last: float) -> str:
    """The address parameter of a window, in seconds of the recording."""
    start = int(report_data.START_MS)
    return f"{start + int(1000 * first)}-{start + int(1000 * last)}"


@pytest.mark.parametrize("by", ["function", "line", "file", "module", "stack"])
def test_the_table_of_a_window_adds_up_without_counts(show, by):
    made = report_data.small()
    made.json["processes"].append({**made.json["processes"][0], "pid": 4243, "relation": "child"})
    made.row(made.columns["row_node"][0], 900 * MIB, process=1)
    page = show(made, f"view=table&table={by}&mode=window_end&window={window(18, 30)}&sort=3d")
    settled(page)
    rows = [
        row.split("\t") for row in page.locator(".virtual tbody tr:not(.gap)").all_inner_texts()
    ]
    figures = 2 if by in ("function", "line", "stack") else 1
    own = {row[0]: row[figures] for row in rows}
    assert own["[stacks that the checkpoint does not name]"] == "58.4 MiB"
    sum_mib = sum(float(text.split()[0]) for text in own.values() if text != "0 bytes")
    assert sum_mib == pytest.approx(10 + 6.7 * 28 + 40 + 300, abs=0.2)
    # Counts are unknown: neither shown as 0 nor used for sorting.
    heads = page.locator("th", has_text="locks")
    assert heads.count() == (1 if by == "stack" else 2)
    for head in heads.all():
        assert "no counts of blocks" in head.get_attribute("title")
        assert head.locator("button").count() == 0
    assert {row[figures + 1] for row in rows} == {"–"}
    assert page.locator("th[aria-sort=descending]").count() == 1

    others = page.locator(".virtual tbody tr", has_text="[stacks that")
    others.dblclick()
    assert page.locator(".path").inner_text() == "all › [stacks that the checkpoint does not name]"
    page.locator("details.behind > summary").click()
    page.locator("details.behind table").wait_for()
    assert "\t58.4 MiB\t–\t" in page.locator("details.behind tbody").inner_text()
