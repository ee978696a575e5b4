"""oomrec diagnose: is memory at risk? Exit codes, output lines, the directory of evidence."""

from __future__ import annotations

import json
import re

import pytest
from schemas import check
from watched_program import Program

FILES = [
    "diagnostic_summary.json", "environment.json", "manifest.json", "telemetry_timeline.json",
]  # fmt: skip
SHORT = ["--duration", "0.3", "--interval", "0.1"]
MIB = 1 << 20


def artifact_of(run, directory) -> dict:
    """The directory's files by name, each checked against its schema, and the lines that name it."""
    assert sorted(path.name for path in directory.iterdir()) == FILES
    files = {name: json.loads((directory / name).read_text()) for name in FILES}
    check("diagnose_summary", files["diagnostic_summary.json"])
    check("diagnose_environment", files["environment.json"])
    check("diagnose_manifest", files["manifest.json"])
    check("diagnose_timeline", files["telemetry_timeline.json"])
    manifest = files["manifest.json"]
    assert sorted(manifest["files"]) == FILES and manifest["exit_code"] == run.exit_code
    assert manifest["risk_detected"] == (run.exit_code == 2) and "error" not in manifest
    lines = run.stdout.splitlines()
    assert lines[0] == f"Artifact: {directory}"
    assert lines[1] == f"Status: {'MEMORY_RISK' if run.exit_code == 2 else 'OK'}"
    assert lines[2].startswith("Findings: ")
    return files


def test_a_healthy_machine(oomrec, fake_gpu, tmp_path):
    env = {**fake_gpu, "FAKE_NVML": "0:total=8G,used=6G"}
    run = oomrec("diagnose", *SHORT, "--output", "evidence", env=env, exits=0)
    files = artifact_of(run, tmp_path / "evidence")
    summary = files["diagnostic_summary.json"]
    assert summary["backend"] == "cuda" and summary["utilization_ratio"] == 0.75
    assert summary["suggestions"] == [] and run.stdout.endswith("Findings: none\n")
    timeline = files["telemetry_timeline.json"]
    assert 1 <= len(timeline["timestamps"]) <= 5 and timeline["allocated"][0] == 6 << 30
    environment = files["environment.json"]
    assert environment["devices"][0]["total_bytes"] == 8 << 30
    assert environment["python_version"] and "numpy" in environment["python_packages"]
    assert files["manifest.json"]["command_line"][:2] == ["oomrec", "diagnose"]


def test_high_utilization_is_a_risk(oomrec, fake_gpu, tmp_path):
    env = {**fake_gpu, "FAKE_NVML": "0:total=1000M,used=850M"}
    run = oomrec("diagnose", *SHORT, "--output", "evidence", env=env, exits=2)
    summary = artifact_of(run, tmp_path / "evidence")["diagnostic_summary.json"]
    assert summary["risk_flags"] == {
        "oom_occurred": False, "high_utilization": True, "fragmentation_warning": False,
    }  # fmt: skip
    assert summary["suggestions"] and "85.0 % of the device is in use" in run.stdout


def test_a_process_with_a_failure_is_at_risk(oomrec, preload, tmp_path):
    program = Program(preload.start)
    run = oomrec("diagnose", *SHORT, "--output", "before", program.pid, exits=0)
    program.do(20, "refuse")
    run = oomrec("diagnose", *SHORT, "--output", "after", program.pid, exits=2)
    files = artifact_of(run, tmp_path / "after")
    summary = files["diagnostic_summary.json"]
    assert summary["num_ooms"] == 1 and summary["risk_flags"]["oom_occurred"]
    assert summary["peak_bytes"] > 20 * MIB
    observed = files["environment.json"]["observed"]
    assert observed["pid"] == program.pid and observed["recorded"]
    assert "Findings: memory ran out: 1 time\n" in run.stdout


def test_directory_names_have_the_time_and_do_not_collide(oomrec, tmp_path):
    (tmp_path / "there").mkdir()
    runs = [
        oomrec.start("diagnose", "--device", "cpu", *SHORT, "--output", "there") for _ in range(3)
    ]
    for run in runs:
        assert oomrec.finish(run).exit_code in (0, 2)
    names = [path.name for path in (tmp_path / "there").iterdir()]
    assert len(names) == 3
    assert all(re.fullmatch(r"oomrec-diagnose-\d{8}-\d{6}(-\d+)?", name) for name in names)
    for name in ([], ["--name", "nightly"]):
        assert oomrec("diagnose", "--device", "cpu", *SHORT, *name).exit_code in (0, 2)
    assert len(list(tmp_path.glob("oomrec-diagnose-*"))) == 1
    assert len(list(tmp_path.glob("nightly-20*"))) == 1


def test_its_directory_is_not_a_bundle(oomrec, tmp_path):
    run = oomrec("diagnose", "--device", "cpu", *SHORT, "--output", "oom_dumps/evidence")
    assert run.exit_code in (0, 2), str(run)
    listed = oomrec("ls", "oom_dumps")
    assert listed.exit_code == 1 and "?" not in listed.stdout, str(listed)
    for command in ("show", "analyze"):
        refused = oomrec(command, "oom_dumps/evidence")
        assert refused.exit_code == 2 and "was written by `oomrec diagnose`" in refused.stderr
        assert "Its diagnostic_summary.json has the findings" in refused.stderr
    advised = "oom_dumps/evidence/telemetry_timeline.json"
    assert f"`oomrec analyze {advised}`" in refused.stderr
    assert oomrec("analyze", advised).exit_code == 0


@pytest.mark.parametrize(
    "words, problem",
    [
        (["--device", "mps"], "there is no device mps"),
        (["--device", "7"], "there is no device 7"),
        (["--no-such"], "unknown option --no-such"),
        (["--duration", "x"], "invalid value 'x' for --duration"),
        (["999999999"], "there is no process 999999999"),
        (["--output", "file"], "cannot be created: File exists"),
        (["--output", "/proc/none/here"], "cannot be created"),
    ],
)
def test_failure_and_bad_input_exit_with_1(oomrec, tmp_path, words, problem):
    (tmp_path / "file").write_text("")
    run = oomrec("diagnose", *SHORT, *words)
    assert run.exit_code == 1 and problem in run.stderr, str(run)
