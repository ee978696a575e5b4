"""`oomrec watch --alert-exec` and `--alert-webhook`: which events alert, with what content, how often."""

import http.server
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
import schemas
from watched_program import Program
from watching import SEES_FOREIGN_EXITS, Watch, wait_for

MIB = 2**20
QUIET = {"MEMORY_PRESSURE_WATCH": "/dev/null"}
# Each line of stdin is how many MiB it then holds.
HOLDER = """
import sys
held = bytearray()
print("ready", flush=True)
for line in sys.stdin:
    held = None
    held = bytearray(int(line) << 20)
    print("did", flush=True)
"""


class Alerted:
    """`oomrec watch` that appends each alert to a file."""

    def __init__(self, oomrec, directory: Path, *words, **env):
        self.file = directory / "alerts.jsonl"
        self.watch = Watch(
            oomrec, "--alert-exec", f"cat >> {self.file}", *words, **{**QUIET, **env}
        )

    def all(self, rule: str | None = None) -> list[dict]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        alerts = [json.loads(line) for line in lines]
        for alert in alerts:
            schemas.check("alert", alert)
        return [alert for alert in alerts if rule in (None, alert["rule"])]

    def first(self, rule: str) -> dict:
        return wait_for(lambda: self.all(rule))[0]


@pytest.fixture
def alerted(oomrec, tmp_path):
    return lambda *words, **env: Alerted(oomrec, tmp_path, *words, **env)


@pytest.fixture
def holder(preload):
    """hold(190) makes the process hold 190 of its 200 MiB."""
    process = preload.start(
        "python3", "-c", HOLDER, stdin=subprocess.PIPE, env={"OOMREC_LIMIT": "200M"}
    ).once("ready")

    def hold(mib: int) -> subprocess.Popen:
        process.tell(f"{mib}\n").once("did")
        return process

    return hold


def children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def test_a_near_limit_alerts_once(alerted, holder):
    watching = alerted()
    holder(100)
    time.sleep(1.5)
    assert watching.all() == []
    process = holder(185)
    alert = watching.first("near_limit")
    assert alert["pid"] == process.pid and alert["bundle"] is None
    assert alert["figures"]["kind"] == "soft"
    assert alert["figures"]["limit_bytes"] == 200 * MIB
    assert 0 < alert["figures"]["headroom_bytes"] < 15 * MIB
    assert f"pid {process.pid}" in alert["text"] and "python3 -c" in alert["command_line"]
    for mib in (178, 185, 179, 186):  # hovers around 10 %
        holder(mib)
        time.sleep(1.1)
    assert len(watching.all()) == 1
    wait_for(lambda: children(watching.watch.process.pid) == [])  # and there are no zombies


def test_the_near_limit_threshold_is_configurable(alerted, holder):
    watching = alerted("--alert-percent", "60")
    holder(100)
    assert watching.first("near_limit")["figures"]["headroom_bytes"] > 80 * MIB


def test_a_failure_and_a_death_both_alert(alerted, preload, victim):
    watching = alerted()
    process = preload.start(
        victim("dies"), "exits_later", env={"RANK": 3, "WORLD_SIZE": 4, "LOCAL_RANK": 3}
    )
    process.wait()
    failure, death = watching.first("failure"), watching.first("death")
    assert failure["figures"] == {"failures": 4, "failures_total": 4}
    assert failure["rank"] == death["rank"] == 3
    bundle = Path(death["bundle"])
    bundle_metadata = json.loads((bundle / "metadata.json").read_text())
    assert death["figures"] == {
        "verdict": bundle_metadata["verdict"]["code"],
        "certainty": "proven",
        "outcome": "exited 3",
    }
    assert death["pid"] == process.pid and death["program"] == "dies"
    assert death["text"].endswith(" ended with exit code 3 after a request that was too large")
    assert failure["bundle"] == death["bundle"]


def test_a_failure_alert_names_its_bundle_while_the_process_lives(alerted, preload, victim):
    watching = alerted()
    process = preload.start(victim("dies"), "waits", stdin=subprocess.PIPE).once("ready")
    alert = watching.first("failure")
    (manifest,) = preload.dump_dir.glob("oom_*/manifest.json")
    assert alert["bundle"] == str(manifest.parent) and process.poll() is None


def test_an_older_bundle_is_not_attributed_to_a_failure(alerted, preload):
    watching = alerted()
    program = Program(preload.start, env={"OOMREC_LIMIT": "200M", "OOMREC_WARN": "50"})
    program.do(120)
    wait_for(lambda: list(preload.dump_dir.glob("oom_*/manifest.json")))
    time.sleep(2.1)  # the watch has seen the warning's bundle
    program.do("refuse")
    alert = watching.first("failure")
    bundle_metadata = json.loads((Path(alert["bundle"]) / "metadata.json").read_text())
    assert bundle_metadata["reason"] != "near_limit" and bundle_metadata["request"]["size"] > 2**45


@pytest.mark.skipif(
    not SEES_FOREIGN_EXITS, reason="the kernel does not report how other processes end"
)
def test_a_kill_after_a_failure_is_not_attributed_to_it(alerted, preload, victim):
    """It survived the failure, which remains its bundle's verdict. Something else killed it."""
    watching = alerted()
    process = preload.start(victim("dies"), "waits", stdin=subprocess.PIPE).once("ready")
    wait_for(lambda: watching.watch.sees(process.pid))
    process.kill()
    process.wait()
    death = watching.first("death")
    assert death["text"].endswith(" was ended by SIGKILL after a request that was too large")
    assert death["figures"]["outcome"] == "signal 9"


def test_a_rule_alerts_at_most_once_a_minute(alerted, preload, victim):
    watching = alerted()
    for _ in range(4):
        assert preload(victim("dies"), "exits_later").exit_code == 3
    watching.first("death")
    time.sleep(2)
    assert [alert["rule"] for alert in watching.all()].count("death") == 1
    assert len(watching.all()) <= 2


def test_a_death_unrelated_to_memory_does_not_alert(alerted, preload, victim):
    watching = alerted()
    assert preload("sh", "-c", "exit 3").exit_code == 3
    process = preload.start("sleep", "100")
    time.sleep(0.5)
    process.kill()
    process.wait()
    time.sleep(1.5)
    assert watching.all() == []


@pytest.mark.needs_cgroup_write
def test_pressure_alerts(alerted, preload, start_thrashing, tmp_path):
    trigger = tmp_path / "trigger"
    os.mkfifo(trigger)
    waiting = start_thrashing(preload)
    watching = alerted(MEMORY_PRESSURE_WATCH=trigger)
    wait_for(lambda: watching.watch.sees(waiting.pid))
    time.sleep(1.2)  # two samples from outside
    with trigger.open("w") as fifo:
        fifo.write("x")
    alert = watching.first("pressure")
    assert alert["pid"] == waiting.pid and alert["figures"]["rss_bytes"] >= 20 * MIB
    assert (Path(alert["bundle"]) / "manifest.json").exists()


def test_commands_get_the_alert_and_a_clean_environment(oomrec, preload, victim, tmp_path):
    """The command starts with no blocked signals and none of our descriptors."""
    log = tmp_path / "log"
    command = (
        f"(ls /proc/self/fd; grep SigBlk /proc/self/status; cat) > {log}.$$; mv -n {log}.$$ {log}"
    )
    Watch(oomrec, "--alert-exec", command, **QUIET)
    preload(victim("dies"), "exits_later")
    *descriptors, blocked, alert = wait_for(lambda: log.exists() and log.read_text()).split("\n")[
        :-1
    ]
    assert set(descriptors) <= {"0", "1", "2", "3"}  # 3: that of ls itself
    assert int(blocked.split()[1], 16) == 0
    schemas.check("alert", json.loads(alert))


def test_a_failing_command_is_reported(oomrec, preload, victim):
    watching = Watch(oomrec, "--alert-exec", "exit 7", **QUIET)
    preload(victim("dies"), "exits_later")
    watching.says("--alert-exec: exit code 7")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Records what is posted. The request's path selects the answer."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, dict(self.headers), body))
        self.send_response(int(self.path.rpartition("/")[2]))
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.posted = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_each_alert(oomrec, preload, victim, receiver):
    port = receiver.server_address[1]
    watching = Watch(oomrec, "--alert-webhook", f"http://127.0.0.1:{port}/hook?a=b/204", **QUIET)
    preload(victim("dies"), "exits_later")
    wait_for(lambda: len(receiver.posted) == 2)
    for path, headers, body in receiver.posted:
        assert path == "/hook?a=b/204" and headers["Host"] == f"127.0.0.1:{port}"
        assert headers["Content-Type"] == "application/json"
        schemas.check("alert", json.loads(body))
    run = watching.stop()
    assert run.stderr == "", str(run)


@pytest.mark.parametrize("path, words", [("/500", "answered: HTTP/1.0 500"), (None, "refused")])
def test_a_failing_webhook_is_reported(oomrec, preload, victim, receiver, path, words):
    port = receiver.server_address[1] if path else 9  # the discard port: nothing listens
    watching = Watch(oomrec, "--alert-webhook", f"http://127.0.0.1:{port}{path or '/'}", **QUIET)
    preload(victim("dies"), "exits_later")
    watching.says(words)


def test_https_is_posted_by_curl(oomrec, preload, victim, tmp_path):
    """A stand-in for curl records its arguments and input."""
    curl = tmp_path / "bin" / "curl"
    curl.parent.mkdir()
    log = tmp_path / "log"
    curl.write_text(f'#!/bin/sh\n(printf "%s\\n" "$*"; cat) > {log}.$$; mv {log}.$$ {log}\n')
    curl.chmod(0o755)
    path = f"{curl.parent}:{os.environ['PATH']}"
    Watch(oomrec, "--alert-webhook", "https://example.org/hook", PATH=path, **QUIET)
    preload(victim("dies"), "exits_later")
    words, alert = wait_for(lambda: log.exists() and log.read_text()).splitlines()
    assert words.endswith(" -- https://example.org/hook") and "--max-time" in words
    schemas.check("alert", json.loads(alert))


def test_a_nearly_full_device_alerts(alerted, preload, fake_gpu, victim):
    watching = alerted()
    process = preload.start("python3", "-c", FILLS_A_GPU, env=fake_gpu, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"full\n"
    alert = watching.first("device_nearly_full")
    assert alert["pid"] == process.pid and alert["figures"]["device"] == "cuda:0"
    figures = alert["figures"]
    assert figures["used_bytes"] > 0.9 * figures["total_bytes"]


# Takes 950 MiB of the fake device's GiB.
FILLS_A_GPU = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(950 << 20)) == 0
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print("full", flush=True)
sys.stdin.read()
"""
