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
ERA = "recorder/stack/uses_nodes.h"
STATES = "recorder/session/node_states.h"
INTERN = "recorder/stack/intern.cpp"
FRAMES = "recorder/stack/frame_numbers.cpp"
HOLDERS = "recorder/live/holder_table.cpp"
SHARED = "recorder/forget/shared_work.h"
RELAXED = "std::memory_order_relaxed"
RELAXED_LOAD = "reinterpret_cast<const Atomic<u64>*>(from)->load(std::memory_order_relaxed)"
# Of each barrier: the test that fails without it, its file, a pattern that occurs there once, and its replacement.
BARRIERS = {
    "an entry's reader, before the end": ("reuse", VIEW, r"load_barrier\(\);\s+const bool same", "const bool same"),
    "an entry's reader, the first word before": ("reuse", VIEW, r"first = load\(from\);\s+copy_words",
                                                 f"first = {RELAXED_LOAD}; copy_words"),
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
    "an announced era": ("nodes", ERA, r"thread\.exchange\(announced\)", "thread.exchange(announced, std::memory_order_acq_rel)"),
    "an announced era, the era after it": ("nodes", ERA, r"era = session::g_era\.load\(\)",
                                           "era = session::g_era.load(std::memory_order_acquire)"),
    "a raised era, before threads are looked at": ("nodes", ERA, r"std::atomic_thread_fence\S+", ""),
    "a raised era, after that of code objects": ("nodes", ERA, r"(fetch_add\(1, )\S+\)", rf"\1{RELAXED})"),
    "a thread that has left": ("nodes", ERA, r"(thread_->store\(0, )\S+\)", rf"\1{RELAXED})"),
    "a thread that has left, seen": ("nodes", ERA, r"(word = thread\.load\()\S+acquire", rf"\1{RELAXED}"),
    "a thread that is given up": ("nodes", INTERN, r"(await_adders\(InHook\) noexcept) \{[^}]+\}", r"\1 {}"),
    "a node's state, when it is used": ("nodes", STATES, r"(->store\(stamp_now\(\) \| references, )\S+\)", rf"\1{RELAXED})"),
    "a node's state, before it is looked at": ("nodes", STATES, r"(word->load\()std::memory_order_acquire", rf"\1{RELAXED}"),
    "a node's claim": ("nodes", STATES, r"return words_\S+compare_exchange_strong\(seen, \(seen[^;]+;",
                       "words_.find(node)->store((seen & ~stamp_in(seen)) | now); return true;"),
    "a node that is retired": ("nodes", STATES, r"return words_\S+compare_exchange_strong\(seen, 0, \S+\)",
                               "words_.find(node)->store(seen = 0); return true"),
    "a holder's name": ("holders", REUSE, r"(<u64>\(name\), )\S+\)", rf"\1{RELAXED})"),
    "a holder's name, seen first": ("holders", VIEW, r"name = load\(from\)", f"name = {RELAXED_LOAD}"),
    "a holder's name, seen again": ("holders", VIEW, r"(\(!same) \|\| load\(from\) != name", r"\1"),
    "a holder's figures, seen": ("holders", VIEW, r"figures = load\(figures_at\)",
                                f"figures = {RELAXED_LOAD.replace('(from)', '(figures_at)')}"),
    "a full holder's figures, barrier": ("holders", VIEW, r"load_barrier\(\);\s+const u64 now", "const u64 now"),
    "a full holder's figures, seen again": ("holders", VIEW, r"same && is_full\(now\) && full_number\(now\) == full_number\(figures\)", "same"),
    "a holder that is forgotten": ("holders", HOLDERS, r"std::atomic_thread_fence\S+\s+entry\.figures", "entry.figures"),
    "a holder that is used again": ("holders", HOLDERS, r"(brief\.packed\(\), )std::memory_order_release", rf"\1{RELAXED}"),
    "a full holder that is used again": ("holders", "recorder/live/full_holders.cpp", r"std::atomic_thread_fence\S+", ""),
    "a full holder's number": ("holders", "recorder/live/full_holders.cpp", r"std::memory_order_acq_rel", RELAXED),
    "a sum's node": ("holders", "recorder/live/holder_sums.cpp", r"(sum\.node\.store\(node, )\S+\)", rf"\1{RELAXED})"),
    "a sum's node, before it is claimed": ("nodes", "recorder/live/holder_sums.cpp", r"std::atomic_thread_fence\S+", ""),
    "shared work, who enters": ("nodes", SHARED, r"(fetch_add\(1, )\S+\)", r"\1std::memory_order_acq_rel)"),
    "shared work, open": ("nodes", SHARED, r"(open_\.load\()\S+\)\)", r"\1std::memory_order_acquire))"),
    "shared work, closed": ("nodes", SHARED, r"(store\(false, )std::memory_order_seq_cst", r"\1std::memory_order_release"),
    "shared work, inside": ("nodes", SHARED, r"(inside_\.load\()\S+\)", r"\1std::memory_order_acquire)"),
    "shared work, first closed": ("nodes", SHARED, r"(open_\.store\(false, \S+seq_cst\);)\s+return (inside_[^;]+);",
                                  r"const bool none = \2; \1 return none;"),
    "shared work, who leaves": ("nodes", SHARED, r"(fetch_sub\(1, )\S+\)", rf"\1{RELAXED})"),
    "shared work, what is given": ("nodes", SHARED, r"(store\(true, )\S+\)", rf"\1{RELAXED})"),
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled(build_dir):
    """The commands that compiled the litmus tests, by the file that they made."""
    commands = json.loads((build_dir / "compile_commands.json").read_text())
    return {c["output"]: c for c in commands if "/weak_memory/" in c["output"]}


@pytest.fixture(scope="module")
def sources(build_dir, compiled):
    """The files that each of them was made of."""
    listed = subprocess.run(
        ["ninja", "-t", "deps", *compiled],
        check=True,
        cwd=build_dir,
        capture_output=True,
        text=True,
    )
    found = {}
    for block in listed.stdout.split("\n\n"):
        output, *files = block.splitlines() or [""]
        found[output.split(": ")[0]] = {str((build_dir / file.strip()).resolve()) for file in files}
    return found


def runs_without(
    build_dir: Path, compiled: dict, sources: dict, test: str, name: str, changed: Path
) -> bool:
    """Compiles the test with the file `name` in `changed` in place of ours. Whether it passes."""
    objects = []
    for output, made in compiled.items():
        if not re.search(rf"libweak_memory_tested|weak_memory_{test}_test", output):
            continue
        if str(ROOT / name) not in sources[output]:
            objects.append(build_dir / output)
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
    for folder in (
        "recorder/live",
        "recorder/python",
        "recorder/session",
        "common/session",
        "common/system",
    ):
        libraries.append(f"{folder}/lib{folder.replace('/', '_')}.a")
    wrapped = [f"-Wl,--wrap={name}" for name in ("memcpy", "memmove", "memset")]
    program = changed / "test"
    subprocess.run(["c++", "-pthread", *wrapped, "-o", program, *objects, "-Wl,--start-group",
                    *libraries, "-Wl,--end-group"], check=True, cwd=build_dir)  # fmt: skip
    ran = subprocess.run([program, "--abort-after=1"], capture_output=True, timeout=300)
    return ran.returncode == 0


@pytest.mark.full
@pytest.mark.parametrize("barrier", ["none", *BARRIERS])
def test_each_barrier_is_needed(build_dir, compiled, sources, tmp_path, barrier):
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    test, name, pattern, without = BARRIERS.get(barrier, ("reuse", VIEW, "", ""))
    source = (ROOT / name).read_text()
    if pattern:
        source, count = re.subn(pattern, without, source)
        assert count == 1
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(source)
    assert runs_without(build_dir, compiled, sources, test, name, tmp_path) == (barrier == "none")
