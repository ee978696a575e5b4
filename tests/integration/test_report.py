"""`oomrec report`, `flamegraph` and `table`: the files they write, without a browser."""

import os
import re
import stat
import subprocess
import sys

import pytest
from python_programs import trains
from report_page import Page
from schemas import check


@pytest.fixture
def bundle(oomrec, tmp_path):
    (tmp_path / "leak.py").write_text(trains(3, 500, threads=2))
    run = oomrec("run", "--mode", "exact", "--limit", "96M", "--", "python3", "leak.py")
    return run.bundles()[0]


def page_of(oomrec, *words) -> Page:
    run = oomrec("report", *words, "-o", "-")
    assert run.exit_code == 0 and run.stderr == "", run.stderr
    return Page(run.stdout)


def without_offsets(value):
    """Of frames that look alike each command has the offset of the one that it reads first."""
    if isinstance(value, dict):
        return {key: without_offsets(of) for key, of in value.items() if key != "offset"}
    return [without_offsets(each) for each in value] if isinstance(value, list) else value


def test_figures_match_show_stats_and_tree(oomrec, bundle):
    page = page_of(oomrec, bundle)
    show, stats = oomrec.json("show", bundle), oomrec.json("stats", bundle)
    check("report", {**page.json, "arrays": {}, "strings": []})

    for space in page.json["spaces"]:
        if space["name"] == "python":  # it is part of `map`, and has no totals
            assert space["live_bytes"] == 0
            continue
        of_show = show["spaces"][space["name"]]
        assert {key: space[key] for key in of_show if key != "reserved_bytes"} == {
            key: value for key, value in of_show.items() if key != "reserved_bytes"
        }
    adding_up = {space["name"] for space in page.json["spaces"] if space["adds_up"]}
    at_end = oomrec.json("tree", bundle)["root"]
    rows = [row for row in page.rows() if row[0] in adding_up]
    assert sum(live_bytes for _, live_bytes, _, _ in rows) == at_end["bytes"]
    assert sum(live_count for _, _, live_count, _ in rows) == at_end["count"]
    at_peak = oomrec.json("tree", "--at", "peak", "--space", "heap", bundle)["root"]
    heap = [space["name"] for space in page.json["spaces"]].index("heap")
    of_heap = [row for row, space in enumerate(page["row_space"]) if space == heap]
    assert sum(page["row_peak_bytes"][row] for row in of_heap) == at_peak["bytes"]
    by_function = sum(row["bytes"] for row in stats["top_by_bytes"])
    assert sum(page["row_total_bytes"]) >= by_function > 0
    largest = max(page.rows(), key=lambda row: row[1])
    assert "make_batch" in page.functions(largest[3])

    for key in ("request", "crash", "child", "processes", "others"):
        assert page.json[key] == show[key]
    assert {k: page.json["verdict"][k] for k in show["verdict"]} == show["verdict"]
    assert page.json["verdict"]["is_memory"] is True
    assert page.json["limit"] == show["limit"]
    for key in ("leaks", "fragmentation"):
        assert without_offsets(page.json[key]) == without_offsets(oomrec.json(key, bundle))
    meta = page.json["meta"]
    assert (meta["pid"], meta["arguments"]) == (show["process"]["pid"], show["process"]["argv"])
    assert (meta["program"], meta["redacted"], meta["live"]) == ("leak.py", False, False)
    assert [row["rule"] for row in page.json["advice"]] == [row["rule"] for row in show["advice"]]


FAMILY = """\
import os, subprocess, sys
kept = bytearray(50_000_000)
if len(sys.argv) == 1:
    worker = subprocess.Popen([sys.executable, "family.py", "worker"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    print(os.getpid(), worker.stdout.readline().strip(), flush=True)
    sys.stdin.read()
else:
    more = bytearray(30_000_000)
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def test_the_report_has_the_programs_other_processes(oomrec, tmp_path):
    """With the data of their own bundles, by their index among the page's processes."""
    (tmp_path / "family.py").write_text(FAMILY)
    family = oomrec.start("run", "--quiet", "--", sys.executable, "family.py", stdin=-1)
    parent, worker = map(int, family.stdout.readline().split())
    of_worker = oomrec.json("dump", worker)["bundle"]
    of_parent = oomrec.json("dump", parent)["bundle"]

    page = page_of(oomrec, of_parent)

    number_of = {row["pid"]: number for number, row in enumerate(page.json["processes"])}
    held = dict.fromkeys(page["row_process"], 0)
    for row, process in enumerate(page["row_process"]):
        if page.json["spaces"][page["row_space"][row]]["adds_up"]:
            held[process] += page["row_resident_bytes"][row]  # as `tree` weighs
    assert held == {
        number_of[parent]: oomrec.json("tree", of_parent)["root"]["bytes"],
        number_of[worker]: oomrec.json("tree", of_worker)["root"]["bytes"],
    }
    assert held[number_of[worker]] > 80_000_000 > held[number_of[parent]] > 50_000_000
    largest = max(page.rows(), key=lambda row: row[1])
    assert "<module>" in page.functions(largest[3])

    redacted = page_of(oomrec, "--redact", of_parent)
    assert set(redacted["row_process"]) == {number_of[parent]}


def test_arrays_are_consistent(oomrec, bundle):
    page = page_of(oomrec, bundle)
    lengths = {name: row["length"] for name, row in page.json["arrays"].items()}
    for family in ("row_", "node_", "place_", "t_"):
        of_family = {n for name, n in lengths.items() if name.startswith(family)}
        assert len(of_family) == 1 and of_family != {0}, family
    parents = page["node_parent"]
    assert all(parent < node for node, parent in enumerate(parents) if node)
    assert max(page["row_node"]) < len(parents)
    assert max(page["node_place"]) < lengths["place_function"]
    strings = page.json["strings"]
    assert strings[0] == "" and len(strings) == len(set(strings))
    assert max(page["place_function"]) < len(strings)
    assert max(page["row_group"]) < len(page.json["groups"])
    assert set(page["row_label"]) == {0} and page.json["labels"] == [""]
    first = page["c_first"]
    assert first[0] == 0 and first[-1] == lengths["c_row"] == lengths["c_bytes"]
    assert list(first) == sorted(first) and len(first) == lengths["c_time"] + 1
    assert len(page["c_full"]) == lengths["c_time"] and page["c_full"][-1] == 0
    last = range(first[-2], first[-1])  # at the end: everything
    assert sum(page["c_bytes"][i] for i in last) == sum(page["row_live_bytes"])
    times = list(page["t_time"])
    assert times == sorted(times) and len(page.json["refusals"]) >= 1
    assert times[0] - 1000 <= page.json["refusals"][0]["time_ms"] <= times[-1] + 1000


def test_output_paths(oomrec, bundle, tmp_path):
    """A single private file that replaces an earlier report, but no other file."""
    pid = oomrec.json("show", bundle)["process"]["pid"]
    run = oomrec("report", bundle)
    file = tmp_path / f"oomrec-report-leak.py-{pid}.html"
    assert run.exit_code == 0 and run.stdout.startswith(f"{file.name} (")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Page(file.read_text()).json["meta"]["pid"] == pid

    file.write_text(file.read_text().replace("</html>", "<!-- old --></html>"))
    assert oomrec("report", bundle).exit_code == 0
    assert "<!-- old -->" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    page = file.read_text()
    (tmp_path / "elsewhere.html").write_text(page)
    file.unlink()
    file.symlink_to("elsewhere.html")
    assert oomrec("report", bundle).exit_code == 2
    assert (tmp_path / "elsewhere.html").read_text() == page
    file.unlink()

    file.write_text("notes")
    again = oomrec("report", bundle)
    assert again.exit_code == 2 and again.stderr.splitlines() == [
        f"oomrec report: {file.name} already exists",
        "  Overwrite it with --force, or name another file: -o FILE",
    ]
    file.write_text("old")
    assert oomrec("report", "--force", bundle).exit_code == 0
    assert file.read_text() != "old"
    (tmp_path / "named.html").write_text("x" * 10_000_000)
    result = oomrec.json("report", bundle, "-o", "named.html")
    check("report_command", result)
    assert result["file"] == str(tmp_path / "named.html")
    assert result["bytes"] == (tmp_path / "named.html").stat().st_size < 10_000_000

    nowhere = oomrec("report", bundle, "-o", "no/such/location.html")
    assert nowhere.exit_code == 2 and "No such file or directory" in nowhere.stderr
    full = oomrec("report", bundle, "-o", "/dev/full")
    assert full.exit_code == 2 and "No space left on device" in full.stderr
    assert os.path.exists("/dev/full")


@pytest.mark.parametrize(
    "words, view",
    [
        (["report"], ""),
        (["flamegraph"], "flame"),
        (["table"], "table"),
        (["report", "--view", "timeline"], "timeline"),
        (["table", "--view", "overview"], "overview"),
    ],
)
def test_the_report_opens_at_a_view(oomrec, bundle, words, view):
    run = oomrec(*words, bundle, "-o", "-")
    assert re.findall(r'<html [^>]*data-view="([^"]*)"', run.stdout) == [view]


def test_a_page_loads_nothing_from_elsewhere(oomrec, bundle):
    """No element or style refers to another location, and the policy forbids it anyway."""
    html = page_of(oomrec, bundle).html
    assert "default-src 'none'" in html
    assert not re.search(
        r"""<(script|img|iframe|link|object)[^>]*\s(src|href)=["']?(https?:|//)""", html
    )
    assert "@import" not in html and "OOMREC_" not in html


def test_opening_needs_a_display(oomrec, bundle, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "xdg-open").write_text('#!/bin/sh\necho "$1" > "$OUT"\n')
    (tools / "xdg-open").chmod(0o755)
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "OUT": tmp_path / "opened"}
    without = oomrec("report", bundle, "--open", "-o", "a.html",
                     env={**environment, "DISPLAY": None, "WAYLAND_DISPLAY": None})  # fmt: skip
    assert without.exit_code == 0 and f"file://{tmp_path}/a.html" in without.stderr
    assert not (tmp_path / "opened").exists()
    oomrec("report", bundle, "--open", "-o", "a.html", env={**environment, "DISPLAY": ":9"})
    assert (tmp_path / "opened").read_text() == f"{tmp_path}/a.html\n"


def test_a_report_of_a_running_process(oomrec, tmp_path):
    """Its recording is read while it runs, so there is no verdict."""
    program = "import sys; kept = bytearray(50 << 20); print('up', flush=True); sys.stdin.read()"
    process = oomrec.start(
        "run", "--mode", "exact", "--", "python3", "-c", program, stdin=subprocess.PIPE
    ).once("up")
    (session,) = oomrec.session_dir.rglob("*.session")
    page = page_of(oomrec, session)
    assert page.json["meta"]["live"] is True and page.json["verdict"] is None
    assert page.json["request"] is None and page.json["environment"] is None
    assert sum(page["row_live_bytes"]) > 50 << 20
    oomrec.finish(process, input="")


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;title\x07\x1b[31m",
    "a'\"&b",
    "\udcff\udcfe",
    "n" * 60_000,
]


def test_a_hostile_recording_is_harmless(oomrec, tmp_path):
    """Names with markup, terminal escapes and invalid UTF-8."""
    program = tmp_path / "hostile.py"
    program.write_text(
        "import sys\n"
        f"names = {HOSTILE!r}\n"
        "kept = []\n"
        "for number, name in enumerate(names):\n"
        "    code = compile('def f():\\n    return bytearray(1 << 20)\\n', 'x' + name, 'exec')\n"
        "    space = {}\n"
        "    exec(code, space)\n"
        "    space['f'].__code__ = space['f'].__code__.replace(co_name=name, co_qualname=name)\n"
        "    kept.append(space['f']())\n"
        "bytearray(1 << 40)\n",
        encoding="utf-8",
        errors="surrogateescape",
    )
    run = oomrec("run", "--mode", "exact", "--limit", "200M", "--", "python3", "hostile.py")
    page = page_of(oomrec, run.bundles()[0])
    for harm in ("alert(1)", "onerror=alert", "\x1b", "\udcff"):
        assert harm not in page.html
    text = "".join(page.json["strings"])
    assert "<script>alert(1)" in text  # complete in the data, and only there
    assert not re.search("[\x00-\x1f\x7f]", text)
    held = [
        page.functions(node)
        for _, live_bytes, _, node in page.rows()
        if 1 << 20 <= live_bytes < 2 << 20
    ]
    for name in HOSTILE[:2]:
        assert any(name in functions for functions in held), name
    assert all(len(string) <= 4096 for string in page.json["strings"])
    assert len(page.html) < 4 << 20
