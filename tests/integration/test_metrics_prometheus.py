"""A real Prometheus scrapes `oomrec watch`, with the rules and the dashboard of docs/examples.

scripts/prometheus unpacks both programs from Debian's packages into the build folder.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from exposition import MetricsWatch
from watching import wait_for

SOURCE = Path(__file__).resolve().parents[2]
RULES = SOURCE / "docs" / "examples" / "prometheus-alerts.yml"
DASHBOARD = SOURCE / "docs" / "examples" / "grafana-dashboard.json"
QUIET = {"MEMORY_PRESSURE_WATCH": "/dev/null"}
# The values that Grafana would give the dashboard's variables.
VARIABLES = {"$program": ".*", "$rank": ".*", "$__rate_interval": "30s", "$__range": "5m"}
# Takes 4 MiB ten times a second, with a limit of 100 MiB, until it dies of MemoryError.
GROWS = """
import time
held = []
while True:
    held.append(bytearray(4 << 20))
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def programs(build_dir):
    found = build_dir / "prometheus"
    if not (found / "promtool").exists():
        pytest.skip(f"no prometheus in {found}: scripts/prometheus {found}")
    return found


def run(*words) -> None:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_valid(programs):
    run(programs / "promtool", "check", "rules", RULES)


def test_the_rules_alert_when_they_should(programs):
    tests = SOURCE / "tests" / "integration" / "prometheus" / "alerts_test.yml"
    run(programs / "promtool", "test", "rules", tests)


def test_the_served_page_is_well_formed(programs, oomrec, preload):
    watching = MetricsWatch(oomrec, **QUIET)
    process = preload.start("sleep", "100")
    wait_for(lambda: watching.scrape().rows("processes", pid=process.pid))
    linted = subprocess.run(
        [programs / "promtool", "check", "metrics"],
        input=watching.text(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert linted.returncode == 0 and linted.stderr == "", linted.stdout + linted.stderr


class Prometheus:
    """A running Prometheus that scrapes one target every second."""

    def __init__(self, programs: Path, target: tuple[str, str], directory: Path):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config = directory / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{RULES}]\n"
            "scrape_configs:\n"
            "  - job_name: oomrec\n"
            f"    static_configs: [{{targets: ['{target[0]}:{target[1]}']}}]\n"
        )
        self.log = (directory / "prometheus.log").open("w+")
        self.process = subprocess.Popen(
            [
                programs / "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def get(self, path: str, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=300) as answer:
            reply = json.load(answer)
        assert reply["status"] == "success", reply
        return reply["data"]

    def is_ready(self) -> bool:
        assert self.process.poll() is None, Path(self.log.name).read_text()
        try:
            return bool(self.query("up == 1"))
        except OSError:  # it has just started
            return False

    def query(self, expression: str, at: float | None = None) -> list[dict]:
        """The result now, or at a time in seconds since 1970."""
        return self.get("query", query=expression, **({"time": at} if at else {}))["result"]

    def values(self, expression: str) -> list[float]:
        return [float(row["value"][1]) for row in self.query(expression)]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture
def prometheus(programs, tmp_path):
    running = []

    def start(target) -> Prometheus:
        running.append(Prometheus(programs, target, tmp_path))
        wait_for(running[-1].is_ready, 30)
        return running[-1]

    yield start
    for each in running:
        each.end()


def queries() -> list[tuple[str, str]]:
    """The dashboard's queries with the titles of their panels."""
    dashboard = json.loads(DASHBOARD.read_text())
    found = [
        (panel["title"], target["expr"])
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]
    found += [(note["name"], note["expr"]) for note in dashboard["annotations"]["list"]]
    assert len(found) >= 14
    return [(title, filled_in(expression)) for title, expression in found]


def filled_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def test_a_death_alerts_with_the_numbers_of_its_bundle(oomrec, preload, prometheus):
    watching = MetricsWatch(oomrec, **QUIET)
    server = prometheus(watching.address)
    environment = {"OOMREC_LIMIT": "100M", "RANK": 1, "LOCAL_RANK": 1, "WORLD_SIZE": 2}
    process = preload.start("python3", "-c", GROWS, env=environment)
    pid = f'pid="{process.pid}"'
    alive_at = wait_for(lambda: server.query(f"oomrec_live_bytes{{{pid}}}"))[0]["value"][0]
    assert server.query("ALERTS") == []
    assert process.wait(30) == 1

    def firing():
        alerts = server.get("alerts")["alerts"]
        return {
            alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"
        }

    wait_for(lambda: {"OomrecDeathForMemory", "OomrecFailures"} <= firing().keys(), 20)
    alert = firing()["OomrecDeathForMemory"]
    (bundle,) = (path.parent for path in preload.dump_dir.glob("oom_*/manifest.json"))
    shown = oomrec.json("show", bundle)
    assert alert["labels"]["verdict"] == shown["verdict"]["code"] == "soft_limit"
    assert alert["labels"]["rank"] == "1" and "pid" not in alert["labels"]
    assert "died for lack of memory (soft_limit)" in alert["annotations"]["summary"]

    # The numbers.
    api, trigger = shown["request"]["api"], shown["trigger"]
    refused = 1 + shown["request"]["repeats"]
    peak = shown["spaces"]["heap"]["peak_bytes"]
    heap = f'{pid},space="heap"'
    for labels in (pid, 'pid="",rank="1"'):
        assert server.values(f'oomrec_failures_total{{{labels},api="{api}"}}') == [refused]
        assert server.values(f'oomrec_bundles_total{{{labels},trigger="{trigger}"}}') == [1]
        assert server.values(f'oomrec_deaths_total{{{labels},verdict="soft_limit"}}') == [1]
    # From Python 3.13 on, printing the traceback imports modules, after the bundle.
    (last_peak,) = server.values(f"oomrec_peak_bytes{{{heap}}}")
    assert peak <= last_peak < peak + 2**22
    assert (
        server.values(f"oomrec_limit_bytes{{{pid}}}") == [100 * 2**20] == [shown["limit"]["bytes"]]
    )
    # Scrapes saw it grow, and none was above the final value.
    seen = server.values(f"max_over_time(oomrec_live_bytes{{{heap}}}[1m])")
    assert 0.5 * peak < seen[0] <= last_peak
    # Each counter rises by 0 or 1 between scrapes.
    assert server.values(f'resets(oomrec_failures_total{{{pid},api="{api}"}}[1m])') == [0]

    # The dashboard's panels, then and now.
    for title, expression in queries():
        shown = server.query(expression) or server.query(expression, alive_at)
        is_of_what_is_not_here = "device" in expression or "dropped" in expression
        assert shown or is_of_what_is_not_here, f"{title}: {expression}"


def test_verdicts_excluded_by_the_rules_exist(oomrec, preload):
    """A misspelt verdict there would count as a death by memory."""
    watching = MetricsWatch(oomrec, **QUIET)
    process = preload.start("sleep", "100")
    rows = wait_for(lambda: watching.scrape().rows("deaths_total", pid=process.pid))
    verdicts = {row["verdict"] for row, _ in rows}
    for text in (RULES.read_text(), DASHBOARD.read_text().replace('\\"', '"')):
        left_out = re.findall(r'verdict!~"([a-z_|]+)"', text)
        assert left_out
        assert all(set(words.split("|")) < verdicts for words in left_out)
