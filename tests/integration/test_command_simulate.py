"""`oomrec simulate`: shows each verdict without waiting for a real death."""

import json
from pathlib import Path

import pytest
from machine_isolation import may_mount

# Each verdict, and how its process ends.
KINDS = {
    "soft_limit": "exited 1",
    "address_space_limit": "exited 1",
    "data_limit": "exited 1",
    "request_too_large": "exited 1",
    "allocation_failed": "exited 1",
    "injected": "exited 1",
    "thread_creation_failed": "exited 1",
    "fork_failed": "exited 1",
    "mapping_failed": "exited 1",
    "device_out_of_memory": "exited 1",
    "device_limit": "exited 1",
    "device_fragmentation": "exited 1",
    "null_dereference": "signal 11",
    "uncaught_bad_alloc": "signal 6",
    "crash_after_refusal": "signal 6",
    "shared_memory_full": "signal 7",
    "near_limit": "recovered",
    "cgroup_oom_kill": "oom_killed",
    "system_oom_kill": "oom_killed",
    "killed_near_limit": "signal 9",
    "terminated_under_pressure": "signal 15",
    "killed_externally": "signal 9",
    "crashed": "signal 11",
    "child_killed": "exited 1",
}


@pytest.mark.parametrize("kind, outcome", KINDS.items())
def test_each_kind_has_its_verdict(oomrec, tmp_path, kind, outcome):
    if kind == "shared_memory_full" and not may_mount():
        pytest.skip("no file system can be mounted here")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    made = oomrec.json("simulate", kind, env={"TMPDIR": temporary})
    assert list(temporary.iterdir()) == []
    bundle = Path(made["bundle"])
    assert made == {"schema_version": 1, "kind": kind, "bundle": str(bundle)}
    assert bundle.parent == oomrec.dump_dir
    metadata = json.loads((bundle / "metadata.json").read_text())
    assert (metadata["reason"], metadata["verdict"]["code"]) == ("simulated", kind)
    assert metadata["verdict"]["evidence"][0] == "simulated by `oomrec simulate`"
    assert metadata["outcome"] == outcome
    has_kernel_line = any(line.startswith("kernel: ") for line in metadata["verdict"]["evidence"])
    assert has_kernel_line == (outcome == "oom_killed")
    shown = oomrec.json("show", bundle)
    assert (shown["trigger"], shown["verdict"]) == ("simulated", metadata["verdict"])
    recording = oomrec.json("show", bundle / "recording.oomrec")
    assert recording["trigger"] == "simulated"
    row, *others = oomrec.json("ls")["bundles"]
    assert (row["trigger"], row["verdict"]) == ("simulated", kind)
    workers = ["cgroup_oom_kill"] if kind == "child_killed" else []
    assert [(other["trigger"], other["verdict"]) for other in others] == [
        ("simulated", worker) for worker in workers
    ]
    assert oomrec.sessions_left() == []


def test_the_list_of_kinds_is_complete(oomrec):
    listed = oomrec.json("simulate", "--list")
    assert [row["kind"] for row in listed["kinds"]] == list(KINDS)
    page = oomrec("simulate", "--list").stdout.splitlines()
    assert [line.split()[0] for line in page] == [row["kind"] for row in listed["kinds"]]


def test_the_page_says_where_the_bundle_is(oomrec, tmp_path):
    run = oomrec("simulate", "--dump-dir", "elsewhere", "request_too_large")
    bundle, how = run.stdout.splitlines()
    assert Path(bundle).parent == tmp_path / "elsewhere"
    assert how == f"read it with: oomrec show {bundle}"
    assert run.exit_code == 0 and run.stderr == ""


def test_settings_of_other_runs_do_not_apply(oomrec):
    others = {"OOMREC_LIMIT": "1K", "OOMREC_FAIL": "heap", "OOMREC_MODE": "off"}
    assert oomrec.json("simulate", "data_limit", env=others)["kind"] == "data_limit"


def test_settings_of_other_runs_write_no_further_bundle(oomrec):
    others = {"OOMREC_WARN": "10", "OOMREC_DUMP_AT_EXIT": "1"}
    simulated = oomrec("simulate", "soft_limit", env=others)
    assert len(simulated.bundles()) == 1


def test_bundles_of_real_deaths_are_not_pruned(oomrec, preload, victim):
    for _ in range(2):
        preload(victim("naive_malloc"))
    bundles = set(oomrec.dump_dir.iterdir())
    assert len(bundles) == 2
    oomrec("simulate", "soft_limit", env={"OOMREC_MAX_DUMPS": "2"})
    assert bundles < set(oomrec.dump_dir.iterdir())
    # And retention removes it first.
    run = preload(victim("naive_malloc"), env={"OOMREC_MAX_DUMPS": "3"})
    reasons = [json.loads((b / "metadata.json").read_text())["reason"] for b in run.bundles()]
    assert reasons == ["allocation_failed"] * 3


@pytest.mark.parametrize(
    "words, what",
    [
        (["soft_limt"], "Did you mean `oomrec simulate soft_limit`?"),
        (["requested"], "`oomrec simulate --list` lists the kinds."),
        ([], "`oomrec simulate --list` lists the kinds."),
    ],
)
def test_an_unknown_kind(oomrec, words, what):
    run = oomrec("simulate", *words)
    assert run.exit_code == 2 and run.stderr.splitlines()[1].strip() == what
