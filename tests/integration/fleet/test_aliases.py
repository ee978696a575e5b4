"""A changed set of rules: rows of earlier ones get today's signatures, so that no old cause looks new."""

import json

import pytest
from fleet_rows import Cause, fleet, life, row, write_rows

OLD = {"signature": "serve0: by the script", "signature_version": 0, "title": "by the script"}
CAUSE = Cause(0, 8)
TODAY = CAUSE.signature.replace(" < ", " <- ")
SINCE = ("--since", "2026-11-24")


@pytest.fixture(autouse=True)
def command(build_dir, monkeypatch):
    monkeypatch.setenv("OOMREC_COMMAND", str(build_dir / "oomrec"))


def rows_of_two_releases():
    """One cause: three weeks by a made older release, the last days by today's."""
    for day in range(1, 21):
        yield row(day, CAUSE, time=f"2026-11-{day:02}T12:00:00Z", **OLD)
    for day in range(24, 31):
        yield row(day, CAUSE, time=f"2026-11-{day:02}T12:00:00Z", signature=TODAY)


def compacted_by_an_older_release(directory, monkeypatch):
    from oomrec.fleet import _signatures, compact

    with monkeypatch.context() as earlier:
        earlier.setattr(_signatures, "VERSION", 0)
        earlier.setattr(_signatures, "OLD", "false")
        compact(str(directory))


def states(answer, directory) -> dict[str, str]:
    shown = answer("top", directory, *SINCE)
    return {each["signature"]: each["state"] for each in shown["signatures"]}


@pytest.mark.parametrize("is_compacted", [False, True])
def test_an_old_cause_is_not_new_after_an_upgrade(tmp_path, answer, monkeypatch, is_compacted):
    write_rows(tmp_path, rows_of_two_releases())
    if is_compacted:
        compacted_by_an_older_release(tmp_path, monkeypatch)
    assert states(answer, tmp_path) == {TODAY: "ongoing"}
    assert answer("new", tmp_path, *SINCE, exit_code=1)["signatures"] == []


def test_without_renewal_it_would_be(tmp_path, answer, monkeypatch):
    """The other way round: the test above shows something."""
    monkeypatch.setenv("OOMREC_COMMAND", "/nowhere/oomrec")
    monkeypatch.setenv("PATH", "/nowhere")
    write_rows(tmp_path, rows_of_two_releases())
    assert states(answer, tmp_path) == {TODAY: "new"}


def test_the_gate_knows_the_cause_of_an_older_release(tmp_path, answer):
    write_rows(
        tmp_path,
        [
            row(1, CAUSE, time="2026-11-10T12:00:00Z", release="v1", **OLD),
            row(2, CAUSE, time="2026-11-20T12:00:00Z", release="v2", signature=TODAY),
        ],
    )
    assert answer("gate", tmp_path, "--base", "v1", "--head", "v2")["new_signatures"] == []


def test_compact_renews_once_for_all(tmp_path, monkeypatch):
    from oomrec.fleet import Table, compact

    write_rows(tmp_path, [*rows_of_two_releases(), life(99, 1 << 30, signature_version=0)])
    compacted_by_an_older_release(tmp_path, monkeypatch)
    before = Table(str(tmp_path))
    assert before.renewed == 20 and before.fresh == 20
    assert compact(str(tmp_path))["rows"] == 20
    after = Table(str(tmp_path))
    assert after.renewed == after.fresh == 0
    rows = "SELECT death_id, signature, signature_alias, holders, labels FROM deaths ORDER BY 1"
    assert before.query(rows) == after.query(rows)
    found = {each["death_id"]: each for each in after.query(rows)}
    assert found[f"{1:016x}"]["signature_alias"] == OLD["signature"]
    assert found[f"{24:016x}"]["signature_alias"] is None
    assert compact(str(tmp_path)) == {"days": 0, "rows": 0, "rejected": {}}


def test_an_old_name_still_finds_its_cause(tmp_path, fleet):
    write_rows(tmp_path, rows_of_two_releases())
    code, output, errors = fleet(
        "show", OLD["signature"], tmp_path, "--since", "2026-11-24", "--json"
    )
    assert code == 0, errors
    assert json.loads(output)["signature"] == TODAY


def test_rows_of_today_stay_as_they_are(tmp_path):
    """All columns of a row survive the renewal of others."""
    from oomrec.fleet import Table

    rows = list(fleet(50, days=2))
    write_rows(tmp_path, rows)
    today = Table(str(tmp_path)).query("SELECT * FROM deaths ORDER BY death_id")
    old = tmp_path / "old"
    write_rows(old, [{**each, "signature_version": 0} for each in rows])
    renewed = Table(str(old)).query("SELECT * FROM deaths ORDER BY death_id")
    changed = {
        "signature",
        "signature_alias",
        "signature_coarse",
        "signature_also",
        "title",
        "top_share",
    }
    changed |= {"signature_version", "holders", "cause"}
    for one, other in zip(today, renewed):
        assert [key for key in one if one[key] != other[key]] in (
            [],
            ["signature_version"],
        ) or not ({key for key in one if one[key] != other[key]} - changed)


def test_the_package_and_the_command_have_the_same_rules(oomrec, preload):
    from oomrec.fleet._signatures import VERSION

    bundle = preload("python3", "-S", "-c", "bytearray(1 << 60)").only_bundle()
    (line,) = oomrec("export", "--format", "row", bundle).stdout.splitlines()
    assert json.loads(line)["signature_version"] == VERSION
