"""A script hits the soft limit under every Python: the bundle has its lines and functions."""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import distinct_versions, full
from pythons import PYTHON_VERSIONS

SIZE = 100 << 20


@pytest.mark.parametrize(
    "kind, memory",
    [
        ("bytes", "pymalloc"),
        ("bytearray", "pymalloc"),
        ("list", "malloc"),
        full("list", "pymalloc"),
        full("bytes", "malloc"),
        full("bytearray", "malloc"),
    ],
)
@pytest.mark.parametrize("version", PYTHON_VERSIONS)
def test_the_failing_line_and_the_holding_line_are_named(
    preload, oomrec, python, victim, version, memory, kind
):
    script = Path(victim("python/over_limit.py"))
    # No blocks below 64 KiB: one sample would add the weight of many to the holding line.
    environment = {
        "OOMREC_LIMIT": "128M",
        "OOMREC_SAMPLE_INTERVAL": "64G",
        "OOMREC_PYTHON_SAMPLING": "0",
        "PYTHONMALLOC": memory,
    }
    run = preload(python(version), script, kind, env=environment)

    assert run.stdout == "holding 48\n" and run.exit_code == 1, str(run)
    assert run.stderr.endswith("MemoryError\n")
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "soft_limit"
    assert shown["process"]["python"].startswith(version)
    assert SIZE <= shown["request"]["size"] < SIZE + 4096
    source = script.read_text().splitlines()
    asked = python_frames(shown["request"]["stack"], script, source)
    assert [name for name, _ in asked] == ["<lambda>", name_of("Asker.ask", version), "<module>"]
    assert f'"{kind}": lambda' in asked[0][1]
    assert asked[1][1] == "return KINDS[kind]()"
    assert "Asker().ask(sys.argv[1])" in asked[2][1]

    holder = shown["holders"][0]
    assert holder["bytes"] == pytest.approx(48 << 20, rel=0.01) and holder["count"] == 48
    holding = python_frames(holder["stack"], script, source)
    assert holding[-1] == ("<module>", "held = hold()")
    assert holding[-2][0] == "hold"
    assert holding[0][1] == "bytearray(1 << 20)"


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_rapidly_changing_stacks_match_the_interpreters(preload, oomrec, python, victim, version):
    """In exact mode most of a stack is copied from the previous one. It must have no extra frame.

    The interpreter keeps some small objects on the same stacks, in total less than one of the
    blocks.
    """
    script = victim("python/changing_stacks.py")
    environment = {"OOMREC_LIMIT": "1G", "OOMREC_MODE": "exact", "PYTHONMALLOC": "malloc"}
    run = preload(python(version), script, env=environment)

    assert run.exit_code == 1 and run.stderr.endswith("MemoryError\n"), str(run)
    truth = {tuple(map(tuple, stack)): size for stack, size in json.loads(run.stdout)}
    keepers = {stack[:1] for stack in truth}
    # `show` would make one holder of all depths of a recursion.
    exported = oomrec.json("export", "--frames", "both", run.only_bundle())
    sums = Counter()
    for holder in exported["holders"]:
        frames = [exported["frames"][number] for number in exported["stacks"][holder["stack"]]]
        lines = [frame for frame in frames if frame["kind"] == "python"]
        stack = tuple((frame["function"], frame["line"], frame["file"]) for frame in lines)
        sums[stack] += holder["live"]["bytes"]
    found = {
        stack: size
        for stack, size in sums.items()
        if stack in truth or (size >= 1000 and stack[:1] in keepers)
    }
    assert len(truth) > 200 and found.keys() == truth.keys()
    different = {stack for stack in truth if not 0 <= found[stack] - truth[stack] < 1000}
    assert not different, next((truth[stack], found[stack], stack) for stack in different)


def name_of(qualified, version):
    """The name that a code object has: before 3.11 without the class."""
    return qualified if version not in ("3.8", "3.9", "3.10") else qualified.rpartition(".")[2]


def python_frames(stack, script, source):
    """[(function, its line's text)], innermost first; every frame is the script's."""
    frames = [frame for frame in stack if frame["kind"] == "python"]
    assert all(Path(frame["file"]).name == script.name for frame in frames), frames
    return [(frame["function"], source[frame["line"] - 1].strip()) for frame in frames]


# --- A version that no table has ------------------------------------------------------------------


def file_offset(image: bytearray, address: int) -> int:
    """Of a virtual address in an ELF file of 64 bits."""
    (headers,) = struct.unpack_from("<Q", image, 32)
    (count,) = struct.unpack_from("<H", image, 56)
    for number in range(count):
        at = headers + 56 * number
        kind, _, offset, start, _, size = struct.unpack_from("<IIQQQQ", image, at)
        if kind == 1 and start <= address < start + size:
            return offset + address - start
    raise AssertionError(hex(address))


def newer_python(python: str, directory: Path, version_hex: int, change: dict[int, int]) -> dict:
    """The interpreter with another version, and `change` of its published words by their position: the environment
    in which `python` loads it."""
    library = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_config_var('INSTSONAME') or '')"],
        text=True,
    ).strip()
    folder = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))"], text=True
    ).strip()
    if not library.startswith("libpython"):
        pytest.skip("this interpreter is no shared library")
    if not (Path(folder) / library).exists():  # Debian's interpreter is static
        pytest.skip(f"{library} is not installed")
    image = bytearray((Path(folder) / library).read_bytes())
    names = subprocess.check_output(["nm", "-D", Path(folder) / library], text=True)
    address = {
        words[2]: int(words[0], 16)
        for words in map(str.split, names.splitlines())
        if len(words) == 3
    }
    runtime = file_offset(image, address["_PyRuntime"])
    assert image[runtime : runtime + 8] == b"xdebugpy"
    for place in (file_offset(image, address["Py_Version"]), runtime + 8):
        struct.pack_into("<Q", image, place, version_hex)
    for position, value in change.items():
        struct.pack_into("<Q", image, runtime + position, value)
    (directory / library).write_bytes(image)
    return {"LD_LIBRARY_PATH": str(directory)}


KEEPS = """
def keep():
    return [bytearray(1 << 20) for _ in range(8)]
def between():
    yield keep()
kept = list(between())
try:
    bytearray(1 << 46)
except MemoryError:
    print("refused")
"""


def test_an_unknown_version_is_read_by_what_it_publishes(preload, oomrec, python, tmp_path):
    """3.13 that says it is 3.17: no table has it."""
    environment = newer_python(python("3.13"), tmp_path, 0x031100F0, {})
    run = preload(python("3.13"), "-c", KEEPS, env=environment)
    assert run.stdout == "refused\n", str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["process"]["python"].startswith("3.17")
    functions = [
        [frame["function"] for frame in holder["stack"] if frame["kind"] == "python"]
        for holder in shown["holders"]
        if holder["bytes"] >= 8 << 20
    ]
    assert functions == [["keep", "between", "<module>"]], shown["holders"][0]


@pytest.mark.parametrize(
    "change, why",
    [
        ({184: 16}, "in another way"),  # the running frame stands elsewhere
        ({232: 24}, "newer than this oomrec knows"),  # a frame begins in another way
        ({8: 0x031200F0}, "not those of its version"),
    ],
    ids=["frame", "parts", "version"],
)
def test_an_unknown_version_that_is_different_is_not_read(
    preload, oomrec, python, tmp_path, change, why
):
    environment = newer_python(python("3.13"), tmp_path, 0x031100F0, change)
    run = preload(python("3.13"), "-c", KEEPS, env=environment)
    assert run.stdout == "refused\n" and run.exit_code == 0, str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert any(why in note for note in shown["notes"]), shown["notes"]
    kinds = {frame["kind"] for holder in shown["holders"] for frame in holder["stack"]}
    assert "python" not in kinds
