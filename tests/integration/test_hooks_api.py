"""include/oomrec.h, by weak symbols from C and by ctypes from Python."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import SOURCE
from sizes import take_up

ASKS = """
#include <oomrec.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  struct oomrec_usage_info usage;
  memset(&usage, 0, sizeof usage);
  usage.size = sizeof usage;
  const int asked = OOMREC_CALL(oomrec_usage, &usage);
  const int popped = OOMREC_CALL(oomrec_context_pop);
  OOMREC_CALL(oomrec_note_device, "cuda", 0, "a GPU", 1, 2, 3, 4);
  printf("%d %d %d\\n", asked, popped, oomrec_wait ? 1 : 0);
  return 0;
}
"""

TOO_MUCH = 1 << 46
MIB = 1 << 20


def holder_of(shown: dict, bytes_: int) -> list[str]:
    """The functions of the holder with one block of this many bytes."""
    [found] = [holder for holder in shown["holders"] if take_up(holder["bytes"], bytes_)]
    return [frame["function"] for frame in found["stack"]]


def test_without_a_recorder_nothing_happens(plain, victim):
    assert plain(victim("api_in_c")).stdout == "1 1 1\n"
    alone = plain(sys.executable, victim("python/api_by_ctypes.py"))
    assert (alone.stdout, alone.exit_code) == ("alone\n", 0)


@pytest.mark.parametrize("language", ["c99", "c11", "c++11", "c++17"])
def test_the_header_compiles_under_every_standard(plain, tmp_path, language):
    """With all warnings, in a program that does not link our library."""
    program = tmp_path / "asks"
    (tmp_path / "asks.c").write_text(ASKS)
    compiler = [*("g++ -x c++" if "++" in language else "gcc").split(), f"-std={language}"]
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    source = [f"-I{SOURCE / 'include'}", str(tmp_path / "asks.c")]
    subprocess.run([*compiler, *warnings, *source, "-o", str(program)], check=True, timeout=300)
    assert plain(program).stdout == "0 0 0\n"


def test_a_bundle_on_request(oomrec, preload, victim):
    run = preload(victim("api_in_c"), env={"OOMREC_MAX_DUMPS": 0})
    asked = run.bundle_at("asked in C")
    metadata = json.loads((asked / "metadata.json").read_text())
    assert (metadata["reason"], metadata["context"]) == ("request", "asked in C")
    shown = oomrec.json("show", asked)
    assert (shown["trigger"], shown["verdict"]["code"]) == ("request", "requested")
    assert shown["context"] == "asked in C"
    assert shown["verdict"]["summary"] == metadata["verdict"]["summary"]
    assert metadata["verdict"]["summary"].endswith("bundle requested: asked in C")
    assert run.stderr.count("asked in C") == 1  # the report has it once


def test_the_limit_can_change_at_run_time(oomrec, preload, victim):
    run = preload(victim("api_in_c"), env={"OOMREC_MAX_DUMPS": 0})
    assert run.stdout == "0 1 1\n", str(run)  # fails under 32 MiB, succeeds without a limit
    shown = [oomrec.json("show", bundle) for bundle in run.bundles()]
    [refused] = [bundle for bundle in shown if bundle["trigger"] == "soft_limit"]
    assert refused["request"]["size"] == 16 * MIB + 191
    assert refused["limit"]["kind"] == "soft" and refused["limit"]["bytes"] == 32 * MIB


def test_contexts_are_outer_frames_of_the_stack(oomrec, preload, victim):
    run = preload(victim("api_in_c"), env={"OOMREC_MAX_DUMPS": 0})
    shown = oomrec.json("show", run.bundle_at("asked in C"))
    assert holder_of(shown, 8 * MIB + 179)[-2:] == ["[batch 7]", "[epoch 3]"]
    assert holder_of(shown, 9 * MIB + 181)[-1] == "[epoch 3]"
    assert not holder_of(shown, 16 * MIB + 191)[-1].startswith("[")
    refused = oomrec.json("show", run.bundles()[0])["request"]
    assert refused["size"] == TOO_MUCH + 173 and refused["stack"][-1]["function"] == "[loader]"
    assert "[epoch 3]" in oomrec("tree", run.bundle_at("asked in C")).stdout


def test_from_python_by_ctypes(oomrec, preload, victim):
    script = victim("python/api_by_ctypes.py")
    run = preload(sys.executable, script, env={"OOMREC_MAX_DUMPS": 0})
    assert run.stdout == "dumped 1\nrefused\ngiven 48\n" and run.exit_code == 0, str(run)
    shown = oomrec.json("show", run.bundle_at("asked in Python"))
    assert shown["trigger"] == "request"
    assert holder_of(shown, 6 * MIB + 1)[-1] == "[epoch 4]"
    refused = [bundle for bundle in run.bundles() if bundle != run.bundle_at("asked in Python")]
    request = oomrec.json("show", refused[0])["request"]
    assert request["size"] == 48 * MIB + 1
    asked = next(frame for frame in request["stack"] if frame["kind"] == "python")
    assert asked["file"] == script and asked["line"] == 14
