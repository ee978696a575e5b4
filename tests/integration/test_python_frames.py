"""Python frames as the recorder reads them, compared with the interpreter's own."""

import json
import os

import pytest
from conftest import distinct_versions, rounds
from pythons import PYTHON_VERSIONS

SOURCES = __file__.rsplit("/", 1)[0] + "/python"


@pytest.fixture(scope="session")
def probe(build_dir):
    """A library with the recorder's stack walker, loaded by ctypes instead of preloaded."""
    path = build_dir / "tests" / "integration" / "frames_probe.so"
    assert path.exists(), f"{path} is not built"
    return str(path)


@pytest.mark.parametrize("version", PYTHON_VERSIONS)
def test_every_frame_matches_the_interpreters(python, plain, probe, version, tmp_path):
    """File, function and line of the whole stack, in 120 situations, with the GIL and without."""
    run = plain(python(version), f"{SOURCES}/frames_truth.py", probe, tmp_path, exits=0)
    counted = json.loads(run.stdout)
    assert counted["wrong"] == 0, counted["examples"]
    assert counted["checked"] > 6000 and counted["situations"] > 115
    # 3,000 code objects were created and dropped; equal ones share an entry.
    assert counted["codes"] < 1500


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_daemon_threads_may_allocate_while_the_interpreter_ends(python, plain, probe, version):
    """Their thread states are freed while they run: a walk without checks crashed in 6 of 20 runs."""
    for _ in range(rounds(3, 20)):
        run = plain(python(version), f"{SOURCES}/frames_at_exit.py", probe, plain.directory)
        assert run.exit_code == 0 and run.stdout == "ended\n", str(run)


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_a_signal_handler_may_walk_at_any_instruction(python, plain, probe, version):
    run = plain(python(version), f"{SOURCES}/frames_in_signals.py", probe, plain.directory, exits=0)
    walks, foreign = map(int, run.stdout.split())
    assert walks > 1000 and foreign == 0


@pytest.mark.parametrize("version", PYTHON_VERSIONS)
def test_an_interpreter_in_a_local_scope_is_found(python, plain, probe, build_dir, version):
    """Loaded by dlopen(RTLD_LOCAL), initialized and ended twice in one process."""
    names = "'prefix', 'LIBDIR', 'INSTSONAME'"
    asked = f"import sysconfig; print(*sysconfig.get_config_vars({names}), sep='\\n')"
    prefix, folder, name = plain(python(version), "-c", asked).stdout.splitlines()
    library = f"{folder}/{name}"
    if ".so" not in name or not os.path.exists(library):
        pytest.skip(f"Python {version} has no shared library")
    run = plain(
        build_dir / "tests" / "integration" / "embed_local",
        library,
        probe,
        plain.directory,
        env={"PYTHONHOME": prefix},
    )
    frames = "3\n2\tinner\t<string>\n5\touter\t<string>\n6\t<module>\t<string>\n"
    lines = "started 2\nseen 0\nbefore 0\n" + (frames + "after 0\n") * 2
    assert run.stdout == lines, str(run)
