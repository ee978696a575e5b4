"""Passwords and tokens of command lines and variables reach nothing that oomrec writes or shows
(the table of forms is in tests/unit/common/session/secrets_test.cpp), and --arguments."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import reading_lines
from conftest import written
from watching import Watch, wait_for

# Each contains `hunter` where the secret is.
ARGUMENTS = [
    "--pass", "hunter0", "--token=hunter1", "--header", "Authorization: Bearer hunter2", "mysql -phunter3 db",
    "curl -u user:hunter4 http://h/", "https://h/?token=hunter5&page=7", '{"password":"hunter6"}',
    "host=h password=hunter7 user=me", "curl -b session=hunter8", "Cookie: session=hunter9", "sk-live-hunter10",
    "postgres://me:hunter11@h/db", "API_KEY=hunter12",
]  # fmt: skip
KEPT = ["--lr", "0.5", "--max-tokens", "512"]
COMMAND = (
    "curl -s -u me:hunter20 -H 'Authorization: Bearer hunter21' https://h/?token=hunter22; true"
)

HOLDS = """
import sys
held = bytearray(64 << 20)
print("ready", flush=True)
sys.stdin.read()
"""


def files_below(*directories: Path) -> list[Path]:
    found = [path for directory in directories for path in directory.rglob("*") if path.is_file()]
    assert found
    return found


def check_files(*directories: Path):
    for path in files_below(*directories):
        assert b"hunter" not in path.read_bytes(), path


@pytest.fixture
def holds(tmp_path):
    script = written(tmp_path / "holds.py", HOLDS)
    return script


def test_a_bundle_has_no_secret_and_all_else(oomrec, preload, victim):
    run = preload(victim("three_failures"), *ARGUMENTS, *KEPT, env={"OOMREC_ON_OOM_EXEC": COMMAND})
    bundle = run.only_bundle()
    check_files(bundle)
    environment = (bundle / "environment.json").read_text()
    assert all(f'"{word}"' in environment for word in KEPT)
    assert "curl -s -u me:*** -H 'Authorization: ***' https://h/?token=***; true" in environment
    for command, words in reading_lines(oomrec, bundle):
        shown = oomrec(command, *words)
        assert "hunter" not in shown.stdout + shown.stderr, command


@pytest.mark.needs_cgroup_write
def test_the_bundle_of_an_unrecorded_program_has_none(oomrec, victim, cgroup):
    """The launcher reads the command line itself."""
    grow = [sys.executable, victim("python/grow_objects.py")]
    run = oomrec(
        "run", "--on-oom-exec", COMMAND, "--", "env", "-i", *grow, *ARGUMENTS, *KEPT,
        preexec_fn=cgroup("100M").enter,
    )  # fmt: skip
    check_files(run.only_bundle())
    assert '"--max-tokens"' in (run.only_bundle() / "environment.json").read_text()


def test_nothing_that_shows_a_running_process_has_one(oomrec, preload, holds):
    process = preload.start(
        "python3", holds, *ARGUMENTS, *KEPT, stdin=subprocess.PIPE, env={"OOMREC_LIMIT": "80M"}
    )
    process.stdout.readline()
    check_files(preload.session_dir)
    top = oomrec("top", "--once", "--json", process.pid)
    assert top.exit_code == 0 and '"--max-tokens"' in top.stdout and "hunter" not in top.stdout
    for words in (["top", "--once", process.pid], ["leaks", process.pid], ["top"], ["ls"]):
        shown = oomrec(*words)
        assert "hunter" not in shown.stdout + shown.stderr, words


def test_an_unrecorded_process_is_observed_without_any(oomrec, preload, holds, tmp_path):
    process = preload.start(
        "python3", holds.name, *ARGUMENTS[:3], cwd=tmp_path, stdin=subprocess.PIPE,
        env={"LD_PRELOAD": None},
    )  # fmt: skip
    process.stdout.readline()
    shown = oomrec("monitor", "--duration", "0.2", process.pid)
    assert "***" in shown.stdout + shown.stderr, str(shown)
    assert "hunter" not in shown.stdout + shown.stderr
    oomrec("diagnose", "--output", tmp_path / "evidence", "--duration", "0", process.pid)
    check_files(tmp_path / "evidence")


def test_an_alert_has_none(oomrec, preload, victim, tmp_path):
    alerts = tmp_path / "alerts.jsonl"
    with_metrics = ["--alert-exec", f"cat >> {alerts}", "--textfile", str(tmp_path)]
    watching = Watch(oomrec, *with_metrics, MEMORY_PRESSURE_WATCH="/dev/null")
    process = preload.start(victim("dies"), "waits", *ARGUMENTS, *KEPT, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    text = wait_for(lambda: alerts.exists() and alerts.read_text())
    assert "--max-tokens 512" in text and "hunter" not in text
    watching.process.terminate()
    log = "".join(stream.decode() for stream in watching.process.communicate())
    assert "hunter" not in log + (tmp_path / "oomrec.prom").read_text()


# --- --arguments ----------------------------------------------------------------------------------


def argv(bundle: Path, oomrec) -> list[str]:
    return oomrec.json("show", bundle)["process"]["argv"]


@pytest.mark.parametrize("way", ["run", "preload"])
def test_only_the_names_of_options_are_recorded(oomrec, preload, victim, way):
    words = [victim("three_failures"), "data.csv", "--lr", "0.5", "--name=value", "-j8", "--flag"]
    if way == "run":
        run = oomrec("run", "--arguments", "names", "--", *words)
    else:
        run = preload(*words, env={"OOMREC_ARGUMENTS": "names"})
    program = str(words[0])
    assert argv(run.only_bundle(), oomrec) == [program, "--lr", "--name", "-j", "--flag"]
    for path in files_below(run.only_bundle()):
        content = path.read_bytes()
        assert b"data.csv" not in content and b"value\0" not in content, path


@pytest.mark.needs_cgroup_write
def test_the_same_of_an_unrecorded_program(oomrec, victim, cgroup):
    grow = [sys.executable, victim("python/grow_objects.py")]
    run = oomrec(
        "run", "--arguments", "names", "--", "env", "-i", *grow, "data.csv", "--lr=0.5",
        preexec_fn=cgroup("100M").enter,
    )  # fmt: skip
    recorded = argv(run.only_bundle(), oomrec)  # perhaps as env was called, before its exec
    assert recorded[-1] == "--lr" and not {"data.csv", "--lr=0.5", "LD_PRELOAD"} & set(recorded)


def test_all_is_the_default(oomrec, preload, victim):
    for env in ({}, {"OOMREC_ARGUMENTS": "all"}):
        run = preload(victim("three_failures"), "data.csv", "--lr", "0.5", env=env)
        assert argv(run.bundles()[-1], oomrec)[1:] == ["data.csv", "--lr", "0.5"]


def test_another_word_is_rejected(oomrec):
    run = oomrec("run", "--arguments", "some", "--", "true")
    assert run.exit_code == 125 and "all or names" in run.stderr
