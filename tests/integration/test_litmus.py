"""The litmus tests (tests/unit/weak_memory) fail if one of the barriers they are about is left out."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VIEW = "common/session/view.cpp"
REUSE = "recorder/session/reuse.h"
RELAXED = "std::memory_order_relaxed"
RELAXED_LOAD = "reinterpret_cast<const Atomic<u64>*>(from)->load(std::memory_order_relaxed)"
# Of each barrier: the test that fails without it, its file, a pattern that occurs there once, and its replacement.
BARRIERS = {
    "an entry's reader, before the end": ("reuse", VIEW, r"load_barrier\(\);\s+const bool same", "const bool same"),
    "an entry's reader, the first word before": ("reuse", VIEW, r"first = load\(from\);\s+std::memcpy",
                                                 f"first = {RELAXED_LOAD}; std::memcpy"),
    "an entry's reader, the first word after": ("reuse", VIEW, r"load\(from\) == first &&",
                                                f"{RELAXED_LOAD} == first &&"),
    "an entry's reader, the version": ("reuse", VIEW, r"\|\| load<u32>\(from \+ version_at\) == version",
                                       "|| true"),
    "an entry's reader, a free slot": ("reuse", VIEW, r" \|\| first == 0", ""),
    "an entry's writer, before the fields": ("reuse", REUSE, r"std::atomic_thread_fence\S+\s+fill", "fill"),
    "an entry's writer, at the end": ("reuse", REUSE, r"guard\.store\(value, \S+\)",
                                      f"guard.store(value, {RELAXED})"),
    "a slot that is given back": ("reuse", REUSE, r"std::atomic_thread_fence\S+\s+entry\.holder", "entry.holder"),
    "a table's size, its writer": ("session", "recorder/session/table.h",
                                   r"(committed\.store\(size, )\S+\)", rf"\1{RELAXED})"),
    "a table's size, its reader": ("session", VIEW, r"(committed\.load\()\S+\)", rf"\1{RELAXED})"),
    "the state": ("session", "recorder/session/writer.cpp", r"(static_cast<u32>\(state\), )\S+\)", rf"\1{RELAXED})"),
    "a holder's figures": ("session", "recorder/live/full_holders.cpp", r"std::memory_order_acq_rel", RELAXED),
    "a small block": ("session", "recorder/live/side_table.h", r"(word\.store\(packed, )\S+\)", rf"\1{RELAXED})"),
    "an index, a slot": ("session", "recorder/session/index.h", r"(hash << 32 \| number, )\S+\)", rf"\1{RELAXED})"),
    "an index, a larger one": ("session", "recorder/session/index.h", r"(slots_\.store\(larger, )\S+\)", rf"\1{RELAXED})"),
    "a node's holder": ("session", "recorder/live/node_map.h", r"(distance, )std::memory_order_release", rf"\1{RELAXED}"),
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled(build_dir):
    """The commands that compiled the litmus tests, by the file that they made."""
    commands = json.loads((build_dir / "compile_commands.json").read_text())
    return {c["output"]: c for c in commands if "/weak_memory/" in c["output"]}


def runs_without(build_dir: Path, compiled: dict, test: str, changed: Path) -> bool:
    """Compiles the test with the files in `changed` in place of ours. Whether it passes."""
    objects = []
    for output, made in compiled.items():
        if not re.search(rf"libweak_memory_tested|weak_memory_{test}_test", output):
            continue
        source = (build_dir / made["file"]).resolve().relative_to(ROOT)
        objects.append(changed / f"{len(objects)}.o")
        own = changed / source
        command = made["command"].replace(made["file"], str(own if own.exists() else made["file"]))
        command = re.sub(r" -o \S+", f" -I{changed} -o {objects[-1]}", command)
        command = re.sub(r" -M[QF] \S+| -MD", "", command)
        # Before the others, so that a header in `changed` is found first.
        compiler, _, rest = command.partition(" -I")
        subprocess.run(f"{compiler} -I{changed} -I{rest}", shell=True, check=True, cwd=build_dir)
    libraries = ["tests/unit/weak_memory/libweak_memory.a", "tests/libdoctest_main.a"]
    for folder in ("recorder/live", "recorder/session", "common/session", "common/system"):
        libraries.append(f"{folder}/lib{folder.replace('/', '_')}.a")
    wrapped = [f"-Wl,--wrap={name}" for name in ("memcpy", "memmove", "memset")]
    program = changed / "test"
    subprocess.run(["c++", "-pthread", *wrapped, "-o", program, *objects, "-Wl,--start-group",
                    *libraries, "-Wl,--end-group"], check=True, cwd=build_dir)  # fmt: skip
    return subprocess.run([program], capture_output=True, timeout=300).returncode == 0


@pytest.mark.full
@pytest.mark.parametrize("barrier", ["none", *BARRIERS])
def test_each_barrier_is_needed(build_dir, compiled, tmp_path, barrier):
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    test, name, pattern, without = BARRIERS.get(barrier, ("reuse", VIEW, "", ""))
    source = (ROOT / name).read_text()
    if pattern:
        source, count = re.subn(pattern, without, source)
        assert count == 1
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(source)
    assert runs_without(build_dir, compiled, test, tmp_path) == (barrier == "none")
