"""Tables: of holders, of leaks, of ranks and processes."""

import pytest
import report_data
import schemas
from report_browser import VIEWS, address, change, choice, settled, total_mib
from report_data import MIB


def test_other_processes_are_shown_on_request(show):
    made = report_data.small()
    made.json["processes"].append(
        {**made.json["processes"][0], "pid": 4243, "relation": "child", "bundle": "worker"}
    )
    leaf = made.columns["row_node"][0]
    made.row(leaf, 900 * report_data.MIB, process=1)
    page = show(made, "view=flame")
    assert total_mib(page) == 750
    for wanted, mib in [("python3 4243", 900), ("all", 1650), ("python3 4242", 750)]:
        choice(page, "Process").select_option(label=wanted)
        settled(page)
        assert total_mib(page) == mib, wanted

    page = show(made)
    assert "900" not in page.locator("#panel").inner_text()


def test_every_chart_has_a_table(show):
    page = show(report_data.small(), "view=timeline")
    settled(page)
    for summary in page.locator("details.behind > summary").all():
        summary.click()
    settled(page)
    tables = [
        table.locator("tbody tr").count() for table in page.locator("details.behind table").all()
    ]
    assert tables == [61, 61, 16, 4]
    change(page, view="flame")
    page.locator("details.behind > summary").click()
    page.locator("details.behind table").wait_for()
    rows = page.locator("details.behind tbody tr").all_inner_texts()
    assert rows[0].split("\t")[:3] == ["zoomed", "all", "750.0 MiB"]
    page.get_by_role("button", name="<module> train.py:56").click()
    assert page.locator(".path").inner_text() == "all › <module>"


def test_the_table_sorts_and_filters(show):
    page = show(report_data.small(), "view=table")
    assert "double click on a row" in page.locator("#panel > p.quiet").inner_text()
    rows = page.locator(".virtual tbody tr:not(.gap)")
    assert rows.first.inner_text().split("\t") == [
        "PyArray_NewFromDescr", "numpy/core/_multiarray.so", "400.0 MiB", "16", "400.0 MiB", "16",
    ]  # fmt: skip
    page.get_by_role("button", name="Total", exact=True).click()
    assert rows.first.inner_text().split("\t")[:2] == ["<module>", "/srv/train/train.py"]
    heading = page.locator("th", has_text="Total").first
    assert heading.get_attribute("aria-sort") == "descending"
    heading.get_by_role("button", name="Total", exact=True).click()
    assert heading.get_attribute("aria-sort") == "ascending"
    # A recursion is counted once.
    page.get_by_role("searchbox").fill("walk")
    settled(page)
    assert rows.all_inner_texts() == ["walk\t/srv/train/walk.py\t7.0 MiB\t7\t7.0 MiB\t7"]
    page.get_by_role("searchbox").fill("")
    choice(page, "By").select_option("file")
    settled(page)
    assert rows.first.inner_text().split("\t")[0].endswith("_multiarray.so")
    choice(page, "By").select_option("module")
    settled(page)
    totals = {row.split("\t")[0]: row.split("\t")[3] for row in rows.all_inner_texts()}
    assert totals["the program"] == "750.0 MiB" and totals["numpy"] == "400.0 MiB"
    choice(page, "By").select_option("stack")
    settled(page)
    assert rows.count() == 6
    page.locator(".virtual").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "zoom=" in address(page) and "view=flame" in address(page)


def test_every_frame_of_the_executable_is_the_programs(show):
    made = report_data.Recording()
    made.json["meta"]["executable"] = "/srv/leak"
    start = made.location("_start", "", 0, "/srv/leak")
    locations = [
        start,
        made.location("main", "/srv/leak.cpp", 3, "/srv/leak", report_data.OWN),
        made.location("malloc", "", 0, "/lib/libc.so.6", report_data.ALLOCATOR),
    ]
    made.row(made.stack(locations), MIB)
    page = show(made, "view=flame")
    part_of = "([location]) => report.partOf(report.data, location)"
    assert page.evaluate(part_of, [start]) == "the program"
    assert page.locator("ul.legend").inner_text().split() == ["the", "program", "others"]
    made.json["meta"]["executable"] = None
    assert show(made).evaluate(part_of, [start]) == "leak"


def test_leaks_and_fragmentation(show):
    page = show(report_data.small(), "view=leaks")
    text = page.locator("#panel").inner_text()
    at_this_rate = "At this rate --limit of 512.0 MiB"
    assert f"{at_this_rate} would have been reached about 5.0 s later." in text
    row = page.locator("tbody tr").first
    # Named by the program's own line, although a library's is more inner.
    assert row.inner_text().startswith("make_batch train.py:21")
    assert "384.0 MiB\t6.4 MiB/s\t384.0 MiB\thigh (0.97)\t100.0 %\t58.0 s\theap" in row.inner_text()
    row.locator("summary").click()
    assert row.locator(".stack li").all_inner_texts() == [
        "malloc libc.so.6",
        "ones numeric.py:21",
        "make_batch train.py:21",
    ]
    change(page, view="fragmentation")
    text = page.locator("#panel").inner_text()
    for words in [
        "malloc_trim",
        "held by the allocator\n 470.0 MiB",
        "12.8 % of it is free",
        "the largest has 8.0 MiB",
    ]:
        assert words in text, words
    widths = [box.bounding_box()["width"] for box in page.locator(".amount").all()[:3]]
    assert widths == sorted(widths, reverse=True) and widths[2] / widths[0] == pytest.approx(
        410 / 470, abs=0.01
    )
    assert "mappings of their own" not in text  # all of the heap lies in its areas
    made = report_data.small()
    made.json["fragmentation"]["heap"]["live_bytes"] += 90 * MIB
    text = show(made, "view=fragmentation").locator("#panel").inner_text()
    assert "Beside them, large blocks of 90.0 MiB in all have mappings of their own." in text
    made = report_data.small()
    made.json["leaks"] |= {"checkpoints": 3, "detected": False, "leaks": []}
    assert (
        "3 checkpoints, but leak detection needs 8"
        in show(made, "view=leaks").locator("#panel").inner_text()
    )


def test_the_table_of_leaks_fits_900_pixels(show):
    made = report_data.small()
    for leak in made.json["leaks"]["leaks"]:
        leak |= {"estimated": True, "live_bytes": 1023 * MIB}
        leak["stack"][-1]["function"] = "ResidualAttentionBlockWithRotaryEmbedding.forward"
    page = show(made, "view=leaks", size=(900, 700))
    wide = page.evaluate(
        "[...document.querySelectorAll('#panel .scrolls')].map((one) => one.scrollWidth - one.clientWidth)"
    )
    assert wide and max(wide) == 0, wide


def test_leaks_of_a_live_process_and_of_one_at_its_limit(show):
    made = report_data.small()
    row = made.json["leaks"]["leaks"][0]
    malloc = row["stack"][0]
    string, handle, main = (
        {**malloc, "function": name, "module": "/srv/leak", "file": "leak.cpp"}
        for name in ["std::string::string", "handle", "main"]
    )
    made.json["leaks"]["leaks"] = [
        {**row, "confidence": confidence, "stack": [malloc, string, handle, main]}
        for confidence in (0.8, 0.79, 0.5, 0.49)
    ]
    made.json["meta"]["live"] = True
    panel = show(made, "view=leaks").locator("#panel")
    assert "--limit of 512.0 MiB is reached in about 5.0 s." in panel.inner_text()
    rows = panel.locator("tbody").first.locator("tr").all_inner_texts()
    for row, word in zip(rows, ["high (0.80)", "medium (0.79)", "medium (0.50)", "low (0.49)"]):
        # Named as in the commands: not by inlined functions of the C++ library.
        assert row.startswith("handle leak.cpp") and f"\t{word}\t" in row
    assert len(rows) == 4

    made.json["meta"]["live"] = False
    made.json["leaks"]["limit"]["reached_in_seconds"] = 0.033
    text = show(made, "view=leaks").locator("#panel").inner_text()
    assert "--limit of 512.0 MiB is reached." in text and "At this rate" not in text


def test_a_job_with_unknown_ranks(show):
    """ranks.json of a merged bundle is damaged: the rest is shown."""
    made = report_data.small()
    made.json["job"] = {}
    page = show(made)
    assert page.locator("#ranks").count() == 0
    for view in VIEWS:
        change(page, view=view)
        assert page.locator("#panel").inner_text().strip() != ""


def test_the_largest_arrays_and_their_holders(show):
    page = show(report_data.small())
    card = page.locator("#objects")
    rows = card.locator("tbody tr")
    cells = [cell.strip() for cell in rows.nth(0).locator("td").all_inner_texts()]
    assert cells[:5] == ["320.0 MiB", "torch.Tensor", "10×8388608", "torch.float32", "cpu"]
    assert cells[5] == "history[3] in train.py:40 train, in a reference cycle"
    # Named by the innermost Python line. The library's own frame is inside it.
    assert cells[6] == "train.py:21 make_batch"
    rows.nth(0).locator("summary").click()
    lines = rows.nth(0).locator(".stack li").all_inner_texts()
    assert lines == [
        "libtorch_cpu.so THPVariable_ones",
        "train.py:21 make_batch",
        "train.py:56 <module>",
    ]
    cells = rows.nth(1).locator("td").all_inner_texts()
    assert cells[2] == "scalar" and cells[5:] == ["no referrer found", "not known"]
    about = card.inner_text()
    assert "70 in all hold 400.0 MiB; these are the largest." in about
    assert "The search ran out of time, so some may be missing." in about
    # Without any there is no table of them.
    assert show(report_data.empty()).locator("#objects").count() == 0


def test_ranks_can_be_selected_and_the_first_to_fail_is_named(show):
    """The chart of all ranks merges equal stacks. A rank's button shows its own."""
    made = report_data.Recording()
    stack = made.stack([made.location("main"), made.location("fill")])
    ranks = []
    for rank in range(3):
        made.row(stack, (rank + 1) * MIB, process=rank)
        trouble = {
            "kind": "ended",
            "timestamp": 1.5,
            "seconds_after_first": 0,
            "what": "malloc was refused 64.0 MiB",
        }
        ranks.append(
            {
                **{"rank": rank, "local_rank": rank, "host": "box", "pid": 100 + rank},
                **{"program": "python3", "trigger": "killed", "verdict": "killed_externally"},
                **{"summary": None, "outcome": "signal 15", "shift_seconds": 0},
                **{"ended_after_rank": None if rank == 1 else 1, "further_processes": 0},
                **{"start_timestamp": 1, "end_timestamp": 2, "bundle": f"ranks/{rank}"},
                **{"live_bytes": (rank + 1) * MIB, "peak_bytes": (rank + 1) * MIB},
                "trouble": trouble if rank == 1 else None,
            }
        )
    made.json["processes"] = None
    made.json["job"] = {
        **{"schema_version": 1, "job_id": "7", "world_size": 4, "ranks_are": "recorded"},
        "clock": {"aligned_by": "mark", "mark": "step 0", "hosts": 2},
        "first": {"rank": 1, "kind": "ended", "timestamp": 1.5, "why": "malloc was refused"},
        **{"missing": [3], "left_out": [], "ranks": ranks},
    }
    schemas.check("report", made.described())
    page = show(made)
    card = page.locator("#ranks").text_content()
    assert "3 ranks of 4 of 7" in card and "1 (first)" in card
    assert "ended after rank 1: signal 15" in card and "There is no bundle of rank 3." in card
    assert "the mark “step 0” of each rank is one moment" in card

    change(page, view="flame")
    assert total_mib(page) == 6
    change(page, view="overview")
    page.locator("#ranks button").nth(2).click()
    settled(page)
    assert total_mib(page) == 3
    assert choice(page, "Rank").input_value() == "2"
