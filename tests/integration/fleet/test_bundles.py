"""The first command of docs/fleet.md: a folder of real bundles on one machine, by the command itself."""

import json
import sys

import pytest
from conftest import SOURCE, written

PROGRAM = """
def remember(kept):
    kept.append(bytearray(4 << 20))

def {name}():
    kept = []
    while True:
        remember(kept)

{name}()
"""


@pytest.fixture
def environment(oomrec):
    if "row" not in oomrec("export", "--help").stdout:
        pytest.skip("this build has no rows")
    return {"PYTHONPATH": str(SOURCE / "tools" / "python"), "OOMREC_PYTHON": sys.executable}


def test_a_folder_of_bundles_needs_no_setup(oomrec, environment, tmp_path):
    for name, times in (("serve", 2), ("train", 1)):
        (tmp_path / f"{name}.py").write_text(PROGRAM.format(name=name))
        for _ in range(times):
            labels = {"OTEL_SERVICE_NAME": name}
            run = oomrec("run", "--limit", "96M", "--", sys.executable, f"{name}.py", env=labels)
            assert run.exit_code == 1, run

    shown = oomrec("fleet", "top", oomrec.dump_dir, "--json", env=environment)
    assert shown.exit_code == 0, shown
    causes = json.loads(shown.stdout)["signatures"]
    assert [
        (row["deaths"], row["services"]) for row in causes if "remember" in row["signature"]
    ] in (
        [(2, ["serve"]), (1, ["train"])],
        [(1, ["train"]), (2, ["serve"])],
    )
    one = oomrec("fleet", "show", "serve", oomrec.dump_dir, env=environment)
    assert one.exit_code == 0 and "remember (" in one.stdout
    page = oomrec("fleet", "report", oomrec.dump_dir, "-o", "triage.html", env=environment)
    assert page.exit_code == 0 and "remember" in (tmp_path / "triage.html").read_text()


def test_without_the_python_package_it_says_so(oomrec, tmp_path):
    interpreter = written(tmp_path / "python", f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    interpreter.chmod(0o700)
    run = oomrec("fleet", "top", env={"OOMREC_PYTHON": str(interpreter)}, exits=2)
    assert "has no module oomrec" in run.stderr and "pip install 'oomrec[fleet]'" in run.stderr
