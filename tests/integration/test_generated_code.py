"""Code that was made at run time has no unwind information: stacks go on through it, and with a map of it
its functions have names."""

import pytest
from pythons import PYTHON_VERSIONS


def first(shown: dict) -> list[str]:
    return [frame["function"] for frame in shown["holders"][0]["stack"]]


def assert_none_is_cut(shown: dict) -> None:
    assert shown["recording"]["truncated_stacks"] == 0, shown["recording"]
    assert not any("further out" in (name or "") for name in first(shown)), shown["holders"][0]


PYTHON = """
kept = []
def leak(): kept.append(bytearray(100_000))
def serve(count):
    for _ in range(count): leak()
def in_a_thread(count):
    import threading
    thread = threading.Thread(target=serve, args=(count,))
    thread.start()
    thread.join()
serve(300)
in_a_thread(300)
"""


@pytest.mark.parametrize("mode", ["sampled", "exact"])
@pytest.mark.parametrize(
    "version",
    [version for version in PYTHON_VERSIONS if int(version.split(".")[1].rstrip("t")) >= 12],
)
def test_pythons_trampolines(oomrec, python, tmp_path, version, mode):
    """-X perf calls each function of Python through a few instructions of its own."""
    (tmp_path / "leaks.py").write_text(PYTHON)
    run = oomrec(
        "run", "--mode", mode, "--dump-at-exit", "--", python(version), "-X", "perf", "leaks.py"
    )
    shown = oomrec.json("show", run.only_bundle())
    assert_none_is_cut(shown)
    stacks = [
        [frame["function"] for frame in holder["stack"] if frame["kind"] == "python"]
        for holder in shown["holders"][:2]
    ]
    assert ["leak", "serve", "<module>"] in stacks, stacks
    assert ["leak", "serve", "run", "_bootstrap_inner", "_bootstrap"] in [
        [name.rsplit(".")[-1] for name in stack] for stack in stacks
    ]
    outermost = shown["holders"][0]["stack"][-1]["function"]
    assert outermost in ("_start", "clone3", "__clone3"), shown["holders"][0]["stack"][-3:]


LUA = """
local ffi = require("ffi")
ffi.cdef[[void *malloc(size_t);]]
local keep = {}
local function leak(i) keep[i] = ffi.C.malloc(100000) end
for i = 1, 1000 do leak(i) end
"""


@pytest.mark.needs_program("luajit")
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_luajits_traces(oomrec, tmp_path, mode):
    """They run in the frame of its interpreter, which is in assembly."""
    (tmp_path / "leaks.lua").write_text(LUA)
    run = oomrec("run", "--mode", mode, "--dump-at-exit", "--", "luajit", "leaks.lua")
    shown = oomrec.json("show", run.only_bundle())
    assert_none_is_cut(shown)
    assert shown["holders"][0]["bytes"] > 90_000_000
    assert "lua_pcall" in first(shown) and "main" in first(shown), first(shown)
