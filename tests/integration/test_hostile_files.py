"""Files made to exhaust the commands that read them: each is read within bounds, or rejected by name.

A file of at most 64 MiB costs at most 1 GiB and 10 s of processor time. Where a file belongs, a FIFO, a link
or a directory is rejected at once.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import SOURCE

MIB = 1 << 20
MOST_BYTES = 1 << 30
MOST_CPU_S = 10

KEYS = b",".join(b'"k%d":0' % number for number in range(1_000_000))
# Each within 64 MiB, and in each the smallest text that makes the most of its kind of value.
JSON = {
    "arrays": lambda: b'{"events":[' + b"[]," * (21 * MIB) + b"0]}",
    "objects": lambda: b"[" + b"{}," * (21 * MIB) + b"0]",
    "numbers": lambda: b"[" + b"0," * (31 * MIB) + b"0]",
    "text": lambda: b'{"a":"' + b"x" * (63 * MIB) + b'"}',
    "keys": lambda: b"{" + KEYS + b"}",
    "digits": lambda: b"[" + (b"1" * MIB + b",") * 60 + b"0]",
    "nested": lambda: b"[" * (63 * MIB),
}
TELEMETRY = {
    **JSON,
    "lines": lambda: b"{}\n" * (21 * MIB),
    "metadata": lambda: b'[{"timestamp":1,"metadata":{' + KEYS + b"}}]",
    "metadata_members": lambda: b'[{"timestamp":1,' + KEYS.replace(b'"k', b'"metadata_k') + b"}]",
    "records": lambda: b"[" + b'{"timestamp":1},' * (3 * MIB) + b"0]",
    "commas": lambda: b"," * (63 * MIB),
    "rows": lambda: b"a,b\n" * (16 * MIB),
    "columns": lambda: (
        b",".join(b"c%d" % number for number in range(1_000_000)) + b"\n" + b"1," * 999_999 + b"1\n"
    ),
    "nested_cell": lambda: b'timestamp,metadata\n1,"' + b"[" * 100_000 + b"]" * 100_000 + b'"\n',
    "nested_tuple": lambda: b'timestamp,metadata\n1,"' + b"(" * 100_000 + b")" * 100_000 + b'"\n',
    "long_cell": lambda: b'timestamp,metadata\n1,"(' + b"1," * (31 * MIB) + b')"\n',
}
PICKLES = {
    "nones": lambda: b"\x80\x02" + b"N" * (63 * MIB) + b".",
    "lists": lambda: b"\x80\x02" + b"]" * (63 * MIB) + b".",
    "marks": lambda: b"\x80\x02" + b"(" * (63 * MIB) + b".",
    "memos": lambda: b"\x80\x05N" + b"\x94" * (63 * MIB) + b".",
    "tuples": lambda: b"\x80\x02N" + b"\x85" * (63 * MIB) + b".",
    # A dict of a million keys, in which each of a million entries of the trace looks up its keys.
    "lookups": lambda: (
        b"\x80\x02}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_traces](](}("
        + b"K\x00N" * MIB
        + b"uq\x00"
        + b"h\x00" * MIB
        + b"eeu."
    ),
}


@pytest.fixture
def bounded(oomrec, build_dir):
    """Runs the command under a limit on its address space and processor time; returns its result."""

    def run(*words):
        limits = [f"--as={3 * MOST_BYTES}", f"--cpu={2 * MOST_CPU_S}"]
        process = subprocess.Popen(
            ["prlimit", *limits, build_dir / "oomrec", *words],
            env=oomrec.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output = process.stdout.read(MIB)
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = output.decode(errors="replace")[:500]
        cpu_s = usage.ru_utime + usage.ru_stime
        assert process.returncode in (0, 1, 2), (words, process.returncode, said)
        assert usage.ru_maxrss * 1024 <= MOST_BYTES, (words, usage.ru_maxrss >> 10, said)
        assert cpu_s <= MOST_CPU_S, (words, cpu_s, said)
        return process.returncode, said

    return run


@pytest.fixture
def bundle(oomrec):
    run = oomrec("run", "--limit", "128M", "--", "python3", "-c", "kept = bytearray(1 << 30)")
    return run.only_bundle()


@pytest.mark.parametrize("shape", TELEMETRY)
def test_telemetry(bounded, tmp_path, shape):
    file = tmp_path / "hostile.json"
    file.write_bytes(TELEMETRY[shape]())
    code, said = bounded("analyze", file)
    assert code in (0, 2)
    assert code == 0 or file.name in said


@pytest.mark.parametrize("shape", PICKLES)
def test_pickles(bounded, tmp_path, shape):
    file = tmp_path / "hostile.pickle"
    file.write_bytes(PICKLES[shape]())
    code, said = bounded("show", file)
    assert code == 2 and "is not a readable PyTorch memory snapshot" in said


def test_a_large_pickle_is_not_read(bounded, tmp_path):
    file = tmp_path / "sparse.pickle"
    file.write_bytes(b"\x80\x02")
    os.truncate(file, 2 << 30)
    code, said = bounded("show", file)
    assert code == 2 and "it is larger than 512 MiB" in said


@pytest.mark.parametrize("shape", JSON)
def test_a_bundle_of_such_files(bounded, bundle, shape):
    """The sum of a bundle's files counts, too."""
    text = JSON[shape]()
    for name in bundle.glob("*.json"):
        name.write_bytes(text)
    for command in ("show", "stats", "report"):
        bounded(command, bundle, *(["-o", bundle / "page.html"] if command == "report" else []))
    assert bounded("ls", bundle.parent)[0] in (0, 1)


def replace(file, kind, target):
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.symlink_to(target)


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
@pytest.mark.parametrize("name", ["recording.oomrec", "manifest.json", "metadata.json"])
def test_what_is_not_a_file_does_not_block(bounded, bundle, kind, name):
    replace(bundle / name, kind, "/dev/zero")
    bounded("show", bundle)
    assert bounded("ls", bundle.parent)[0] in (0, 1)
    assert bounded("recover")[0] in (0, 1)


@pytest.mark.parametrize("command", ["show", "analyze", "stats"])
def test_a_fifo_as_argument_does_not_block(bounded, tmp_path, command):
    os.mkfifo(tmp_path / "fifo")
    assert bounded(command, tmp_path / "fifo")[0] != 0


@pytest.mark.parametrize("kind", ["absolute", "above", "link"])
def test_ranks_lie_beneath_their_bundle(oomrec, bundle, tmp_path, kind):
    job = tmp_path / "job"
    assert oomrec("merge", bundle, "-o", job).exit_code == 0
    shutil.copytree(bundle, tmp_path / "other")
    (job / "ranks" / "link").symlink_to(tmp_path / "other")
    assert oomrec("show", "--rank", "0", job).exit_code == 0
    forged = {"absolute": str(tmp_path / "other"), "above": "../other", "link": "ranks/link"}[kind]
    ranks = json.loads((job / "ranks.json").read_text())
    ranks["ranks"][0]["bundle"] = forged
    (job / "ranks.json").write_text(json.dumps(ranks))
    run = oomrec("show", "--rank", "0", job)
    assert run.exit_code == 2 and "names a bundle that is not a directory in it" in run.stderr


def test_foreign_files_pass_one_function():
    """std::ifstream waits for the writer of a FIFO: it reads only what the kernel wrote."""
    kernel = re.compile(
        r"tools/(deaths|processes|recording/live|service/watch)/|tools/formats/telemetry/rank\.cpp"
    )
    found = {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "tools").rglob("*.cpp")
        if "std::ifstream" in path.read_text()
    }
    assert {path for path in found if not kernel.match(path)} == set()
