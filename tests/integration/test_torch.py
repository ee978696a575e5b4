"""PyTorch on the CPU: a failure of its allocator is recorded with the Python line."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_torch


def test_a_failed_tensor_names_the_line(preload, plain, oomrec, victim):
    path = Path(victim("python/torch_failure.py"))
    alone, run = plain(sys.executable, path), preload(sys.executable, path)

    assert run.exit_code == alone.exit_code == 1
    assert run.stdout == alone.stdout == "trained\n"
    assert "DefaultCPUAllocator: can't allocate memory" in run.stderr
    shown = oomrec.json("show", run.only_bundle())
    assert shown["request"]["api"] == "posix_memalign"
    assert shown["request"]["size"] == 4096 << 30
    assert shown["verdict"]["code"] == "request_too_large"
    asked = next(f for f in shown["request"]["stack"] if f["kind"] == "python")
    assert asked["function"] == "ask"
    assert "torch.empty" in path.read_text().splitlines()[asked["line"] - 1]
    assert any("libc10" in (f["module"] or "") for f in shown["request"]["stack"])
