"""Crashes that follow from a failed allocation, and those that do not."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import signal
import sys

import pytest
from conftest import built, written

GIB = 1 << 30
MEMSET = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
def allocate(bytes_):
    return libc.malloc(bytes_)
def fill(block):
    libc.memset(block, 1, 4096)
fill(allocate((1 << 46) + 233))
"""


@pytest.fixture(params=["preload", "run"])
def recorded(request, preload, oomrec):
    """Runs a program recorded, by preload or by `oomrec run`."""
    if request.param == "preload":
        return preload
    return lambda *args, **options: oomrec("run", "--", *args, **options)


@pytest.fixture
def shown(oomrec):
    """`oomrec show` of a run's only bundle."""

    def show(run) -> dict:
        return oomrec.json("show", run.only_bundle())

    return show


def died_of(run, number):
    assert run.exit_code == 128 + number, str(run)


def functions(stack):
    return [frame["function"] for frame in stack]


# --- Crashes caused by a failed allocation --------------------------------------------------------


@pytest.mark.parametrize(
    "way, size, limit",
    [
        ("null", GIB, "soft_limit"),
        ("thread", GIB, "soft_limit"),
        ("null", GIB, "address_space_limit"),
        ("map", GIB, "soft_limit"),
    ],
)
def test_a_null_pointer_dereference(recorded, shown, victim, way, size, limit):
    options = {}
    if limit == "soft_limit":
        options["env"] = {"OOMREC_LIMIT": "512M"}
    else:
        options["preexec_fn"] = lambda: resource.setrlimit(
            resource.RLIMIT_AS, (768 << 20, 768 << 20)
        )
    run = recorded(victim("crashes"), way, size, **options)
    died_of(run, signal.SIGSEGV)
    page = shown(run)
    verdict = page["verdict"]
    assert (verdict["code"], page["outcome"]) == ("null_dereference", "signal 11")
    api, result = ("mmap", "MAP_FAILED") if way == "map" else ("malloc", "NULL")
    address = 0xF if way == "map" else 0x10
    assert verdict["summary"].startswith(f"SIGSEGV at address {address:#x}, ")
    assert verdict["summary"].endswith(
        f"after {api} refused 1.0 GiB: the program used the {result} it was given"
    )
    assert page["limit"]["kind"] == {"soft_limit": "soft"}.get(limit, "rlimit_as")
    words = "the soft limit of 512.0 MiB" if limit == "soft_limit" else "(RLIMIT_AS)"
    assert any(words in line for line in verdict["evidence"])
    assert page["crash"]["address"] == address and page["crash"]["name"] == "SIGSEGV"
    assert functions(page["crash"]["stack"])[0] in ("use_null", "map_failed")
    assert page["crash"]["thread"] == page["request"]["thread"]
    assert f"oomrec: {verdict['summary']}\n" in run.stderr, str(run)


def test_the_bundle_of_the_failure_is_completed(preload, oomrec, victim):
    run = preload(victim("crashes"), "null")
    bundle = run.only_bundle()
    metadata, manifest = (
        json.loads((bundle / f"{name}.json").read_text()) for name in ("metadata", "manifest")
    )
    assert metadata["outcome"] == "signal 11" and metadata["reason"] == "allocation_failed"
    assert metadata["verdict"]["code"] == manifest["verdict"] == "null_dereference"
    assert oomrec.json("show", bundle)["verdict"] == metadata["verdict"]
    assert list(preload.session_dir.rglob("*.session")) == []  # no longer needed
    page = oomrec("show", bundle).stdout
    assert "\ncrash\n  SIGSEGV at address 0x10 in thread " in page and "use_null" in page


def test_a_crash_after_a_fourth_failure_gets_a_separate_bundle(recorded, oomrec, victim):
    """After three bundles the rate limit applies, except for the bundle of a death."""
    run = recorded(victim("crashes"), "many", env={"OOMREC_MAX_DUMPS": 0})
    died_of(run, signal.SIGSEGV)
    pages = [oomrec.json("show", bundle) for bundle in run.bundles()]
    assert [page["verdict"]["code"] for page in pages].count("null_dereference") == 1


def test_quiet_prints_nothing_about_a_crash(recorded, victim):
    run = recorded(victim("crashes"), "null", env={"OOMREC_QUIET": 1})
    died_of(run, signal.SIGSEGV)
    assert run.stderr == "" and run.bundles()


@pytest.mark.parametrize(
    "words, code, end",
    [
        ([], "uncaught_bad_alloc", "nobody caught the std::bad_alloc"),
        (["again"], "uncaught_bad_alloc", "nobody caught the std::bad_alloc"),
        (["noexcept"], "uncaught_bad_alloc", "nobody caught the std::bad_alloc"),
        (["other"], "crash_after_refusal", "another exception was not caught"),
    ],
)
def test_an_uncaught_exception(recorded, shown, victim, words, code, end):
    run = recorded(victim("uncaught_new"), *words)
    died_of(run, signal.SIGABRT)
    page = shown(run)
    summary = page["verdict"]["summary"]
    assert summary.startswith("SIGABRT, ") and "malloc refused 64.0 TiB" in summary
    assert page["verdict"]["code"] == code
    assert summary.endswith(end)
    assert any("std::terminate" in line for line in page["verdict"]["evidence"])


@pytest.mark.parametrize("way, number", [("abort", 6), ("raise", 6), ("bus", 7), ("kill", 11)])
def test_a_program_that_gives_up(recorded, shown, victim, way, number):
    run = recorded(victim("crashes"), way)
    died_of(run, number)
    page = shown(run)
    assert page["verdict"]["code"] == "crash_after_refusal"
    assert page["outcome"] == f"signal {number}"
    innermost = {"abort": "give_up", "raise": "raise_abrt", "bus": "beyond_file", "kill": "send"}
    assert innermost[way] in functions(page["crash"]["stack"]), page["crash"]["stack"]


@pytest.mark.parametrize("way", ["overflow", "thread_overflow", "guarded_overflow"])
def test_a_stack_overflow_while_handling_a_failure(recorded, shown, victim, way):
    run = recorded(victim("crashes"), way)
    if run.exit_code == 77:
        pytest.skip("this kernel has no MADV_GUARD_INSTALL")
    died_of(run, signal.SIGSEGV)
    page = shown(run)
    assert page["verdict"]["code"] == "crash_after_refusal"
    assert page["verdict"]["summary"].endswith("ran out of stack while it dealt with that")
    assert functions(page["crash"]["stack"])[:8] == ["dig"] * 8
    assert len(page["crash"]["stack"]) == 32


def test_a_call_through_a_null_pointer(recorded, shown, victim):
    run = recorded(victim("crashes"), "call")
    died_of(run, signal.SIGSEGV)
    page = shown(run)
    assert page["verdict"]["code"] == "null_dereference" and page["crash"]["address"] == 0
    assert functions(page["crash"]["stack"])[1] == "call_null"


def test_python_code_that_fills_a_null_pointer(recorded, shown, tmp_path):
    """In a function that was not on the stack when the bundle was written."""
    script = written(tmp_path / "fill.py", MEMSET)
    run = recorded(sys.executable, script)
    died_of(run, signal.SIGSEGV)
    page = shown(run)
    assert page["verdict"]["code"] == "null_dereference"
    own = [frame for frame in page["crash"]["stack"] if frame["file"] == str(script)]
    places = [(frame["kind"], frame["function"], frame["line"]) for frame in own]
    assert places == [("python", "fill", 10), ("python", "<module>", 11)], page["crash"]["stack"]


def test_the_recording_suffices_if_the_process_is_killed_meanwhile(preload, oomrec, victim):
    """No time for a bundle simulates the kill: only the session is left."""
    for _ in range(10):  # sometimes the helper is faster
        run = preload(victim("crashes"), "null", env={"OOMREC_BUNDLE_SECONDS": 0})
        died_of(run, signal.SIGSEGV)
        if run.bundles() == []:
            break
        shutil.rmtree(preload.dump_dir)
        for session in preload.session_dir.rglob("*.session"):
            session.unlink()
    assert run.bundles() == [] and len(list(preload.session_dir.rglob("*.session"))) == 1
    assert oomrec("recover").exit_code == 0
    page = oomrec.json("show", run.only_bundle())
    assert page["verdict"]["code"] == "null_dereference" and page["trigger"] == "crash"
    assert page["outcome"] == "signal 11"
    assert functions(page["crash"]["stack"])[0] == "use_null"


# --- Unrelated crashes ----------------------------------------------------------------------------


def test_a_crash_without_a_failure_writes_no_bundle(recorded, victim):
    run = recorded(victim("crashes"), "plain")
    died_of(run, signal.SIGSEGV)
    assert run.bundles() == []


# What the truth is, and how sure the verdict must be at least. Only memory's own deaths may be blamed on memory, and a
# handled failure's bundle keeps its own verdict.
CONSEQUENCES = {
    "at_once": ("null_dereference", 11),
    "far_inside": ("null_dereference", 11),
    "by_memset": ("null_dereference", 11),
    "from_wrapper": ("null_dereference", 11),
    "grown": ("null_dereference", 11),
    "mapped": ("null_dereference", 11),
    "asserted": ("crash_after_refusal", 6),
    "given_up": ("crash_after_refusal", 6),
    "given_up_by_wrapper": ("crash_after_refusal", 6),
    "given_up_by_code": ("crash_after_refusal", 6),
}
UNRELATED = {
    "handled_null": 11,
    "handled_null_later": 11,
    "inline_null": 11,
    "retried": 11,
    "wild": 11,
    "freed_twice": 6,
    "asserted_other": 6,
    "gave_up_other": 6,
    "overflowed": 11,
    "trapped": 5 if platform.machine() == "aarch64" else 4,
    "divided": 8,
    "in_thread": 11,  # the crash is another thread's
}
CONSEQUENCES_IN_CXX = {
    "uncaught": ("uncaught_bad_alloc", 6),
    "resized": ("uncaught_bad_alloc", 6),
    "rethrown": ("uncaught_bad_alloc", 6),
    "translated": ("crash_after_refusal", 6),
    "own_exception": ("crash_after_refusal", 6),
    "derived_exception": ("uncaught_bad_alloc", 6),
    "kept_and_rethrown": ("uncaught_bad_alloc", 6),
    "aborted_in_handler": ("crash_after_refusal", 6),
    "nothrow_used": ("null_dereference", 11),
}
UNRELATED_IN_CXX = {"logic": 6, "out_of_range": 6, "after_nothrow": 6}


@pytest.fixture(params=["gcc_O0", "gcc_O2", "clang_O0", "clang_O2"])
def compiled(request, victim, build_dir):
    """A victim as a compiler made it."""

    def path_of(name):
        if not (build_dir / "tests" / "victims" / f"{name}_{request.param}").exists():
            pytest.skip("this compiler is not installed")
        return victim(f"{name}_{request.param}")

    return path_of


def assert_consequence(run, shown, code, number):
    died_of(run, number)
    verdict = shown(run)["verdict"]
    assert (verdict["code"], verdict["certainty"]) in {(code, "likely"), (code, "proven")}, str(run)


def assert_unrelated(run, oomrec, number):
    """The failure did no harm, and the crash has a bundle of its own."""
    died_of(run, number)
    refused, crashed = [oomrec.json("show", bundle) for bundle in run.bundles()]
    assert refused["verdict"]["code"] == "request_too_large", refused["verdict"]
    assert (refused["outcome"], refused["crash"]) == ("recovered", None)
    assert crashed["verdict"]["code"] == "crashed", crashed["verdict"]
    assert crashed["outcome"] == f"signal {number}"


@pytest.mark.parametrize("way", CONSEQUENCES)
def test_a_consequence_of_the_failure(preload, shown, compiled, way):
    assert_consequence(preload(compiled("after_refusal"), way), shown, *CONSEQUENCES[way])


@pytest.mark.parametrize("way", CONSEQUENCES_IN_CXX)
def test_a_consequence_of_the_failure_in_cxx(preload, shown, compiled, way):
    run = preload(compiled("after_refusal_in_cxx"), way)
    assert_consequence(run, shown, *CONSEQUENCES_IN_CXX[way])


@pytest.mark.parametrize("way", UNRELATED)
def test_a_handled_failure_is_not_blamed(oomrec, compiled, way):
    if way == "divided" and platform.machine() == "aarch64":
        pytest.skip("a division by 0 has a result on this processor")
    run = oomrec("run", "--", compiled("after_refusal"), way)
    assert_unrelated(run, oomrec, UNRELATED[way])


@pytest.mark.parametrize("way", UNRELATED_IN_CXX)
def test_a_handled_failure_is_not_blamed_in_cxx(oomrec, compiled, way):
    run = oomrec("run", "--", compiled("after_refusal_in_cxx"), way)
    assert_unrelated(run, oomrec, UNRELATED_IN_CXX[way])


def test_an_abort_that_may_follow_is_said_to_be_possible(preload, shown, compiled):
    """operator new throws: what came after the handler cannot be told from its code."""
    verdict = shown(preload(compiled("after_refusal_in_cxx"), "aborted_later"))["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("crash_after_refusal", "possible")
    assert verdict["summary"].endswith("nothing excludes it")


# Many refusals of one stack, many small blocks served, then one of another stack, which ends it.
REFUSED_ANEW = """
#include <stdio.h>
#include <stdlib.h>
static void *volatile kept[3001];
__attribute__((noinline)) static void* buffer(size_t bytes) {
  void* block = malloc(bytes);
  if (block == NULL) { fputs("out of memory\\n", stderr); abort(); }
  return block;
}
int main(void) {
  for (int i = 0; i < 200; i++) kept[0] = malloc(1 << 20);
  for (int i = 1; i <= 3000; i++) kept[i] = malloc(200);
  return buffer(5 << 20) != kept[0];
}
"""
# mmap's -1 becomes a NULL, which is used.
MADE_NULL = """
#include <sys/mman.h>
__attribute__((noinline)) static char* map(unsigned long bytes) {
  void* at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? 0 : at;
}
int main(void) { char* at = map(1ul << 50); at[16] = 1; return at[17]; }
"""


def test_the_latest_refusal_is_the_one_that_is_examined(preload, oomrec, tmp_path):
    run = preload(built(tmp_path, "program", REFUSED_ANEW), env={"OOMREC_LIMIT": "100M"})
    died_of(run, signal.SIGABRT)
    crash = oomrec.json("show", run.bundles()[-1])
    assert crash["verdict"]["code"] == "crash_after_refusal", crash["verdict"]
    assert crash["request"]["size"] == 5 << 20


def test_minus_one_that_was_made_a_null_has_led_to_the_crash(preload, shown, tmp_path):
    run = preload(built(tmp_path, "program", MADE_NULL))
    died_of(run, signal.SIGSEGV)
    verdict = shown(run)["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("null_dereference", "proven"), verdict


def test_a_stored_null_that_is_used_much_later_is_possible(preload, oomrec, compiled):
    run = preload(compiled("after_refusal"), "stored_long_ago")
    died_of(run, signal.SIGSEGV)
    pages = [oomrec.json("show", bundle) for bundle in run.bundles()]
    (page,) = [page for page in pages if page["crash"] is not None]
    verdict = page["verdict"]
    assert (verdict["code"], verdict["certainty"]) == ("null_dereference", "possible")
    assert "malloc refused 64.0 TiB: the program may have used the NULL" in verdict["summary"]
    assert any(
        "the thread made 500 other allocations in between" in line for line in verdict["evidence"]
    )


HANDLED = """
import ctypes, os, sys
try: bytearray(1 << 46)
except MemoryError: pass
"""


@pytest.mark.parametrize(
    "code, number",
    [
        ("ctypes.string_at(0)", 11),
        ("kept = [object() for _ in range(20000)]; ctypes.string_at(0)", 11),
        ("kept = [str(i) * 600 for i in range(1000)]; os.abort()", 6),
        ("kept = [str(i) * 600 for i in range(1000)]; os.kill(os.getpid(), 4)", 4),
    ],
)
def test_a_handled_memory_error_is_not_blamed(oomrec, code, number):
    run = oomrec("run", "--", sys.executable, "-c", HANDLED + code)
    assert_unrelated(run, oomrec, number)


def test_a_crash_after_the_call_succeeded(recorded, oomrec, victim):
    run = recorded(victim("crashes"), "served")
    oomrec("recover")
    assert_unrelated(run, oomrec, signal.SIGSEGV)


def test_a_crash_of_another_thread(recorded, oomrec, victim):
    """The other thread's failure is judged: its result leads to no such address."""
    run = recorded(victim("crashes"), "other")
    oomrec("recover")
    assert_unrelated(run, oomrec, signal.SIGSEGV)
    evidence = oomrec.json("show", run.bundles()[1])["verdict"]["evidence"]
    assert any("which came in another thread; all threads made" in line for line in evidence)


def test_a_signal_from_another_process_is_not_memory(preload, oomrec, victim):
    process = preload.start(victim("crashes"), "wait").once("ready")
    process.send_signal(signal.SIGABRT)
    run = preload.finish(process)
    oomrec("recover")
    assert_unrelated(run, oomrec, signal.SIGABRT)


# --- The program is not disturbed -----------------------------------------------------------------


@pytest.mark.parametrize(
    "way",
    ["null", "plain", "abort", "overflow", "thread", "thread_overflow", "map", "kill", "raise",
     "bus", "call", "fork", "fork_failure", "many"],
)  # fmt: skip
@pytest.mark.parametrize("core", [0, resource.RLIM_INFINITY])
def test_the_end_is_the_same_unrecorded(plain, preload, victim, way, core):
    """The complete wait status, with its core flag."""

    def status_of(runner):
        process = runner.start(
            victim("crashes"),
            way,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_CORE, (min(core, hard), hard) if core else (0, hard)
            ),
        )
        stdout = process.stdout.read()
        _, status = os.waitpid(process.pid, 0)
        process.returncode = 0
        return status, stdout

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert status_of(preload) == status_of(plain)


@pytest.mark.parametrize("way", ["", "own", "later"])
def test_the_program_finds_its_own_handlers(plain, preload, victim, way):
    without, recorded = plain(victim("own_handlers"), way), preload(victim("own_handlers"), way)
    assert (recorded.stdout, recorded.exit_code) == (without.stdout, without.exit_code)
    assert ("mine" in recorded.stdout.splitlines()) == (way == "own")


def caught(run, when):
    (line,) = [line for line in run.stderr.splitlines() if line.startswith(f"{when} SigCgt")]
    return int(line.split()[-1], 16)


def test_there_is_no_handler_before_a_failure(plain, preload, victim):
    without, recorded = plain(victim("own_handlers")), preload(victim("own_handlers"))
    assert caught(recorded, "before") == caught(without, "before")
    ours = sum(
        1 << (getattr(signal, name) - 1)
        for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGTRAP", "SIGFPE")
    )
    assert caught(recorded, "after") == caught(without, "after") | ours


def test_faulthandler_output_is_unchanged(plain, preload, tmp_path):
    for when in ("before", "after"):
        script = tmp_path / f"{when}.py"
        enable = "import faulthandler; faulthandler.enable()\n"
        refused = "try: bytearray(1 << 46)\nexcept MemoryError: pass\n"
        code = enable + refused if when == "before" else refused + enable
        script.write_text(code + "import ctypes; ctypes.memset(8, 1, 1)\n")
        without, recorded = plain(sys.executable, script), preload(sys.executable, script)
        died_of(recorded, signal.SIGSEGV)
        # Since 3.14 it prints native frames, too, and their addresses differ in every run.
        lines, own = (
            re.sub(r"\[0x[0-9a-f]+\]", "[address]", run.stderr).splitlines()
            for run in (recorded, without)
        )
        lines = [line for line in lines if not line.startswith("oomrec: ")]
        assert lines[0] == own[0] == "Fatal Python error: Segmentation fault"
        assert lines[3:] == own[3:] and len(own) > 3  # the third names the thread


def test_a_childs_crash_is_not_its_parents(preload, oomrec, victim):
    run = preload(victim("crashes"), "fork")
    assert run.stdout == "child 11\n" and run.exit_code == 0
    assert oomrec.json("show", run.only_bundle())["outcome"] == "recovered"
    run = preload(victim("crashes"), "fork_failure", env={"OOMREC_DUMP_DIR": "dumps"})
    assert run.stdout == "child 11\n" and run.exit_code == 0
    bundles = [oomrec.json("show", path) for path in (preload.directory / "dumps").iterdir()]
    codes = sorted(bundle["verdict"]["code"] for bundle in bundles)
    assert codes == ["null_dereference", "request_too_large"]


def test_a_sandboxed_program_dies_as_without_the_recorder(plain, preload, victim):
    """No handler stays installed where a system call would be fatal."""
    runs = [runner(victim("sandboxed_crash")) for runner in (plain, preload)]
    if runs[0].exit_code == 77:
        pytest.skip("no seccomp filter may be set here")
    assert runs[0].exit_code == runs[1].exit_code == 128 + signal.SIGSEGV
