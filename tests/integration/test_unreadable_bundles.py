"""Bundles that cannot be read, or only in part: what is not known is said, and why."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

JUDGED_ALONE = "verdict and outcome are judged by the recording alone"
NOBODY = 65534


@pytest.fixture
def bundle(preload):
    return preload(sys.executable, "-c", "bytearray(1 << 40)").only_bundle()


@pytest.mark.parametrize(
    "name, damage, said",
    [
        ("metadata.json", lambda file: file.unlink(), f"is missing: {JUDGED_ALONE}"),
        ("metadata.json", lambda file: file.write_text("{"), f"is no JSON: {JUDGED_ALONE}"),
        ("metadata.json", lambda file: file.write_text("[]"), "holds no JSON object: verdict"),
        ("manifest.json", lambda file: file.unlink(), "is missing: when the bundle was written"),
    ],
)
def test_what_a_damaged_file_would_have_told_is_noted(oomrec, bundle, name, damage, said):
    whole = oomrec.json("show", bundle)
    assert not [note for note in whole["notes"] if ".json" in note]
    damage(bundle / name)

    told = oomrec.json("show", bundle)

    assert any(note.startswith(f"{name} {said}") for note in told["notes"]), told["notes"]
    # What the rest of the bundle knows stays.
    for key in ("trigger", "request", "limit"):
        assert told[key] == whole[key], key
    assert told["verdict"]["code"] == whole["verdict"]["code"]
    page = " ".join(oomrec("show", bundle).stdout.split())
    assert f"{name} {said}" in page


def test_without_any_of_its_json_files_a_dead_process_does_not_run(oomrec, bundle):
    for file in bundle.glob("*.json"):
        file.unlink()
    told = oomrec.json("show", bundle)
    assert told["outcome"] == "unknown" and told["request"]["size"] > 2**40
    assert len([note for note in told["notes"] if "is missing" in note]) == 2


@pytest.fixture
def shared(bundle):
    """A dump directory that everybody may look into, with a bundle as its owner's program left it."""
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


def test_another_users_bundle_is_refused_in_words(as_nobody, shared):
    [bundle] = shared.iterdir()
    refused = as_nobody("show", bundle)
    assert refused.exit_code == 2 and f"{bundle} may not be read: Permission denied" in str(refused)
    assert "It belongs to root, with mode 0700" in refused.stderr
    # The directory is open, what is in it is not.
    bundle.chmod(0o755)
    refused = as_nobody("show", bundle)
    assert refused.exit_code == 2 and "recording.oomrec may not be read" in refused.stderr
    (bundle / "recording.oomrec").chmod(0o644)
    told = as_nobody("show", "--json", bundle)
    assert told.exit_code == 0, str(told)
    notes = json.loads(told.stdout)["notes"]
    assert f"metadata.json cannot be read: Permission denied: {JUDGED_ALONE}" in notes


def test_a_directory_of_another_user(as_nobody, shared):
    [bundle] = shared.iterdir()
    listed = as_nobody("ls", shared)
    assert listed.exit_code == 1 and f"{bundle} may not be read: Permission denied" in listed.stderr
    newest = as_nobody("merge", shared, "-o", "job")
    assert newest.exit_code == 2 and "may not be read: Permission denied" in newest.stderr
    shared.chmod(0o700)
    for words in (["ls", shared], ["show", shared], ["show", bundle]):
        refused = as_nobody(*words)
        assert refused.exit_code == 2, str(refused)
        assert "may not be read: Permission denied" in refused.stderr
