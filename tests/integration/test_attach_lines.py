"""Bytes by line after `oomrec attach`, against tracemalloc's since the same moment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from attach_targets import needs_tracing
from line_shares import compare, share

pytestmark = needs_tracing

PROGRAMS = Path(__file__).resolve().parent.parent / "victims" / "python" / "attached_lines"


@pytest.mark.parametrize(
    "name",
    [
        "json_documents",
        "web_app",
        pytest.param("numpy_arrays", marks=pytest.mark.needs_numpy),
        pytest.param("pandas_frames", marks=pytest.mark.needs_module("pandas")),
        pytest.param("torch_training", marks=[pytest.mark.needs_torch, pytest.mark.full]),
    ],
)
def test_lines_hold_what_tracemalloc_says(oomrec, build_dir, tmp_path, monkeypatch, name):
    for variable in ("OOMREC_SESSION_DIR", "OOMREC_DUMP_DIR"):
        monkeypatch.setenv(variable, oomrec.environment[variable])
    script = (PROGRAMS / f"{name}.py").read_text()
    ours, theirs = compare(str(build_dir / "oomrec"), sys.executable, script, [], tmp_path)
    assert sum(theirs.values()) > 5 << 20
    assert share(ours, theirs) > 0.95
