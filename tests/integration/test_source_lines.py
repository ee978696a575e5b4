"""The source line below a frame: whether its file is here, and who may read it."""

import os
import tempfile
from pathlib import Path

import pytest
from report_page import Page

LEAK = """\
kept = []
def make_batch():
    return  bytearray(20 << 20)   # a batch
while True:
    kept.append(make_batch())
"""
BELOW = "leak.py:3 make_batch\n          return  bytearray(20 << 20)   # a batch\n"


@pytest.fixture
def bundle(oomrec, tmp_path):
    (tmp_path / "leak.py").write_text(LEAK)
    return oomrec("run", "--limit", "128M", "--", "python3", tmp_path / "leak.py").only_bundle()


def shown(oomrec, bundle, *options) -> str:
    run = oomrec("show", *options, bundle)
    assert run.exit_code == 0 and run.stderr == "", str(run)
    return run.stdout


def test_the_innermost_own_line_has_its_source(oomrec, bundle):
    text = shown(oomrec, bundle, "--top", "1")
    assert BELOW in text
    assert text.count("bytearray(20 << 20)") == 2  # for the request and for the holder
    assert "kept.append" not in text
    assert shown(oomrec, bundle, "--full", "--top", "1").count("kept.append(make_batch())") == 2
    assert "bytearray(20 << 20)" not in oomrec("show", "--json", bundle).stdout


def test_sources_that_were_moved(oomrec, bundle, tmp_path):
    moved = tmp_path / "moved" / tmp_path.name
    moved.mkdir(parents=True)
    (tmp_path / "leak.py").rename(moved / "leak.py")

    assert "bytearray" not in shown(oomrec, bundle)
    for place in [tmp_path / "moved", moved, "moved"]:
        assert BELOW in shown(oomrec, bundle, "--source-dir", place)


def test_a_changed_file_is_reported(oomrec, bundle, tmp_path):
    begun = (tmp_path / "leak.py").stat().st_mtime
    assert "line numbers may be off" not in shown(oomrec, bundle)
    (tmp_path / "leak.py").write_text(LEAK.replace("20 <<", "21 <<"))
    os.utime(tmp_path / "leak.py", (begun + 60, begun + 60))
    text = shown(oomrec, bundle)
    assert "bytearray(21 << 20)" in text
    assert "changed after the process started, so line numbers may be off" in " ".join(text.split())


def test_only_source_files_are_read(oomrec, tmp_path):
    """Not read: another suffix, a link to such a file, too large a file, a pipe."""
    (tmp_path / "secret").write_text(LEAK)
    (tmp_path / "link.py").write_text(LEAK)
    (tmp_path / "large.py").write_text(LEAK)
    (tmp_path / "pipe.py").write_text(LEAK)
    names = ["secret", "link.py", "large.py", "pipe.py"]
    bundles = {}
    for name in names:
        run = oomrec("run", "--limit", "128M", "--", "python3", tmp_path / name)
        bundles[name] = run.bundles()[-1]
        assert f"{name}:3 make_batch" in run.stderr
    (tmp_path / "link.py").unlink()
    (tmp_path / "link.py").symlink_to(tmp_path / "secret")
    with open(tmp_path / "large.py", "a") as file:
        file.write("#" * (5 << 20))
    (tmp_path / "pipe.py").unlink()
    os.mkfifo(tmp_path / "pipe.py")

    for name in names:
        assert "bytearray" not in shown(oomrec, bundles[name]), name


def test_source_lines_are_escaped(oomrec, bundle, tmp_path):
    line = "\x1b[31mreturn\x07\x9b" + "bytearray" * 1000
    (tmp_path / "leak.py").write_text(LEAK.replace("return", line))
    text = shown(oomrec, bundle)
    assert "?[31mreturn??" in text
    assert all(len(line) <= 100 for line in text.splitlines())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize(
    "owner, mode, passable, is_shown",
    [
        (65534, 0o600, True, True),  # owned by the recording's owner
        (0, 0o600, True, False),
        (0, 0o644, True, True),  # world-readable
        (0, 0o644, False, False),  # but its directory is closed
    ],
)
def test_root_shows_only_files_that_the_owner_may_read(oomrec, owner, mode, passable, is_shown):
    with tempfile.TemporaryDirectory() as folder:  # pytest's directories are private to one user
        script = Path(folder, "leak.py")
        script.write_text(LEAK)
        bundle = oomrec("run", "--limit", "128M", "--", "python3", script).only_bundle()
        os.chown(bundle / "recording.oomrec", 65534, 65534)
        os.chown(script, owner, owner)
        script.chmod(mode)
        os.chmod(folder, 0o755 if passable else 0o700)
        assert (BELOW in shown(oomrec, bundle)) == is_shown


def excerpts(oomrec, bundle, *options) -> dict[int, dict[int, str]]:
    """In the report's data: for each line of leak.py with an excerpt, the lines around it by number."""
    html = oomrec("report", "-o", "-", *options, bundle).stdout
    page = Page(html)
    strings, texts = page.json["strings"], page["excerpt_text"]
    found = {}
    for location, excerpt in enumerate(page["place_excerpt"]):
        if excerpt == 0 or not strings[page["place_file"][location]].endswith("leak.py"):
            continue
        ends = [0, *page["excerpt_end"]]
        lines = [strings[text] for text in texts[ends[excerpt - 1] : ends[excerpt]]]
        first = page["excerpt_first"][excerpt - 1]
        found[page["place_line"][location]] = dict(enumerate(lines, first))
    return found


def test_a_report_has_the_lines_around_each_line(oomrec, bundle):
    whole = dict(enumerate(LEAK.splitlines(), 1))
    shown = excerpts(oomrec, bundle)
    # And other lines of which a small object was sampled.
    assert {3, 5} <= set(shown) and all(lines == whole for lines in shown.values()), shown


def test_a_long_file_is_cut_to_the_lines_around(oomrec, tmp_path):
    """And a tab is four spaces; the last line of the file ends without a line break."""
    before = "".join(f"x{n} = {n}\n" for n in range(1, 40))
    text = f"{before}if True:\n\tkept = bytearray(80 << 20)\nbytearray(80 << 20)"
    (tmp_path / "leak.py").write_text(text)
    bundle = oomrec("run", "--limit", "128M", "--", "python3", tmp_path / "leak.py").only_bundle()
    shown = excerpts(oomrec, bundle)
    assert {41, 42} <= set(shown), shown.keys()  # and lines of which small objects were sampled
    assert list(shown[41]) == [36, 37, 38, 39, 40, 41, 42]
    assert shown[41][41] == "    kept = bytearray(80 << 20)" and shown[41][36] == "x36 = 36"
    assert list(shown[42]) == [37, 38, 39, 40, 41, 42] and shown[42][42] == "bytearray(80 << 20)"


def test_a_changed_file_is_not_shown_around_a_line(oomrec, bundle, tmp_path):
    assert excerpts(oomrec, bundle)
    later = (tmp_path / "leak.py").stat().st_mtime + 60
    os.utime(tmp_path / "leak.py", (later, later))
    assert excerpts(oomrec, bundle) == {}


def test_a_redacted_report_has_no_source(oomrec, bundle):
    assert excerpts(oomrec, bundle, "--redact") == {}
    assert (
        "a batch"
        not in Page(oomrec("report", "-o", "-", "--redact", bundle).stdout).json["strings"]
    )
