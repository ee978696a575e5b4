"""Bundles that cannot be read, or only partly: what is unknown is reported with the reason."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

JUDGED_ALONE = "verdict and outcome come from the recording alone"
NOBODY = 65534


@pytest.fixture
def bundle(preload):
    return preload(sys.executable, "-c", "bytearray(1 << 40)").only_bundle()


@pytest.mark.parametrize(
    "name, damage, said",
    [
        ("metadata.json", lambda file: file.unlink(), f"is missing: {JUDGED_ALONE}"),
        ("metadata.json", lambda file: file.write_text("{"), f"is not JSON: {JUDGED_ALONE}"),
        ("metadata.json", lambda file: file.write_text("[]"), "is not a JSON object: verdict"),
        ("manifest.json", lambda file: file.unlink(), "is missing: the time of writing is unknown"),
    ],
)
def test_facts_lost_with_a_damaged_file_are_noted(oomrec, bundle, name, damage, said):
    whole = oomrec.json("show", bundle)
    assert not [note for note in whole["notes"] if ".json" in note]
    damage(bundle / name)

    result = oomrec.json("show", bundle)

    assert any(note.startswith(f"{name} {said}") for note in result["notes"]), result["notes"]
    # Facts from the rest of the bundle are kept.
    for key in ("trigger", "request", "limit"):
        assert result[key] == whole[key], key
    assert result["verdict"]["code"] == whole["verdict"]["code"]
    page = " ".join(oomrec("show", bundle).stdout.split())
    assert f"{name} {said}" in page


def test_a_dead_process_without_json_files_is_not_shown_as_running(oomrec, bundle):
    for file in bundle.glob("*.json"):
        file.unlink()
    result = oomrec.json("show", bundle)
    assert result["outcome"] == "unknown" and result["request"]["size"] > 2**40
    assert len([note for note in result["notes"] if "is missing" in note]) == 2


@pytest.fixture
def shared(bundle):
    """A world-readable dump directory with a bundle as its owner's program wrote it."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    with tempfile.TemporaryDirectory(prefix="oomrec-shared-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        shutil.copytree(bundle, directory / bundle.name)
        yield directory


@pytest.fixture
def as_nobody(oomrec):
    def run(*words):
        try:
            process = oomrec.start(*words, user=NOBODY, group=NOBODY, extra_groups=[])
        except PermissionError:
            pytest.skip("the command is where nobody else may go")
        return oomrec.finish(process)

    return run


def test_another_users_bundle_is_rejected_with_a_reason(as_nobody, shared):
    [bundle] = shared.iterdir()
    refused = as_nobody("show", bundle)
    assert refused.exit_code == 2 and f"cannot read {bundle}: Permission denied" in str(refused)
    assert "It belongs to root, with mode 0700" in refused.stderr
    # The directory is readable, its files are not.
    bundle.chmod(0o755)
    refused = as_nobody("show", bundle)
    assert (
        refused.exit_code == 2
        and f"cannot read {bundle}/recording.oomrec: Permission denied" in str(refused)
    )
    (bundle / "recording.oomrec").chmod(0o644)
    run = as_nobody("show", "--json", bundle)
    assert run.exit_code == 0, str(run)
    notes = json.loads(run.stdout)["notes"]
    assert f"metadata.json cannot be read: Permission denied: {JUDGED_ALONE}" in notes


def test_a_directory_of_another_user(as_nobody, shared):
    [bundle] = shared.iterdir()
    listed = as_nobody("ls", shared)
    assert listed.exit_code == 1 and f"cannot read {bundle}: Permission denied" in listed.stderr
    newest = as_nobody("merge", shared, "-o", "job")
    assert (
        newest.exit_code == 2
        and "cannot read " in newest.stderr
        and ": Permission denied" in newest.stderr
    )
    shared.chmod(0o700)
    for words in (["ls", shared], ["show", shared], ["show", bundle]):
        refused = as_nobody(*words)
        assert refused.exit_code == 2, str(refused)
        assert "cannot read " in refused.stderr and ": Permission denied" in refused.stderr
