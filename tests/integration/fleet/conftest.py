"""Fixtures: a folder of rows, and the command `oomrec fleet` in this process.

It is called as a function: Python's start and DuckDB's import would take most of a test's time.
"""

import json

import pytest
import schemas

UNTIL = ("--until", "2026-12-01")


@pytest.fixture(scope="session", autouse=True)
def packages():
    for name in ("duckdb", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'oomrec[fleet]'")


@pytest.fixture
def fleet(capsys):
    """fleet(words…) is (exit code, stdout, stderr)."""
    from oomrec.fleet._cli import main

    def run(*words):
        exit_code = main([*map(str, words)])
        return (exit_code, *capsys.readouterr())

    return run


@pytest.fixture
def answer(fleet):
    """answer(words…) is the JSON that the command prints, until the end of the rows' month."""

    def ask(*words, exit_code=0):
        since = ("--since", "7d") if words[0] in ("top", "new", "regressed", "show") else ()
        code, output, errors = fleet(words[0], *since, *words[1:], "--json", *UNTIL)
        assert code == exit_code, errors
        found = json.loads(output)
        if "retry_with_bytes" in found:  # a death
            schemas.check(
                "row", {name: found[name] for name in found if name != "retry_with_bytes"}
            )
        else:
            name = words[0] if words[0] not in ("new", "regressed") else "top"
            schemas.check(f"fleet_{name}", found)
            del found["schema_version"]
        return found

    return ask
