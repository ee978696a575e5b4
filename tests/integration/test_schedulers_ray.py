"""oomrec.schedulers.ray with the real Ray: kills by its memory monitor are proven, other ends are no memory deaths."""

import json
import tempfile

import pytest
from conftest import rounds
from python_programs import package_environment

pytestmark = pytest.mark.full


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


@pytest.mark.parametrize("way", ["crashes", "cancelled"])
def test_other_ends(oomrec, cluster, way):
    """The negative controls."""
    run = cluster(way)
    assert printed(run) == {"killed": [], "verdicts": []}, str(run)
    oomrec("recover", "--unknown")
    codes = [oomrec.json("show", path)["verdict"]["code"] for path in run.bundles()]
    assert set(codes) <= {"crashed", "killed_externally", "unknown", "exited"}, codes
