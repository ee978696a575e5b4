"""`oomrec watch --metrics` and `--textfile`: figures of recorded processes for Prometheus."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections import Counter

import pytest
from exposition import Exposition, MetricsWatch
from watching import SEES_FOREIGN_EXITS, Watch, cpu_s, eventually, wait_for

MIB = 2**20
# Headers as Prometheus sends them.
PROMETHEUS = {"X-Prometheus-Scrape-Timeout-Seconds": "10"}
QUIET = {"MEMORY_PRESSURE_WATCH": "/dev/null"}


@pytest.fixture
def metrics(oomrec):
    return lambda *words, **options: MetricsWatch(oomrec, *words, **{**QUIET, **options})


@pytest.fixture
def started(preload, victim):
    """A process that holds 20 MiB, after four failures unless `way` is `never`."""

    def start(way="never", **env):
        process = preload.start(victim("dies"), way, stdin=subprocess.PIPE, env=env).once("ready")
        return process

    return start


def seen(watching, pid):
    """The first page that has this process."""

    def look():
        page = watching.scrape()
        return page if page.rows("processes", pid=pid) else None

    return wait_for(look)


def test_figures_match_the_process(oomrec, metrics, started):
    watching = metrics()
    process = started(OOMREC_LIMIT="100M", RANK=2, LOCAL_RANK=0, WORLD_SIZE=4)
    seen(watching, process.pid)
    page = watching.scrape()
    labels = {"program": "dies", "rank": "2", "pid": process.pid}
    shown = oomrec.json("show", process.pid)
    live = 0
    for space in ("heap", "map"):
        figures = shown["spaces"][space]
        assert page.value("live_bytes", space=space, **labels) == figures["live_bytes"]
        assert page.value("peak_bytes", space=space, **labels) == figures["peak_bytes"]
        live += figures["live_bytes"]
    assert live >= 20 * MIB
    resident = page.value("rss_bytes", **labels)
    with open(f"/proc/{process.pid}/statm") as statm:
        now = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    # The kernel adds up its processors' counts late: 64 pages of each may be missing.
    assert resident == pytest.approx(now, abs=MIB)
    assert page.value("limit_bytes", kind="soft", **labels) == 100 * MIB
    assert page.value("headroom_bytes", **labels) == 100 * MIB - live
    assert page.value("headroom_ratio", **labels) == pytest.approx(1 - live / (100 * MIB))
    assert page.value("events_total", **labels) == shown["recording"]["events"]
    # The program's series has its only process.
    for name in ("rss_bytes", "headroom_bytes", "processes"):
        assert page.value(name, program="dies", pid=None) == page.value(name, **labels)


def test_every_counter_starts_at_zero(metrics, started):
    watching = metrics()
    process = started()
    page = seen(watching, process.pid)
    for pid in (process.pid, None):
        labels = {"program": "dies", "rank": "", "pid": pid}
        for name, label, some in (
            ("failures_total", "api", {"malloc", "mmap", "operator_new", "fork", "other"}),
            ("bundles_total", "trigger", {"allocation_failed", "crash", "killed", "request"}),
            ("deaths_total", "verdict", {"soft_limit", "cgroup_oom_kill", "exited", "unknown"}),
            ("memory_deaths_total", "certainty", {"possible", "likely", "proven"}),
        ):
            rows = page.rows(name, **labels)
            assert some <= {row[label] for row, _ in rows}
            assert {value for _, value in rows} == {0}
            assert all(row.keys() - {"pid"} == {"program", "rank", label} for row, _ in rows)
        assert page.value("dropped_events_total", **labels) == 0


def after_death(watching, process):
    """Kills the process; the page that counts it no more."""
    process.kill()
    process.wait()

    def page_without_it():
        page = watching.scrape()
        return page if page.value("processes", pid=process.pid) == 0 else None

    return wait_for(page_without_it)


def test_counts_match_the_bundle(metrics, started, preload):
    watching = metrics()
    process = started("waits")
    page = seen(watching, process.pid)
    assert page.value("failures_total", pid=process.pid, api="malloc") == 4
    page = after_death(watching, process)
    (bundle,) = (path.parent for path in preload.dump_dir.glob("oom_*/manifest.json"))
    metadata = json.loads((bundle / "metadata.json").read_text())
    for pid in (process.pid, None):
        labels = {"program": "dies", "pid": pid}
        assert page.value("failures_total", api="malloc", **labels) == 4
        assert sum(value for _, value in page.rows("failures_total", **labels)) == 4
        assert page.value("bundles_total", trigger=metadata["reason"], **labels) == 1
        assert sum(value for _, value in page.rows("bundles_total", **labels)) == 1
        assert page.value("deaths_total", verdict=metadata["verdict"]["code"], **labels) == 1
        assert sum(value for _, value in page.rows("deaths_total", **labels)) == 1
        certainty = metadata["verdict"]["certainty"]
        assert page.value("memory_deaths_total", certainty=certainty, **labels) == 1
    # Its series keep their last values. Those of its program are zero.
    assert page.value("live_bytes", pid=process.pid, space="heap") >= 20 * MIB
    assert page.value("rss_bytes", program="dies", pid=None) == 0
    assert page.value("processes", program="dies", pid=None) == 0


def test_deaths_are_counted_by_who_held_the_memory(oomrec, metrics, started, preload):
    watching = metrics()
    assert watching.scrape().rows("signature_deaths_total") == []
    process = started("waits")
    seen(watching, process.pid)
    process.kill()
    process.wait()

    def counted():
        return [row for row in watching.scrape().rows("signature_deaths_total") if row[1]]

    ((labels, value),) = wait_for(counted)
    (bundle,) = (path.parent for path in preload.dump_dir.glob("oom_*/manifest.json"))
    assert labels == {"signature": oomrec.json("show", bundle)["signature"]["key"]}
    assert value == 1


@pytest.mark.parametrize(
    "way, verdict", [("exits_later", "request_too_large"), ("recovers", "exited")]
)
def test_deaths_by_verdict(metrics, started, way, verdict):
    """A failure that the process survived is not the cause of its death."""
    watching = metrics()
    before = watching.scrape()
    assert before.rows("deaths_total", program="dies") == []
    process = started(way)
    seen(watching, process.pid)
    process.stdin.close()
    process.wait()

    def verdicts():
        rows = watching.scrape().rows("deaths_total", program="dies", pid=None)
        return {row["verdict"] for row, value in rows if value}

    assert wait_for(verdicts) == {verdict}


def test_a_small_killed_process_is_a_death_without_a_bundle(metrics, preload):
    watching = metrics()
    process = preload.start("sleep", "100")
    seen(watching, process.pid)
    rows = after_death(watching, process).rows("deaths_total", pid=process.pid)
    expected = "killed_externally" if SEES_FOREIGN_EXITS else "unknown"
    assert {row["verdict"]: value for row, value in rows if value} == {expected: 1}


def test_an_exec_does_not_count_as_a_death(metrics, preload):
    watching = metrics()
    process = preload.start("sh", "-c", "exec sleep 100")

    def after_exec():
        page = watching.scrape()
        return page if page.value("processes", program="sleep", pid=process.pid) else None

    page = wait_for(after_exec)
    assert {value for _, value in page.rows("deaths_total", pid=process.pid)} == {0}
    assert sum(value for _, value in page.rows("processes", pid=process.pid)) == 1


def test_counters_never_fall_when_processes_die(metrics, started):
    watching = metrics()
    last = {}
    for number in range(1, 5):
        process = started("waits")
        seen(watching, process.pid)
        process.kill()
        process.wait()
        wait_for(lambda pid=process.pid: watching.scrape().value("processes", pid=pid) == 0)
        page = watching.scrape()
        counters = page.counters()
        assert last.keys() <= counters.keys()
        assert all(counters[key] >= value for key, value in last.items())
        last = counters
        assert page.value("failures_total", program="dies", pid=None, api="malloc") == 4 * number
        assert sum(page.counters(program="dies").values()) > 0


def test_a_new_series_begins_at_zero_for_each_prometheus(metrics, started):
    """Failures between two scrapes: otherwise the counter would first appear at 4."""
    watching = metrics()
    watching.scrape(PROMETHEUS)
    time.sleep(0.3)
    process = started("waits")
    page = seen(watching, process.pid)
    assert page.value("failures_total", pid=process.pid, api="malloc") == 4  # for other clients
    time.sleep(0.3)
    first = watching.scrape(PROMETHEUS)
    assert first.value("failures_total", pid=process.pid, api="malloc") == 0
    assert first.value("failures_total", program="dies", pid=None, api="malloc") == 0
    assert first.value("live_bytes", pid=process.pid, space="heap") >= 20 * MIB
    time.sleep(0.3)
    second = watching.scrape(PROMETHEUS)
    assert second.value("failures_total", pid=process.pid, api="malloc") == 4
    assert second.value("failures_total", program="dies", pid=None, api="malloc") == 4


def test_200_processes_have_separate_series(metrics, preload):
    watching = metrics()
    processes = [preload.start("sleep", "100") for _ in range(220)]
    wait_for(lambda: watching.scrape().value("processes", program="sleep", pid=None) == 220, 60)
    before = cpu_s(watching.process.pid)
    page = watching.scrape()
    assert cpu_s(watching.process.pid) - before < 2
    rows = page.rows("processes", program="sleep")
    assert Counter("pid" in row for row, _ in rows) == {True: 200, False: 1}
    alone = sum(value for row, value in page.rows("rss_bytes", program="sleep") if "pid" in row)
    assert page.value("rss_bytes", program="sleep", pid=None) > alone * 1.05
    for process in processes:
        process.kill()
        process.wait()

    def after_all_deaths():
        page = watching.scrape()
        rows = page.rows("deaths_total", program="sleep", pid=None)
        return page if sum(value for _, value in rows) == 220 else None

    page = wait_for(
        after_all_deaths, 60
    )  # of 220 dead processes, 20 have lost their separate series
    assert 0 < len(page.rows("processes", program="sleep")) <= 201
    assert page.value("processes", program="sleep", pid=None) == 0


def test_any_name_is_a_label(metrics, preload, tmp_path):
    name = 'we"ird\\na\nme é\x01'
    program = tmp_path / name
    shutil.copy(shutil.which("sleep"), program)
    watching = metrics()
    process = preload.start(program, "100")
    page = seen(watching, process.pid)
    assert page.rows("processes", pid=process.pid)[0][0]["program"] == 'we"ird\\na\nme é?'


def test_processes_started_before_the_watch_are_served(metrics, started, preload):
    process = started("waits")
    wait_for(lambda: list(preload.dump_dir.glob("oom_*/manifest.json")))
    watching = metrics()
    page = seen(watching, process.pid)
    assert page.value("failures_total", pid=process.pid, api="malloc") == 4
    # Its bundle is older than the watch.
    assert {value for _, value in page.rows("bundles_total", pid=process.pid)} == {0}


def test_the_textfile_is_complete_and_world_readable(oomrec, started, tmp_path):
    directory = tmp_path / "textfiles"
    directory.mkdir()
    before = os.umask(0o077)
    try:
        watching = Watch(oomrec, "--textfile", directory, **QUIET)
    finally:
        os.umask(before)
    file = directory / "oomrec.prom"
    assert Exposition(file.read_text()).families["oomrec_rss_bytes"].samples == {}
    process = started()

    def with_process():
        page = Exposition(file.read_text())  # complete at any time
        return page if page.rows("processes", pid=process.pid) else None

    page = wait_for(with_process, 5)
    assert page.value("live_bytes", pid=process.pid, space="heap") >= 20 * MIB
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [path.name for path in directory.iterdir()] == ["oomrec.prom"]
    process.kill()
    process.wait()
    wait_for(lambda: Exposition(file.read_text()).value("processes", pid=process.pid) == 0, 5)
    assert watching.stop().exit_code == 0


@pytest.mark.parametrize(
    "words, hint",
    [
        (("--metrics", "nonsense"), "9464"),
        (("--metrics", "::1:9464"), "[::1]:9464"),
        (("--metrics", "127.0.0.1:70000"), "9464"),
        (("--metrics", "no.such.host.invalid:9464"), "9464"),
        (("--metrics", "0", "--once"), "--once"),
        (("--textfile", "/no/such/directory"), "collector.textfile.directory"),
        (("--alert-percent", "20"), "--alert-exec"),
        (("--alert-exec", "true", "--alert-percent", "0"), "10 %"),
        (("--alert-webhook", "ftp://a/b"), "http://HOST"),
        (("--alert-webhook", "http://me:secret@host/"), "http"),
        (("--alert-webhook", "https://host/"), "curl"),
    ],
)
def test_impossible_options_fail_at_once(oomrec, words, hint):
    run = oomrec("watch", *words, env={"PATH": "/nowhere"})
    assert run.exit_code == 2 and hint in run.stderr, str(run)


def test_a_port_in_use_is_reported(oomrec, metrics):
    watching = metrics()
    run = oomrec("watch", "--metrics", watching.address[1])
    assert run.exit_code == 2 and "in use" in run.stderr, str(run)


def test_scraping_costs_little(metrics, preload):
    """Scraping 50 processes once a second takes less than 5 % of a core. Idle takes nothing."""
    watching = metrics()
    for _ in range(50):
        preload.start("sleep", "100")
    wait_for(lambda: watching.scrape().value("processes", program="sleep", pid=None) == 50, 30)
    wait_for(watching.is_sleeping, 30)

    @eventually  # others may keep the machine busy for a while
    def costs_little():
        before = cpu_s(watching.process.pid)
        for _ in range(4):
            watching.scrape()
            time.sleep(1)
        spent_s = cpu_s(watching.process.pid) - before
        assert spent_s <= 4 * 0.05
        print(f"{spent_s / 4 * 1000:.1f} ms a scrape", file=sys.stderr)
