"""Files made to exhaust the programs that read them, each of at most 64 MiB."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import Any

MIB = 1 << 20
# What reading each of them may cost.
MOST_BYTES = 1 << 30
MOST_CPU_S = 10
# Work whose processor time says how slow the machine is now: neighbours on the same core double it.
REFERENCE = """
import json
text = "[" + ",".join(['[1, 2.5, "x"]'] * 600_000) + "]"
for _ in range(2): json.loads(text)
"""
REFERENCE_S = 0.5  # on a calm machine


def slowdown() -> float:
    before = os.times()
    subprocess.run([sys.executable, "-c", REFERENCE], check=True)
    after = os.times()
    used_s = after.children_user - before.children_user
    return max(1.0, (used_s + after.children_system - before.children_system) / REFERENCE_S)


def run_bounded(command: list[Any], env: dict[str, str], *limits: str) -> tuple[int, str]:
    """Runs a reader under `limits` of prlimit and four times the processor time; returns its exit code and output.

    Fails the test if it used more than a reader may.
    """
    process = subprocess.Popen(
        ["prlimit", f"--cpu={4 * MOST_CPU_S}", *limits, *command],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = process.stdout.read(MIB).decode(errors="replace")
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = usage.ru_utime + usage.ru_stime
    assert usage.ru_maxrss * 1024 <= MOST_BYTES, (command, usage.ru_maxrss >> 10, output[:500])
    if cpu_s > MOST_CPU_S:
        slow = slowdown()
        assert cpu_s <= MOST_CPU_S * slow, (command, cpu_s, slow, output[:500])
    return process.returncode, output


@functools.cache
def keys() -> bytes:
    return b",".join(b'"k%d":0' % number for number in range(1_000_000))


# Each within 64 MiB, and in each the smallest text that makes the most of its kind of value.
JSON = {
    "arrays": lambda: b'{"events":[' + b"[]," * (21 * MIB) + b"0]}",
    "objects": lambda: b"[" + b"{}," * (21 * MIB) + b"0]",
    "numbers": lambda: b"[" + b"0," * (31 * MIB) + b"0]",
    "text": lambda: b'{"a":"' + b"x" * (63 * MIB) + b'"}',
    "keys": lambda: b"{" + keys() + b"}",
    "digits": lambda: b"[" + (b"1" * MIB + b",") * 60 + b"0]",
    "nested": lambda: b"[" * (63 * MIB),
}
TELEMETRY = {
    **JSON,
    "lines": lambda: b"{}\n" * (21 * MIB),
    "metadata": lambda: b'[{"timestamp":1,"metadata":{' + keys() + b"}}]",
    "metadata_members": lambda: b'[{"timestamp":1,' + keys().replace(b'"k', b'"metadata_k') + b"}]",
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
