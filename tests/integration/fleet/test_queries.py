"""The commands over a known fleet: order, states, releases, exit codes, JSON and text."""

import json
import random
import re
import sys

import pytest
from conftest import written
from fleet_rows import GIB, Cause, fleet, life, line, row, write_rows

SOURCES = ["rows", "parquet", "file"]


@pytest.fixture(scope="module", params=SOURCES)
def known(request, tmp_path_factory):
    """A fleet of four causes, as rows, as Parquet, and as one file of lines."""
    tmp_path = tmp_path_factory.mktemp("known")
    rows = []
    for number, (cause, days) in enumerate(
        [
            (0, ["2026-11-29"] * 30),  # new
            (1, ["2026-11-03"] * 3 + ["2026-11-28"] * 2),  # not seen for 14 days
            (2, [f"2026-11-{day:02}" for day in range(1, 31)]),  # every day
            (
                3,
                [f"2026-11-{day:02}" for day in range(1, 31)] + ["2026-11-27"] * 30,
            ),  # much more often
        ]
    ):
        for n, day in enumerate(days):
            hours = {0: 5.0, 1: 100.0, 2: 1.0, 3: 2.0}[number]
            rows.append(
                row(
                    1000 * number + n,
                    Cause(cause, 8),
                    time=f"{day}T12:00:00Z",
                    lost_gib_hours=hours,
                )
            )
    rows.append(
        row(9000, Cause(0, 8), time="2026-11-29T12:00:01Z", episode_role="follower", episode_id="x")
    )
    rows.append(row(9001, Cause(0, 8), time="2026-11-29T12:00:01Z", kind="warning"))
    random.Random(4).shuffle(rows)
    if request.param == "file":
        target = written(tmp_path / "rows.jsonl", "".join(map(line, rows)))
        return target
    write_rows(tmp_path, rows)
    if request.param == "parquet":
        from oomrec.fleet import compact

        compact(str(tmp_path))
    return tmp_path


def test_top_lists_what_cost_most(known, answer):
    shown = answer("top", known)

    assert [
        (each["title"], each["deaths"], each["lost_gib_hours"], each["state"])
        for each in shown["signatures"]
    ] == [
        (Cause(1, 8).title, 2, 200.0, "regressed"),
        (Cause(0, 8).title, 30, 150.0, "new"),
        (Cause(3, 8).title, 37, 74.0, "regressed"),
        (Cause(2, 8).title, 7, 7.0, "ongoing"),
    ]
    assert shown["total"]["deaths"] == 76 and shown["total"]["followers"] == 1
    assert shown["before"]["deaths"] == 14
    assert (
        shown["signatures"][1]["services"] == ["service-0"]
        and shown["signatures"][1]["service_count"] == 1
    )


def test_new_and_regressed_are_parts_of_top(known, answer):
    by_state = {state: answer(state, known)["signatures"] for state in ("new", "regressed")}
    top = answer("top", known)["signatures"]
    for state, listed in by_state.items():
        assert listed == [each for each in top if each["state"] == state] != []


def test_show_takes_a_number_a_name_or_a_death(known, answer, fleet):
    first = answer("show", "2", known)
    assert first["title"] == Cause(0, 8).title
    for name in (first["signature"], first["title"], Cause(0, 8).coarse):
        assert answer("show", name, known) == first
    assert first["days"] == [["2026-11-29", 30]]
    assert first["facets"]["service"] == {"different": 1, "values": [["service-0", 30]]}
    assert len(first["recent"]) == 10
    death = answer("show", first["typical"]["death_id"], known)
    assert death.pop("retry_with_bytes") is None, "it leaks"
    assert death == first["typical"] and death["holders"]
    assert answer("show", f"{2000:016x}", known)["retry_with_bytes"] > 2 * GIB
    for nothing in ("0", "5", "no such name", "f" * 16):
        code, output, errors = fleet("show", nothing, known, "--until", "2026-12-01")
        assert code == 1 and output == "" and errors


def test_each_order_is_total(tmp_path, answer):
    """Whatever the order of the rows, and although all cost the same."""
    rows = [row(n, Cause(n, 3), time="2026-11-29T12:00:00Z", lost_gib_hours=1.0) for n in range(60)]
    shown = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        target = written(tmp_path / f"{seed}.jsonl", "".join(map(line, rows)))
        shown.append(
            [answer("top", target, "-n", "7"), answer("show", "3", target), answer("sizes", target)]
        )
    assert shown[0] == shown[1] == shown[2]
    names = [each["signature"] for each in shown[0][0]["signatures"]]
    assert names == sorted(names) and len(names) == 7


def test_a_row_of_the_future_is_no_death_of_today(tmp_path, answer):
    target = tmp_path / "rows.jsonl"
    target.write_text(
        line(row(1, time="2026-11-29T12:00:00Z")) + line(row(2, time="2999-01-01T00:00:00Z"))
    )
    assert answer("top", target)["total"]["deaths"] == 1


@pytest.fixture
def releases(tmp_path):
    """releases(head's rows…) is a file of them and of the base's: one cause, needs of about a GiB."""

    def of(*more):
        shared = {"service": "web", "release": "main"}
        rows = [life(n, GIB + n, **shared) for n in range(20)] + [row(100, Cause(0, 8), **shared)]
        target = written(tmp_path / "rows.jsonl", "".join(map(line, [*rows, *more])))
        return target

    return of


def head(count=20, need=GIB):
    return [life(500 + n, need + n, service="web", release="pr-17") for n in range(count)]


def gate(target):
    return ["gate", target, "--base", "main", "--head", "pr-17"]


def test_a_gate_lets_the_same_pass(releases, answer):
    same = releases(*head(), row(900, Cause(0, 8), service="web", release="pr-17"))
    assert answer(*gate(same)) == {"passed": True, "new_signatures": [], "grown": [], "too_few": []}
    slightly = releases(*head(need=int(1.09 * GIB)))
    assert answer(*gate(slightly))["passed"]


def test_a_gate_refuses_a_new_signature_and_a_tenth_more(releases, answer):
    new = answer(
        *gate(releases(*head(), row(900, Cause(1, 8), release="pr-17", service="web"))), exit_code=1
    )
    assert [each["title"] for each in new["new_signatures"]] == [Cause(1, 8).title] and not new[
        "grown"
    ]
    more = answer(*gate(releases(*head(need=int(1.15 * GIB)))), exit_code=1)
    assert [each["service"] for each in more["grown"]] == ["web"] and not more["new_signatures"]
    assert answer(*gate(releases(*head(need=int(1.15 * GIB)))), "--growth", "20")["passed"]


def test_a_gate_says_what_it_cannot_compare(releases, answer, fleet):
    assert answer(*gate(releases(*head(count=4, need=9 * GIB))))["too_few"] == ["web"]
    code, _, errors = fleet(*gate(releases()))
    assert code == 2 and "release pr-17 has no rows" in errors and "main" in errors


def test_services_that_sigterm_ended_have_lived(tmp_path, answer):
    """Unless it was for memory, or another signal: nobody knows what such a process would have needed."""
    ended = {"verdict": "killed_externally", "outcome": "signal 15", "cause": None}
    ended |= dict.fromkeys(["limit_kind", "limit_bytes", "used_bytes"])
    at = {"time": "2026-11-20T12:00:00Z", "service": "a"}
    write_rows(
        tmp_path,
        [
            *(row(n, need_bytes=GIB + n, **at, **ended) for n in range(40)),
            *(life(100 + n, GIB + n, **at) for n in range(10)),
            row(200, **at, **{**ended, "outcome": "signal 9"}),
            row(201, **at, outcome="signal 15", verdict="terminated_under_pressure"),
        ],
    )
    (size,) = answer("sizes", tmp_path)["services"]
    assert (size["lives"], size["deaths"]) == (50, 2)
    assert GIB < size["need_p95_bytes"] < 1.1 * GIB and size["censored_share"] < 0.02


def test_sizes_lists_every_service(tmp_path, answer):
    target = written(tmp_path / "rows.jsonl", "".join(map(line, fleet(400, services=3))))
    found = answer("sizes", target, "--since", "5w")["services"]
    assert [each["service"] for each in found] == ["service-0", "service-1", "service-2"]
    assert (
        sum(each["lives"] for each in found) == 40 and sum(each["deaths"] for each in found) == 360
    )
    assert {each["limit_bytes"] for each in found} == {2 * GIB}


def test_text_has_no_control_characters_and_no_colour_in_a_pipe(tmp_path, fleet):
    hostile = "\x1b[31m</script><img src=x>\u202e\r\n\x9b0m\ud7ff"
    names = dict.fromkeys(
        ["title", "service", "host", "release", "summary", "program", "raw_key", "signature"],
        hostile,
    )
    holder = {
        **row()["holders"][0],
        "frames": [{**row()["holders"][0]["frames"][0], "function": hostile, "file": hostile}],
    }
    target = tmp_path / "rows.jsonl"
    target.write_text(line(row(1, time="2026-11-29T12:00:00Z", holders=[holder], **names)))
    for words in (["top"], ["show", "1"], ["show", f"{1:016x}"], ["sizes"]):
        code, output, errors = fleet(*words, target, "--until", "2026-12-01")
        assert code == 0, errors
        assert all(each.isprintable() or each == "\n" for each in output), words


def test_colours_only_on_a_terminal(known, fleet, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[1m" in fleet("top", known, "--until", "2026-12-01")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in fleet("top", known, "--until", "2026-12-01")[1]


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["top", "/nowhere"], 2, "does not exist"),
        (["top", "gs://bucket/x"], 2, "unknown"),
        (["top", ".", "--since", "soon"], 2, "no time"),
        (["top", ".", "--since", "2026-12-02", "--until", "2026-12-01"], 2, "is not before"),
    ],
)
def test_mistakes(tmp_path, fleet, monkeypatch, words, code, message):
    (tmp_path / "rows.jsonl").write_text(line(row(1)))
    monkeypatch.chdir(tmp_path)
    found, output, errors = fleet(*words)
    assert (found, output) == (code, "") and message in errors


def test_of_a_file_all_rows_count(tmp_path, fleet):
    """Whoever names some bundles wants to see them, however old they are."""
    target = written(tmp_path / "rows.jsonl", line(row(1, time="2020-01-01T12:00:00Z")))
    assert "1 memory death" in fleet("top", target)[1]
    write_rows(tmp_path / "store", [row(1, time="2020-01-01T12:00:00Z")])
    assert fleet("top", tmp_path / "store")[0] == 1
    assert fleet("top", tmp_path / "store", "--since", "2020-01-01")[0] == 0


def test_rows_that_cannot_be_read_are_counted_on_stderr(tmp_path, fleet):
    target = tmp_path / "rows.jsonl"
    target.write_text("{\n" + line(row(1, time="2026-11-29T12:00:00Z")) + "[]\n")
    code, output, errors = fleet("top", target, "--until", "2026-12-01", "--json")
    assert code == 0 and json.loads(output)
    assert errors == "oomrec fleet: 2 rows were left out: 1 not JSON, 1 not a row\n"


def test_without_the_packages_it_says_what_to_install(tmp_path, fleet, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "rows.jsonl").write_text(line(row(1)))
    code, _, errors = fleet("top", tmp_path)
    assert (
        code == 2
        and "needs the package duckdb" in errors
        and "pip install 'oomrec[fleet]'" in errors
    )


def test_sql_has_only_what_spark_has_too():
    """What both engines name alike. The same texts run on Spark with `--on`."""
    from oomrec.fleet import _queries

    names = sorted(
        path.stem for path in (_queries.Path(_queries.__file__).parent / "sql").glob("*.sql")
    )
    assert len(names) == 10
    for name in names:
        text = _queries.sql(name)
        assert not re.search(
            r"(?i)\b(qualify|exclude|list_contains|epoch|strftime|any_value|::|unnest)\b", text
        ), name
        assert text.startswith("-- ")
        assert "ORDER BY" in text or name == "totals", name
