"""The flame graph: sizes, modes, filters, search, zoom, mouse and keyboard."""

import report_data
from report_browser import LEAK, address, box_of, change, choice, reads, settled, total_mib, tree
from report_data import MIB


def test_the_flame_graph_adds_up(show):
    page = show(report_data.small(), "view=flame")
    whole, blocks, below = tree(page)
    # All spaces except torch, which is part of cuda.
    assert whole == (384 + 16 + 3 + 7 + 40 + 300) * MIB and blocks == 336
    assert set(below) == {"<module>", "worker_loop"}
    main = below["<module>"][2]["main"]
    assert main[0] == 700 * MIB
    # Two lines of a function are one frame. Interpreter and allocator have none.
    assert main[2]["make_batch"][0] == 400 * MIB
    assert set(main[2]["make_batch"][2]) == {"PyArray_NewFromDescr", "ones"}

    where = "(name) => { const { data } = report; const at = data.place_function.findIndex((text) => data.strings[text] === name); return report.frameWhere(data, at, report.state); }"
    assert (
        page.evaluate(where, "make_batch") == "train.py"
        and page.evaluate(where, "main") == "train.py:48"
    )

    change(page, lines="lines")
    assert total_mib(page) == 750
    lines = page.evaluate(
        """() => { const { tree } = report.views.flame.canvas; let node = 0;
                   for (let i = 0; i < 2; ++i) node = tree.children(node, "bytes")[0];
                   return tree.children(node, "bytes").map((child) => report.locationLabel(report.data, tree.location[child])); }"""
    )
    assert lines == [
        "make_batch  train.py:21",
        "at::empty_cuda  libtorch_cuda.so",
        "make_batch  train.py:22",
    ]


def test_inverted_it_begins_with_the_allocation_site(show):
    page = show(report_data.small(), "view=flame&inverted=1")
    whole, blocks, below = tree(page)
    assert whole == 750 * MIB and blocks == 336
    assert below["PyArray_NewFromDescr"][0] == 400 * MIB
    assert below["PyArray_NewFromDescr"][2]["make_batch"][0] == 384 * MIB
    assert below["PyArray_NewFromDescr"][2]["ones"][2]["make_batch"][2]["main"][0] == 16 * MIB
    # A recursion is a chain, and the stack below it ends at the outermost frame.
    chain = below["walk"][2]["walk"][2]["walk"][2]
    assert list(chain) == ["<module>"] and chain["<module>"][2] == {}
    page.get_by_label("inverted").uncheck()
    assert set(tree(page)[2]) == {"<module>", "worker_loop"}


def test_modes(show):
    page = show(report_data.small(), "view=flame")
    for mode, mib, blocks in [
        ("peak", 766, 336),
        ("total", 384 + 64 + 5 + 7 + 40 + 300, 12 + 16 + 900 + 7 + 10 + 3),
        ("never_freed", 384 + 7 + 40 + 300, 12 + 7 + 10 + 3),
        ("temporary", 32, 8),
    ]:
        choice(page, "Show").select_option(mode)
        settled(page)
        figures = tree(page)
        assert (figures[0] / MIB, figures[1]) == (mib, blocks), mode
    choice(page, "Size by").select_option("count")
    assert "by=count" in address(page)


def test_a_mode_without_data_explains_why(show):
    page = show(report_data.hostile(), "view=flame&process=")
    option = page.locator("option[value=temporary]")
    assert option.is_disabled()
    assert "needs a recording in exact mode" in option.inner_text()
    assert "about 91.0 MiB" in page.locator(".about").inner_text()


def test_filters(show):
    page = show(report_data.small(), "view=flame")
    for label, wanted, mib in [
        ("Space", "map", 40),
        ("Space", "torch", 120),
        ("Device", "cuda:0", 300),
        ("Threads", "worker", 40),
        ("Label", "epoch 1", 384),
    ]:
        select = choice(page, label)
        select.select_option(label=wanted)
        settled(page)
        assert total_mib(page) == mib, wanted
        select.select_option("")
    assert total_mib(page) == 750


def test_frames(show):
    page = show(report_data.small(), "view=flame")
    choice(page, "Frames").select_option("python")
    settled(page)
    # Of native functions only the program's own.
    whole, _, below = tree(page)
    assert whole == 750 * MIB and set(below) == {"<module>", "worker_loop"}
    assert below["<module>"][0] == 710 * MIB and below["worker_loop"] == [40 * MIB, 10, {}]
    assert below["<module>"][2]["main"][2]["make_batch"][2] == {"ones": [16 * MIB, 4, {}]}
    page.get_by_label("imports").check()
    assert "_find_and_load" in tree(page)[2]["<module>"][2]
    choice(page, "Frames").select_option("native")
    page.get_by_label("allocator").check()
    assert tree(page)[2]["worker_loop"][2] == {"malloc": [40 * MIB, 10, {}]}
    assert "_PyEval_Vector" in tree(page)[2]


def test_search_shows_the_share(show):
    page = show(report_data.small(), "view=flame")
    page.keyboard.press("/")
    page.keyboard.type("numpy")
    assert page.locator(".matched").inner_text() == "matched 53.3 %: 400.0 MiB"
    page.get_by_label("inverted").check()
    assert page.locator(".matched").inner_text() == "matched 53.3 %: 400.0 MiB"
    page.get_by_role("searchbox").fill(r"^walk$|worker")
    assert page.locator(".matched").inner_text() == "matched 6.3 %: 47.0 MiB"
    # Not a valid expression: searched for literally.
    page.get_by_role("searchbox").fill("empty(")
    assert page.locator(".matched").inner_text() == "matched 0.0 %: 0 bytes"
    page.get_by_role("searchbox").fill("")
    assert page.locator(".matched").inner_text() == ""


def test_zoom_by_mouse_and_back(show):
    page = show(report_data.small(), "view=flame")
    at = box_of(page, "make_batch")
    page.mouse.move(at["x"], at["y"])
    reads(page, ".about", "^make_batch")
    page.mouse.click(at["x"], at["y"])
    settled(page)
    path = page.get_by_role("navigation", name="Frames around the zoomed one")
    assert path.inner_text() == "all › <module> › main › make_batch"
    # It fills the width now, and the address restores it.
    zoomed = page.evaluate(
        "() => { const { canvas } = report.views.flame; return [canvas.levels[3][0].width, canvas.width]; }"
    )
    assert zoomed[0] == zoomed[1]
    again = show(report_data.small(), address(page))
    assert "make_batch  400.0 MiB (53.3 %) in 16 blocks" in again.locator(".about").inner_text()

    path.get_by_role("button", name="main").click()
    assert path.inner_text() == "all › <module> › main"
    page.go_back()
    reads(page, ".path", "make_batch$")
    page.get_by_role("button", name="Show all").click()
    assert "zoom" not in address(page)


def test_a_deep_zoom_scrolls_into_view(show):
    made = report_data.small()
    frames = [
        made.location(f"level {i}", "/srv/deep.py", i, kind=report_data.PYTHON) for i in range(500)
    ]
    made.row(made.stack(frames), 900 * MIB)
    page = show(made, "view=flame")
    change(page, zoom=".".join(map(str, frames[:400])))
    again = show(made, address(page))
    settled(again)
    for one in (page, again):
        at = box_of(one, "level 399")
        drawn = one.locator("div.flame").bounding_box()
        assert drawn["y"] < at["y"] < drawn["y"] + drawn["height"]
    # The path to it begins at the outermost frame, and is scrolled so that its end is visible.
    path = page.locator(".path")
    assert path.inner_text().startswith("all › level 0 › level 1 › level 2 ›")
    box, last = path.bounding_box(), path.locator("[aria-current]").bounding_box()
    assert box["height"] < 80 and box["y"] <= last["y"] < box["y"] + box["height"]
    page.get_by_role("button", name="Show all").click()
    settled(page)
    assert page.evaluate("report.views.flame.canvas.element.scrollTop") == 0


def test_a_long_name_does_not_move_the_drawing(show):
    """Otherwise describing a frame would move another one under the mouse."""
    page = show(report_data.hostile(), "view=flame&process=")
    before = page.locator("div.flame").bounding_box()
    at = page.evaluate("""() => { const box = report.views.flame.canvas.element.getBoundingClientRect();
                                  return [box.left + 40, box.top + 30]; }""")
    page.mouse.move(*at)
    reads(page, ".about", "^xxx")
    assert page.locator("div.flame").bounding_box() == before


def test_the_flame_graph_by_keyboard(show):
    page = show(report_data.small(), "view=flame")
    # From the top of the page by keyboard only: past the controls into the chart.
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "flame":
            break
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]:
        page.keyboard.press(key)
    said = page.locator("#announcement")
    assert said.inner_text().startswith("at::empty_cuda: 300.0 MiB (40.0 %)")
    page.keyboard.press("Enter")
    assert page.locator(".path").inner_text() == "all › <module> › main › at::empty_cuda"
    page.keyboard.press("Backspace")
    assert page.locator(".path").inner_text() == "all › <module> › main"
    page.keyboard.press("Home")
    assert "zoom" not in address(page)
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_1_mib_name_does_not_stop_a_search(show):
    """The regular expression takes quadratic time, so names are cut first."""
    made = report_data.small()
    made.row(made.stack([made.location("a" * MIB)]), MIB)
    page = show(made, "view=flame&search=a*;|a{30}")
    assert "1.0 MiB" in page.locator(".matched").inner_text()


def test_a_recursion_is_one_holder_at_all_depths(show):
    """As in `oomrec show`. Functions that a common one calls in turn stay apart."""
    made = report_data.Recording()
    program = "/srv/walk"

    def native(name: str, line: int) -> int:
        return made.location(name, "/srv/walk.c", line, program, report_data.OWN)

    def python(name: str, line: int) -> int:
        return made.location(name, "/srv/walk.py", line, kind=report_data.PYTHON)

    main = native("main", 90)
    walks = [native("walk", 10), native("walk", 11)]  # two places of the call
    walk, hold = native("walk", 12), native("hold", 5)
    for depth in range(40):
        calls = [walks[at * 7 % 3 % 2] for at in range(depth)]
        made.row(made.stack([main, *calls, walk, hold]), MIB)
    call = native("call", 2)
    for caller in (native("one", 1), native("two", 3)):
        made.row(made.stack([main, caller, call, hold]), 9 * MIB)
    module, even, odd, keep = (python(name, 1) for name in ("<module>", "even", "odd", "keep"))
    for depth in range(2, 22, 2):
        made.row(made.stack([module, *[even, odd] * depth, keep]), 3 * MIB)
    page = show(made, size=(1000, 800))
    figures = page.locator(".holders summary .figure").all_inner_texts()
    assert figures == ["40.0 MiB", "30.0 MiB", "9.0 MiB", "9.0 MiB"]


def code_beside(page) -> list[tuple[int, str, bool]]:
    """The lines of source code beside the flame graph: number, text, whether it is the frame's."""
    lines = page.locator(".code-pane li")
    return [
        (
            int(line.get_attribute("value")),
            line.inner_text(),
            line.get_attribute("aria-current") == "true",
        )
        for line in lines.all()
    ]


def test_source_code_is_in_the_boxes_and_beside_them(show, oomrec, tmp_path):
    (tmp_path / "leak.py").write_text(LEAK)
    bundle = oomrec("run", "--limit", "96M", "--", "python3", "leak.py").bundles()[0]
    html = oomrec("flamegraph", bundle, "-o", "-").stdout
    page = show(html)
    assert page.locator(".code-pane").inner_text().startswith("Source code of the frame under")
    # One function of two lines: both of them. It is the one of the two that allocated 3 MiB.
    at = box_of(page, "make_batch")
    page.mouse.move(at["x"], at["y"])
    reads(page, ".code-pane .where", "leak.py, the lines of make_batch|leak.py:4")
    change(page, lines="lines")
    page.mouse.move(at["x"], at["y"] - 1)
    reads(page, ".code-pane .where", "leak.py:4")
    source = LEAK.splitlines()
    assert code_beside(page) == [
        (number, text, number == 4) for number, text in enumerate(source, 1)
    ]
    # In the box: the name, the line, its text.
    drawn = page.evaluate("""() => {
      const {canvas} = report.views.flame, drawn = [];
      const context = canvas.canvas.getContext("2d"), fill = context.fillText;
      context.fillText = (text, ...at) => { drawn.push(text); fill.call(context, text, ...at); };
      canvas.paint();
      delete context.fillText;
      return drawn;
    }""")
    at = drawn.index("leak.py:4")
    assert drawn[at - 1 : at + 2] == ["make_batch", "leak.py:4", "return bytearray(3 << 20)"], drawn


def test_without_source_code_there_is_no_pane(show):
    page = show(report_data.small(), "view=flame")
    assert page.locator(".code-pane").count() == 0


def test_it_opens_at_a_label_and_its_nested_labels(show, template):
    recording = report_data.small()
    recording.json["labels"] = ["", "epoch 1", "epoch 1 / step 2"]
    page = show(report_data.page(template, recording, view="flame", label="epoch 1"))
    assert choice(page, "Label").locator("option:checked").inner_text() == "epoch 1"
    held = """() => {
      const {bytes} = report.weights(report.data, report.state);
      const sums = new Map();
      bytes.forEach((value, row) => {
        const label = report.data.row_label[row];
        sums.set(label, (sums.get(label) ?? 0) + value);
      });
      return [0, 1, 2].map((label) => sums.get(label) ?? 0);
    }"""
    without, outer, inner = page.evaluate(held)
    assert without == 0 and outer > 0 and inner > 0
    choice(page, "Label").select_option(label="all")
    settled(page)
    assert page.evaluate(held)[0] > 0 and "label=" in address(page)
