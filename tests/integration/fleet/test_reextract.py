"""Shipped bundles become rows again: on this machine's cores and on Dask, from a directory."""

import io
import json
import os
import subprocess
import sys
import tarfile

import pytest
from conftest import SOURCE
from fleet_rows import line, row

# Stands in for `oomrec export --format row`: a bundle's "manifest.json" is its row.
COMMAND = """#!{python}
import pathlib, sys
assert sys.argv[1:4] == ["export", "--format", "row"], sys.argv
code = 0
for directory in map(pathlib.Path, sys.argv[4:]):
    try:
        print((directory / "manifest.json").read_text().strip())
    except OSError as error:
        print(error, file=sys.stderr)
        code = 1
sys.exit(code)
"""


def ship(directory, number, files, suffix="zst", codec="zstd"):
    import pyarrow as pa

    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    target = directory / "raw" / "day=2026-11-29" / f"{number}.tar.{suffix}"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(pa.compress(text.getvalue(), codec=codec, asbytes=True))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """36 bundles, of which one has no row, one is no archive, and one wants to be elsewhere."""
    command = tmp_path / "bin" / "oomrec"
    command.parent.mkdir()
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o700)
    monkeypatch.setenv("OOMREC_COMMAND", str(command))
    directory = tmp_path / "fleet"
    for number in range(36):
        text = line(row(number, time="2026-11-29T12:00:00Z", release="reextracted")).encode()
        kind = ("gz", "gzip") if number == 11 else ("zst", "zstd")
        ship(directory, f"{number:03}", {f"oom_cpu_{number}/manifest.json": text}, *kind)
    ship(directory, "003", {"empty/other": b"x"})
    (directory / "raw" / "day=2026-11-29" / "005.tar.zst").write_bytes(b"no archive")
    evil = line(row(7, time="2026-11-29T12:00:00Z", release="reextracted")).encode()
    ship(directory, "007", {"../../../evil": b"x", "a/../../manifest.json": evil})
    return directory


def check(shipped, answer, result, exit_code):
    assert exit_code == 1 and result["bundles"] == 36 and result["rows"] == 34
    assert sorted(os.path.basename(key) for key in result["errors"]) == [
        "003.tar.zst",
        "005.tar.zst",
    ]
    assert not list(shipped.parent.glob("**/evil"))
    found = answer("show", f"{7:016x}", shipped)
    assert (
        found["release"] == "reextracted" and found["raw_key"] == "raw/day=2026-11-29/007.tar.zst"
    )


def test_on_this_machine(shipped, fleet, answer):
    """The new rows take the place of the old ones, before and after they are compacted."""
    target = shipped / "rows" / "day=2026-11-29" / "old.json"
    target.parent.mkdir(parents=True)
    target.write_text(line(row(7, time="2026-11-29T12:00:00Z", release="old")))
    fleet("compact", shipped)
    assert answer("show", f"{7:016x}", shipped)["release"] == "old"
    code, output, _ = fleet("reextract", shipped, "--json")
    check(shipped, answer, json.loads(output), code)
    fleet("compact", shipped)
    assert answer("show", f"{7:016x}", shipped)["release"] == "reextracted"
    assert not list((shipped / "rows").glob("*/*"))


@pytest.mark.needs_module("distributed")
def test_on_dask(shipped, fleet, answer, monkeypatch):
    import distributed

    monkeypatch.setenv(
        "PYTHONPATH", str(SOURCE / "tools" / "python")
    )  # for the worker, a process of its own
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        engine = cluster.scheduler_address.replace("tcp://", "dask://")
        code, output, _ = fleet("reextract", shipped, "--on", engine, "--json")
    check(shipped, answer, json.loads(output), code)


@pytest.mark.full
@pytest.mark.needs_module("pyspark")
@pytest.mark.needs_program("java")
def test_on_spark(shipped, answer):
    """In a process of its own: workers have the environment of the process' first session."""
    path = os.pathsep.join([str(SOURCE / "tools" / "python"), *sys.path])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "oomrec.fleet", "reextract", shipped),
            *("--on", "spark://local[2]", "--json"),
        ],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
    )
    check(shipped, answer, json.loads(done.stdout or "{}"), done.returncode)


@pytest.mark.parametrize(
    "engine, message",
    [
        ("slurm://x", "unknown"),
        ("ray://127.0.0.1:1", "needs the package ray"),
        ("spark://127.0.0.1:1", "needs the package pyspark"),
    ],
)
def test_engines_that_are_not_there(shipped, fleet, monkeypatch, engine, message):
    for name in ("ray", "pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    code, _, errors = fleet("reextract", shipped, "--on", engine)
    assert code == 2 and message in errors


def test_without_bundles_it_says_where_they_come_from(tmp_path, fleet):
    (tmp_path / "rows").mkdir()
    code, _, errors = fleet("reextract", tmp_path)
    assert code == 1 and "no bundles" in errors and "--ship-raw" in errors
