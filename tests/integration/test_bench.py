"""scripts/bench measures, writes JSON, a table and a plot, and copies them into a page.

No figure is asserted, because other tests run at the same time.
"""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest
from command_lines import commands

SOURCE = Path(__file__).resolve().parent.parent.parent
MODES = ("sampled", "exact")
MICRO = ["micro-a10", "micro-a30", "micro-a100", "micro-b30", "micro-c30"]


@pytest.fixture
def bench(plain, build_dir):
    """Compiles nothing unless asked to: other tests run what lies in the build folder meanwhile."""

    def run(*arguments, compiles=False):
        script = SOURCE / "scripts" / "bench"
        env = {} if compiles else {"NINJA": "true"}
        return plain(script, "--build", build_dir, *arguments, env=env, timeout=600)

    return run


def valid_results(run, out):
    """The contents of results.json, checked against its schema."""
    assert run.exit_code == 0, str(run)
    results = json.loads((out / "results.json").read_text())
    schema = SOURCE / "tests" / "bench" / "results_schema.json"
    jsonschema.validate(results, json.loads(schema.read_text()))
    return results


def test_a_quick_run_measures_every_row(bench, build_dir, tmp_path):
    options = ["--without-peers", "--against", build_dir, "--out", tmp_path / "out"]
    run = bench("--quick", "--only", "micro", *options)

    results = valid_results(run, tmp_path / "out")
    assert [workload["name"] for workload in results["workloads"]] == MICRO
    for workload in results["workloads"]:
        assert set(workload["results"]) == {"none", *MODES, *(f"earlier-{mode}" for mode in MODES)}
        for name, result in workload["results"].items():
            assert result["problem"] is None and len(result["figures"]) == 3, (name, result)
    table = (tmp_path / "out" / "table.md").read_text()
    assert table in run.stdout
    assert all(f"| {workload['title']} " in table for workload in results["workloads"])
    plot = ElementTree.parse(tmp_path / "out" / "overhead.svg")
    assert len(plot.findall(".//{*}title")) == 2 * len(MICRO)
    assert results["reading"] == [] and results["refusal"] == []


@pytest.mark.full  # compiling them takes longer than they do
@pytest.mark.parametrize("group", ["threads", "labels", "live", "devices", "server"])
def test_each_program_is_measured(bench, tmp_path, group):
    out = ["--out", tmp_path / "out"]
    run = bench("--quick", "--only", group, "--without-peers", *out, compiles=True)
    workloads = valid_results(run, tmp_path / "out")["workloads"]
    assert workloads and {workload["group"] for workload in workloads} == {group}
    assert {result["problem"] for one in workloads for result in one["results"].values()} == {None}


def test_failures_are_measured_alone(bench, tmp_path):
    run = bench("--quick", "--only", "refusal", "--without-peers", "--out", tmp_path / "out")

    results = valid_results(run, tmp_path / "out")
    assert results["workloads"] == [] and results["reading"] == []
    row = next(row for row in results["refusal"] if row["program"].startswith("60,000 distinct"))
    assert len(row["took_ms"]) == 3
    assert f"| {row['program']} " in (tmp_path / "out" / "table.md").read_text()


def test_the_start_of_every_command_is_measured(bench, oomrec, tmp_path):
    run = bench("--quick", "--only", "commands", "--without-peers", "--out", tmp_path / "out")

    rows = valid_results(run, tmp_path / "out")["commands"]
    assert [row["program"].split()[1] for row in rows] == commands(oomrec)
    assert "| oomrec show --help " in (tmp_path / "out" / "table.md").read_text()


def test_reading_is_measured_alone(bench, tmp_path):
    run = bench(
        "--quick", "--only", "reading", "--without-peers", "--rounds", 1, "--out", tmp_path / "out"
    )

    results = valid_results(run, tmp_path / "out")
    assert results["workloads"] == []
    of_stacks = [row for row in results["reading"] if row["recording"] == "32,768 distinct stacks"]
    assert [row["command"] for row in of_stacks] == ["stats", "show", "tree", "tree --top-down"]
    assert "| oomrec tree --top-down " in (tmp_path / "out" / "table.md").read_text()


def test_calls_of_the_python_package_are_measured(bench, tmp_path):
    run = bench(
        "--quick", "--only", "python", "--without-peers", "--rounds", 1, "--out", tmp_path / "out"
    )

    rows = {row["call"]: row for row in valid_results(run, tmp_path / "out")["python"]}
    assert set(rows) == {"empty", "context", "capture_oom", "mark", "usage"}
    assert all(set(row["median_ns"]) == {"alone", "sampled", "exact"} for row in rows.values())
    assert "| capture_oom " in (tmp_path / "out" / "table.md").read_text()


RUN = {"cpu_s": [1.0], "rss_mib": [50.0], "stopped_cpu_s": None, "problem": None}


def test_tables_list_missed_stopped_and_skipped_rows(bench, tmp_path):
    """Made-up figures: one goal reached and one missed, one peer stopped and one not installed."""
    json_goals = {"sampled": {"ratio": 1.12, "added_mib": 6}, "exact": {"ratio": 1.65}}
    results = {
        "schema_version": 1, "date_utc": "2026-02-03", "quick": False, "rounds": 1, "peer_rounds": 1, "peer_seconds": 60,
        "machine": {"cores": 2, "cpu": "A CPU", "virtual": True, "memory_gib": 8, "kernel": "6.1",
                    "libc": "glibc 2.36", "python": "3.11.2"},
        "recorders": [
            {"name": "none", "title": "no recorder", "problem": None},
            {"name": "sampled", "title": "oomrec sampled", "problem": None},
            {"name": "exact", "title": "oomrec exact", "problem": None},
            {"name": "earlier-sampled", "title": "an earlier oomrec sampled", "problem": None},
            {"name": "earlier-exact", "title": "an earlier oomrec exact", "problem": None},
            {"name": "heaptrack", "title": "heaptrack", "problem": None},
            {"name": "memray", "title": "memray", "problem": None},
            {"name": "fil", "title": "Fil", "problem": "not installed: fil-profile"},
        ],
        "workloads": [{
            "name": "json", "group": "json", "title": "JSON", "unit": "s", "goals": json_goals,
            "results": {
                "none": {**RUN, "figures": [1.0]},
                "sampled": {**RUN, "figures": [1.1], "rss_mib": [60.0]},
                "exact": {**RUN, "figures": [2.0]},
                "earlier-sampled": {**RUN, "figures": [1.0], "rss_mib": [55.5]},
                "earlier-exact": {**RUN, "figures": [1.99]},
                "heaptrack": {**RUN, "figures": [], "stopped_cpu_s": 58.0},
                "memray": {**RUN, "figures": [4.0]},
            },
        }],
        "reading": [{"command": "stats", "recording": "large", "goal_s": 2, "cpu_s": [3.0],
                     "median_s": 3.0, "rss_mib": 9.0}],
        "refusal": [{"program": "NumPy", "goal_ms": 50, "took_ms": [9.0, 12.0, 80.0],
                     "median_ms": 12.0}],
        "commands": [{"program": "oomrec ls --help", "goal_ms": 30, "took_ms": [31.0],
                      "median_ms": 31.0}],
        "leaks": [
            {"program": name, "what": name.title(), "leaks": leaks, "mode": mode, "right": right,
             "wrong": wrong, "bytes_per_second": 2**21, "confidence": 0.75}
            for name, leaks, mode, right, wrong in [
                ("loses", True, "sampled", 2, 0), ("loses", True, "exact", 1, 1),
                ("keeps", False, "sampled", 0, 0), ("keeps", False, "exact", 0, 0),
                ("hides", True, "sampled", 0, 0), ("hides", True, "exact", 3, 0),
            ]
        ],
        "python": [
            {"call": "context", "goal_ns": 2000, "median_ns": {"alone": 600.0, "sampled": 700.0}},
            {"call": "capture_oom", "goal_ns": 3000, "median_ns": {"alone": 600.0, "sampled": 3100.0}},
        ],
    }  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(results))

    run = bench("--results", tmp_path / "results.json", "--out", tmp_path / "out")

    assert run.exit_code == 0, str(run)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in run.stdout.splitlines()]
    own = {row[1]: row[5:] for row in rows if len(row) == 10}
    assert own["sampled"] == [
        "1.10",
        "+0.100 s",
        "+10 MiB",
        "≤ 1.12, ≤ 6 MiB",
        "reached, **missed**",
    ]
    assert own["exact"] == ["2.00", "+1.00 s", "+0 MiB", "≤ 1.65", "**missed**"]
    assert ["JSON", "1.00 s", "1.10", "2.00", "> 58 ×", "4.00"] in rows
    assert ["JSON", "> 570", "> 57", "30", "**3.0**"] in rows
    before = ["JSON", "sampled", "1.00 s", "1.10 s", "1.10", "+5.5 MiB", "+10.0 MiB", "**slower**"]
    assert before in rows
    assert ["", "exact", "1.99 s", "2.00 s", "1.01", "+0.0 MiB", "+0.0 MiB", ""] in rows
    assert ["oomrec stats", "large", "3.00 s", "9 MiB", "≤ 2 s", "**missed**"] in rows
    assert ["NumPy", "12.0 ms", "80.0 ms", "≤ 50 ms", "reached"] in rows
    assert ["oomrec ls --help", "31.0 ms", "31.0 ms", "≤ 30 ms", "**missed**"] in rows
    assert ["Loses", "leak", "2.0 MiB/s, 0.75", "2.0 MiB/s, 0.75", "**wrong**"] in rows
    assert ["Keeps", "none", "", "", "right"] in rows
    assert ["Hides", "leak", "", "2.0 MiB/s, 0.75", "**wrong**"] in rows
    assert ["context", "600 ns", "700 ns", "≤ 2000 ns", "reached"] in rows
    assert ["capture_oom", "600 ns", "3,100 ns", "≤ 3000 ns", "**missed**"] in rows
    assert "sampled: precision 1.00, recall 0.50; goal ≥ 0.9: **missed**." in run.stdout
    assert "exact: precision 0.80, recall 1.00; goal ≥ 0.9: **missed**." in run.stdout
    assert "Skipped: Fil: not installed: fil-profile." in run.stdout


def test_bad_arguments_are_reported(bench, tmp_path):
    refused = bench("--slowly")
    assert refused.exit_code == 1 and "not understood: --slowly" in refused.stderr

    unknown = bench("--only", "nothing", "--without-peers", "--out", tmp_path)
    assert unknown.exit_code == 1 and "--only takes one of: micro threads" in unknown.stderr
