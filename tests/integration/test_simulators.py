"""Python bytes and numpy arrays grow by half each round, under an RLIMIT_AS that the script sets."""

import sys
from pathlib import Path

import pytest

VICTIMS = [
    ("bytes", 'b"x" * size'),
    pytest.param("doubles", "np.ones(size // 8)", marks=pytest.mark.needs_numpy),
]


@pytest.mark.parametrize("what, line_text", VICTIMS)
def test_the_bundle_names_size_line_and_limit(preload, plain, oomrec, victim, what, line_text):
    """The size is exact, the line is the requesting one, and the C frames below end in malloc's caller.

    Output and exit code are unchanged. On stderr only our own lines are new.
    """
    path = Path(victim("python/grow_by_half.py"))
    alone, run = plain(sys.executable, path, what), preload(sys.executable, path, what)

    assert run.exit_code == alone.exit_code == 1
    theirs = [line for line in run.stderr.splitlines() if not line.startswith("oomrec:")]
    assert theirs == alone.stderr.splitlines()
    assert run.stdout == alone.stdout
    refused = int(run.stdout.split("refused ")[1].split()[0])
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "address_space_limit"
    assert shown["limit"]["kind"] == "rlimit_as" and shown["limit"]["bytes"] == 1 << 29
    assert shown["request"]["error"] == "ENOMEM"
    header = shown["request"]["size"] - refused  # of a bytes object
    assert header == 0 if what == "doubles" else 0 < header <= 64
    stack = shown["request"]["stack"]
    asked = next(f for f in stack if f["kind"] == "python" and f["file"] == str(path))
    assert line_text in path.read_text().splitlines()[asked["line"] - 1]
    assert stack[0]["kind"] == "native"
    if what == "doubles":
        assert any("numpy" in (f["module"] or "") for f in stack)
