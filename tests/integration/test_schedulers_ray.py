"""oomrec.schedulers.ray with the real Ray: kills by its memory monitor are proven, other ends are no memory deaths."""

import json
import sys
import tempfile
import time

import pytest
from conftest import rounds
from python_programs import package_environment

# As Ray 2.60.0 writes it, shortened.
REPORT = """\
[{time} I 24226 24226] (raylet) node_manager.cc:3199: Killing 2 worker(s), kill details: Memory on the node was 3.58GB
OOM kill reason: Memory usage 3758714880B exceeded threshold of 3757998080B (14.9% of 25276502016B limit)
Considered workers: [
Selected to kill: (Worker with no lease granted: pid=4194304, actual memory used=0.04GB, worker ID=fba5)
Selected to kill: (Task: job ID=01, task name=grow, required resources={{CPU: 1}}, pid={pid}, actual memory used={used}, worker ID=571d)
]
"""


@pytest.mark.parametrize("way", ["killed", "gone before", "long ago"])
def test_a_report_of_the_raylet(oomrec, plain, preload, build_dir, way):
    """Without Ray: its log, a recorded process, and the watcher of a node."""
    logs = plain.directory / "logs"
    logs.mkdir()
    program = "kept = bytearray(b'x') * (48 << 20); print(flush=True); import time; time.sleep(300)"
    worker = preload.start(sys.executable, "-c", program)
    raylet = plain.start("sleep", "300")
    assert worker.stdout.readline()
    worker.kill()
    worker.wait()
    age_s, used = (
        900 if way == "long ago" else 0,
        "Not FoundGB" if way == "gone before" else "0.36GB",
    )
    began = time.strftime("%Y-%m-%d %H:%M:%S,123", time.localtime(time.time() - age_s))
    (logs / "raylet.out").write_text(REPORT.format(time=began, pid=worker.pid, used=used))
    words = ("-m", "oomrec.schedulers.ray", plain.directory, raylet.pid)
    watcher = plain.start(sys.executable, *words, env=package_environment(build_dir))
    verdicts = logs / "oomrec_verdicts.jsonl"
    until = time.monotonic() + (1 if way != "killed" else 60)
    while not (verdicts.exists() and verdicts.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    raylet.kill()
    raylet.wait()
    assert plain.finish(watcher).exit_code == 0  # it ends with the raylet
    if way != "killed":
        assert verdicts.read_text() == "" and '"left": 1' in oomrec("recover", "--json").stdout
        return
    verdict = json.loads(verdicts.read_text())
    assert (verdict["pid"], verdict["certainty"]) == (worker.pid, "proven")
    evidence = oomrec.json("show", verdict["bundle"])["verdict"]["evidence"]
    assert "Ray's memory monitor: task grow used 0.36GB: Memory usage 3758714880B" in evidence[0]


@pytest.fixture
def cluster(plain, victim, build_dir):
    """cluster(WAY, COUNT) is a program that started Ray. Only its workers were recorded."""
    python = build_dir / "ray" / "bin" / "python3"  # Ray needs packages that others must not have
    if not python.exists():
        pytest.skip("no Ray in the build folder: scripts/test --full installs it")

    def run(way, count=1):
        with tempfile.TemporaryDirectory(prefix="r") as directory:  # the path of a socket is short
            words = [victim("python/ray_plugin.py"), way, count, directory]
            environment = {**package_environment(build_dir), "RAY_AUTH_MODE": "disabled"}
            done = plain(python, *words, env=environment, timeout=600)
        assert done.exit_code == 0, str(done)
        return done

    return run


def printed(run) -> dict:
    """What the program printed. Ray shows the output of tasks and its own warnings beside it."""
    (line,) = [line for line in run.stdout.splitlines() if line.startswith('{"killed"')]
    return json.loads(line)


@pytest.mark.full
def test_workers_that_ray_ends_for_memory(oomrec, cluster):
    count = rounds(1, 20)
    run = cluster("grows", count)
    assert run.stderr.count("caught OutOfMemoryError") == count, str(run)
    killed = set(printed(run)["killed"])
    oomrec("recover")
    shown = {r["process"]["pid"]: r for r in (oomrec.json("show", b) for b in run.bundles())}
    assert killed <= set(shown), (killed - set(shown), str(run))  # none is lost
    verdicts = [shown[pid]["verdict"] for pid in killed]
    proven = [
        v for v in verdicts if (v["code"], v["certainty"]) == ("user_space_oom_kill", "proven")
    ]
    assert len(proven) == len(killed) >= 0.95 * count, json.dumps(verdicts, indent=1)
    assert all("was killed by Ray's memory monitor" in verdict["summary"] for verdict in proven)
    assert any("task grow used" in line for verdict in proven for line in verdict["evidence"])


@pytest.mark.full
@pytest.mark.parametrize("way", ["crashes", "cancelled"])
def test_other_ends(oomrec, cluster, way):
    """The negative controls."""
    run = cluster(way)
    assert printed(run) == {"killed": [], "verdicts": []}, str(run)
    oomrec("recover", "--unknown")
    codes = [oomrec.json("show", path)["verdict"]["code"] for path in run.bundles()]
    assert set(codes) <= {"crashed", "killed_externally", "unknown", "exited"}, codes
