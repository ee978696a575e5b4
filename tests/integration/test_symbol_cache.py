"""The symbol names that show, stats and tree cache between commands."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

COMMANDS = [
    ["show", "--full"],
    ["show", "--json", "--top", "1000"],
    ["stats", "--json"],
    ["tree", "--min-percent", "0"],
]


@pytest.fixture
def bundle(oomrec, tmp_path):
    script = "kept = []\nwhile True:\n    kept.append(bytearray(20 << 20))"
    run = oomrec("run", "--limit", "128M", "--mode", "exact", "--", "python3", "-c", script)
    return run.only_bundle()


@pytest.fixture(autouse=True)
def own_cache(oomrec, tmp_path):
    oomrec.cache_dir = tmp_path / "cache"
    oomrec.cache_dir.mkdir()
    oomrec.environment["XDG_CACHE_HOME"] = str(oomrec.cache_dir)


def kept_files(oomrec) -> list[Path]:
    return sorted((oomrec.cache_dir / "oomrec").glob("*"))


def test_cached_names_do_not_change_the_output(oomrec, bundle):
    for command in COMMANDS:
        anew = oomrec(*command, "--no-cache", bundle)
        assert anew.exit_code == 0 and anew.stderr == ""
        assert kept_files(oomrec) == [] or command != COMMANDS[0]
        for _ in range(2):
            assert oomrec(*command, bundle).stdout == anew.stdout
    files = kept_files(oomrec)
    assert files and (oomrec.cache_dir / "oomrec").stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)


def test_concurrent_commands_and_damaged_files_do_not_change_the_output(oomrec, bundle):
    anew = oomrec("show", "--full", "--no-cache", bundle).stdout
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda _: oomrec("show", "--full", bundle).stdout, range(16)))
    assert at_once == [anew] * 16
    files = kept_files(oomrec)
    whole = {file: file.read_bytes() for file in files}

    for number, file in enumerate(files):
        data = whole[file]
        file.write_bytes([b"", data[: len(data) // 2], data[:-1] + b"x", b"#!" * 5000][number % 4])
    assert oomrec("show", "--full", bundle).stdout == anew
    assert {file: file.read_bytes() for file in kept_files(oomrec)} == whole


def test_an_unusable_cache_is_not_an_error(oomrec, bundle, tmp_path):
    anew = oomrec("show", "--no-cache", bundle).stdout
    (tmp_path / "file").touch()
    for place in ["/nowhere", "relative", str(tmp_path / "file"), "/proc", ""]:
        run = oomrec("show", bundle, env={"XDG_CACHE_HOME": place, "HOME": place})
        assert (run.exit_code, run.stdout, run.stderr) == (0, anew, ""), place
    assert kept_files(oomrec) == []


@pytest.mark.needs_program("objcopy")
def test_debug_information_added_later_is_used(oomrec, victim, tmp_path):
    """As after installing a -dbg package: a file beside the program, named by its .gnu_debuglink."""
    program, debug = tmp_path / "leak", tmp_path / "leak.debug"
    shutil.copy(victim("leak"), program)
    for step in (
        ["--only-keep-debug", program, debug],
        ["--strip-all", program],
        [f"--add-gnu-debuglink={debug}", program],
    ):
        subprocess.run(["objcopy", *step], check=True, cwd=tmp_path)
    hidden = debug.rename(tmp_path / "not_yet.debug")
    bundle = oomrec("run", "--limit", "64M", "--", program).only_bundle()

    def text(*options):
        return oomrec("show", "--full", bundle, *options).stdout

    without = text("--no-cache")
    assert "leak.c" not in without
    assert text() == text() == without
    hidden.rename(debug)
    with_lines = text("--no-cache")
    assert "leak.c" in with_lines
    assert text() == text() == with_lines
    debug.unlink()
    assert text() == without
