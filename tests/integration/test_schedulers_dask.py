"""oomrec.schedulers.dask with real nannies: their kills for memory are proven, other ends are no memory deaths."""

import sys

import pytest
from conftest import rounds
from python_programs import package_environment

pytestmark = pytest.mark.needs_module("distributed")


@pytest.fixture
def cluster(plain, victim, build_dir):
    """cluster(WAY) is a program that started a cluster. Only its worker was recorded."""

    def run(way, count=1):
        script = victim("python/dask_plugin.py")
        options = {"env": package_environment(build_dir), "timeout": 600}
        done = plain(sys.executable, script, way, count, **options, exits=0)
        return done

    return run


def test_a_worker_above_its_limit(oomrec, cluster):
    count = rounds(1, 20)
    run = cluster("grows", count)
    verdicts = run.json()
    assert len(verdicts) == count, str(run)  # none is lost
    for verdict in verdicts:
        assert (verdict["code"], verdict["certainty"]) == ("user_space_oom_kill", "proven"), verdict
        assert verdict["worker"] in run.stderr.splitlines()  # that KilledWorker names
        assert "was killed by Dask's nanny, which said that memory" in verdict["summary"]
        assert f"worker {verdict['worker']}: {verdict['summary']}" in run.stderr
        shown = oomrec.json("show", verdict["bundle"])
        assert "of a limit of 400000000, of which it allows 95%" in shown["verdict"]["evidence"][0]
        assert shown["process"]["pid"] == verdict["pid"]
        assert any(frame["function"] == "grow" for frame in shown["holders"][0]["stack"])


def test_other_ends(oomrec, cluster):
    """The negative controls. Nobody sees a crash here, unless the kernel logs it."""
    run = cluster("others")
    oomrec("recover")
    codes = [oomrec.json("show", path)["verdict"]["code"] for path in run.bundles()]
    assert run.json() == [] and set(codes) <= {"crashed", "killed_externally"}, str(run)
