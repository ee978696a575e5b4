"""`--frames`: lines of Python, native functions or both; memory is never lost by the choice."""

import gzip
import json
import re
import subprocess

import pytest
from sizes import take_up

MIB = 1 << 20

# A native library that allocates for Python, and a thread of its own that runs none.
LIBRARY = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void* keep(size_t bytes) { return memset(malloc(bytes), 1, bytes); }
void* codec_decode(size_t bytes) { return keep(bytes); }
static void* pool(void* bytes) { return keep((size_t)bytes); }
void codec_start(size_t bytes) {
  pthread_t thread;
  pthread_create(&thread, NULL, pool, (void*)bytes);
  pthread_join(thread, NULL);
}
"""
PROGRAM = """
import ctypes
codec, locked = (load("./{folder}/libcodec.so") for load in (ctypes.CDLL, ctypes.PyDLL))
codec.codec_decode.argtypes = locked.codec_start.argtypes = [ctypes.c_size_t]
def load_shard():
    codec.codec_decode(20 << 20)
def main():
    load_shard()
    locked.codec_start(30 << 20)
    kept = bytearray(10 << 20)
    bytearray(1 << 46)
main()
"""


def make_program(directory, folder, text=PROGRAM):
    """train.py, and its library in a folder: an installed one in site-packages, else one of its own."""
    (directory / "codec.c").write_text(LIBRARY)
    (directory / folder).mkdir()
    flags = ["-g", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-pthread"]
    library = f"{folder}/libcodec.so"
    subprocess.run(["cc", *flags, "-o", library, "codec.c"], cwd=directory, check=True)
    (directory / "train.py").write_text(text.replace("{folder}", folder))


def bundle_of(preload, directory, folder):
    make_program(directory, folder)
    run = preload("python3", "train.py", cwd=directory)
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    return run.only_bundle()


@pytest.fixture
def bundle(preload, tmp_path):
    return bundle_of(preload, tmp_path, "site-packages")


def nodes_of(node: dict) -> list[dict]:
    return [node] + [below for child in node["children"] for below in nodes_of(child)]


def is_python(node: dict) -> bool:
    return (node["file"] or "").endswith(".py")


def named(root: dict, function: str) -> list[dict]:
    return [node for node in nodes_of(root)[1:] if node["function"] == function]


def tree(oomrec, bundle, frames, *words) -> dict:
    shown = oomrec.json("tree", "--min-percent", "0", "--frames", frames, *words, bundle)
    assert shown["frames"] == frames
    return shown["root"]


def test_a_tree_of_lines_of_functions_and_of_both(oomrec, bundle):
    python, native, both = (tree(oomrec, bundle, frames) for frames in ("python", "native", "both"))
    assert python["bytes"] == native["bytes"] == both["bytes"] > 60 * MIB
    by_largest = [child["function"] for child in python["children"][:3]]
    assert by_largest == ["keep", "load_shard", "main"], python
    # No line of Python waits for the library's thread (main holds the lock): its functions stay.
    [keep] = named(python, "keep")
    assert take_up(keep["bytes"], 30 * MIB) and [node["function"] for node in keep["children"]] == [
        "pool"
    ]
    [load] = named(python, "load_shard")
    assert take_up(load["bytes"], 20 * MIB) and named(python, "codec_decode") == []
    assert not any(is_python(node) for node in nodes_of(native))
    assert take_up(sum(node["bytes"] for node in named(native, "keep")), 25 * MIB, 2)
    assert named(both, "codec_decode") and named(both, "load_shard")
    assert oomrec.json("tree", "--min-percent", "0", bundle)["root"] == both, "JSON has every frame"


def test_top_down_agrees(oomrec, bundle):
    root = tree(oomrec, bundle, "python", "--top-down")
    [load] = named(root, "load_shard")
    assert take_up(load["bytes"], 20 * MIB) and load["children"] == []
    assert [node for node in named(root, "main") if node["children"] == [load]]


def test_the_page_leads_with_lines_and_folds_native_functions(oomrec, bundle):
    text = oomrec("tree", bundle).stdout
    assert re.search(
        r"├ \S*train\.py:6 load_shard\n.*  in native code: .* … keep \(\d+ functions\)\n.*train\.py:8 main\n",
        text,
    ), text
    assert "import system are left out: --frames both" in " ".join(text.split())
    assert "__libc_start" not in text.replace(" pool", "") and "importlib" not in text
    shown = oomrec("show", bundle).stdout
    assert re.search(
        r"train\.py:6 load_shard\n +codec\.codec_decode\(20 << 20\)\n +in native code: .* … keep ",
        shown,
    ), shown
    assert re.search(
        r"\n +keep .*codec\.c:5.*\n(.*\n)?(.*\n)? +codec_decode ",
        oomrec("show", "--full", bundle).stdout,
    )
    both = oomrec("tree", "--frames", "both", bundle).stdout
    assert "in native code" not in both and "codec_decode" in both


def test_native_functions_of_the_programs_own_count_as_its_lines(preload, oomrec, tmp_path):
    bundle = bundle_of(preload, tmp_path, "own")
    [keep] = named(tree(oomrec, bundle, "python"), "keep")
    by_caller = {child["function"]: child["bytes"] for child in keep["children"]}
    assert take_up(by_caller["pool"], 30 * MIB) and len(by_caller) == 2
    assert take_up(by_caller["codec_decode"], 20 * MIB)
    [decode] = [child for child in keep["children"] if child["function"] == "codec_decode"]
    assert [child["function"] for child in decode["children"]] == ["load_shard"]
    shown = oomrec("show", bundle).stdout
    assert re.search(r"codec_decode .*codec\.c:6\n(.*\n)*? +\S*train\.py:6 load_shard\n", shown), (
        shown
    )


BESIDE = """
def inner():
    return bytearray(20 << 20)
def main():
    kept = [bytearray(10 << 20), inner()]
    bytearray(1 << 46)
main()
"""


def test_from_the_outermost_caller_in_own_bytes_have_a_row(preload, oomrec, tmp_path):
    """The line of main holds 10 MiB itself, beside the 20 MiB of what it calls."""
    (tmp_path / "beside.py").write_text(BESIDE)
    bundle = preload("python3", "beside.py", cwd=tmp_path).only_bundle()
    text = oomrec("tree", "--top-down", bundle).stdout
    own, called = (
        re.search(rf"^ +[\d.]+ % +(\S+) MiB  .*{name}$", text, re.M)
        for name in (r"\(allocated here\)", r"beside\.py:3 inner")
    )
    assert own is not None and called is not None, text
    assert float(own[1]) == pytest.approx(10, abs=1) and float(called[1]) == pytest.approx(
        20, abs=1
    )
    assert "(allocated here)" not in oomrec("tree", bundle).stdout


# One line that holds through three functions of C, and one that holds less in all but more than each of them.
LINES = """
import ctypes
codec = ctypes.CDLL("./site-packages/libcodec.so")
codec.codec_decode.argtypes = [ctypes.c_size_t]
def cache():
    return bytearray(20 << 20), codec.codec_decode(20 << 20), [None] * (20 << 17)
def decode():
    codec.codec_decode(35 << 20)
kept = cache()
decode()
bytearray(b"x" * (50 << 20))
"""


@pytest.mark.needs_cgroup_write
def test_the_line_at_death_names_the_holder_that_show_names(oomrec, cgroup, tmp_path):
    make_program(tmp_path, "site-packages", LINES)
    options = {"cwd": tmp_path, "env": {"OOMREC_WARN": "0"}, "preexec_fn": cgroup("125M").enter}
    run = oomrec("run", "--", "python3", "train.py", **options)
    said = re.search(r"largest holder: (.*) MiB, (.*)", run.stderr)
    assert said and float(said[1]) >= 60 and said[2].endswith("train.py:6 cache"), str(run)
    show = oomrec("show", run.only_bundle()).stdout
    # "about": a small object of Python's was sampled on the line.
    first = rf"\n +1 +(?:about )?{re.escape(said[1])} MiB in [^\n]*\n[^\n]*train\.py:6"
    assert re.search(first, show), show


def test_a_program_without_python_is_the_same_in_each(preload, oomrec, tmp_path):
    source = LIBRARY + "int main(void) { codec_decode(8 << 20); return malloc(1ul << 46) != NULL; }"
    (tmp_path / "codec.c").write_text(source)
    subprocess.run(["cc", "-g", "-pthread", "-o", "codec", "codec.c"], cwd=tmp_path, check=True)
    bundle = preload(tmp_path / "codec").only_bundle()
    roots = [tree(oomrec, bundle, frames) for frames in ("both", "python", "native")]
    assert roots[0] == roots[1] == roots[2] and roots[0]["children"]
    assert oomrec("tree", bundle).stdout == oomrec("tree", "--frames", "both", bundle).stdout


def test_stats_attribute_to_the_chosen_frames(oomrec, bundle):
    def largest(*words):
        return [row["function"] for row in oomrec.json("stats", *words, bundle)["top_by_bytes"][:3]]

    assert largest() == largest("--frames", "python") == ["keep", "load_shard", "main"]
    native = oomrec.json("stats", "--frames", "native", bundle)["top_by_bytes"]
    assert native[0]["function"] == "keep" and take_up(native[0]["bytes"], 25 * MIB, 2)
    assert not any(is_python(row) for row in native)


@pytest.mark.parametrize("format", ["folded", "speedscope", "json", "csv", "pprof", "perfetto", "memory_viz"])  # fmt: skip
def test_an_export_has_the_chosen_frames(oomrec, bundle, tmp_path, format):
    """Names are looked for in the file itself, whatever its form; pprof is compressed."""
    contents = {}
    for frames in ("both", "python", "native"):
        path = tmp_path / frames
        run = oomrec("export", "--format", format, "--frames", frames, "-o", path, bundle)
        assert (run.exit_code, run.stderr) == (0, ""), str(run)
        data = path.read_bytes()
        contents[frames] = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    assert b"codec_decode" in contents["both"] and b"load_shard" in contents["both"]
    assert b"codec_decode" not in contents["python"] and b"load_shard" in contents["python"]
    assert b"codec_decode" in contents["native"] and b"load_shard" not in contents["native"]


def test_folded_sums_are_equal(oomrec, bundle):
    sums = set()
    for frames in ("both", "python", "native"):
        lines = oomrec(
            "export", "--format", "folded", "--frames", frames, bundle
        ).stdout.splitlines()
        sums.add(sum(int(line.rpartition(" ")[2]) for line in lines))
    assert len(sums) == 1 and sums.pop() > 60 * MIB


def test_telemetry_has_no_frames(oomrec, bundle):
    run = oomrec("export", "--format", "telemetry", "--frames", "python", bundle)
    assert run.exit_code == 2 and "--frames does not apply to the format telemetry" in run.stderr


@pytest.mark.parametrize("command", ["report", "flamegraph", "table"])
def test_a_report_opens_with_the_chosen_frames(oomrec, bundle, command):
    page = oomrec(command, "--frames", "python", "-o", "-", bundle).stdout
    assert 'data-frames="python"' in page
    assert 'data-frames=""' in oomrec(command, "-o", "-", bundle).stdout


@pytest.mark.parametrize("words", [["tree"], ["stats"], ["report"], ["top"], ["export", "--format", "folded"]])  # fmt: skip
def test_an_unknown_kind_is_rejected(oomrec, words):
    run = oomrec(*words, "--frames", "merged")
    assert run.exit_code == 2 and "invalid value 'merged' for --frames" in run.stderr


def test_top_keeps_stacks_without_python(apart, tmp_path):
    """Of a library's thread no frame is Python: with --frames python its functions are shown."""
    waiting = PROGRAM.replace("bytearray(1 << 46)", "import time; time.sleep(60)")
    make_program(tmp_path, "site-packages", waiting)
    run = apart(f"""
cd {tmp_path}
recorded python3 train.py
sleep 0.5
oomrec top --once --json --frames python $!
kill $!
""")
    shown = json.loads(run.stdout)
    assert shown["frames"] == "python"
    stacks = [[frame["function"] for frame in row["stack"]] for row in shown["rows"]]
    assert any(stack[:2] == ["keep", "pool"] for stack in stacks), stacks
    assert ["load_shard", "main", "<module>"] in stacks
