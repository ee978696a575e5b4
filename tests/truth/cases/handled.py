"""A refusal that was handled, or none at all, and later an unrelated crash: memory is innocent."""

from __future__ import annotations

import signal
from typing import Any

from truth.case import ABORTED, CRASHED, Case, innocent, signalled

# The refusal's own bundle says no more than that it happened.
MENTIONED = ("request_too_large", "soft_limit", "exception")
FAULT = {"null", "wild", "unmapped", "overflow", "readonly", "call_null", "raise"}
ENDS = {"divide": signalled(signal.SIGFPE), "illegal": signalled(signal.SIGILL)}


def ending(what: str) -> str:
    return CRASHED if what in FAULT else ENDS.get(what, ABORTED)


def handled(what: str, how: str = "malloc", short: bool = False) -> Case:
    return Case(
        f"handled_{what}_{how}",
        "handled",
        f"a refusal ({how}) is handled, the work goes on, then an unrelated bug: {what}",
        ["@handled", what, how],
        innocent("crashed", unsure=MENTIONED),
        ends=ending(what),
        short=short,
    )


def plain(what: str, ends: str, *codes: str) -> Case:
    return Case(
        f"plain_{what}",
        "handled",
        f"no refusal at all; {what} ends the program",
        ["@crash", what],
        innocent(*(codes or ("crashed",))),
        ends=ends,
    )


def passed(how: str, story: str, ends: str = CRASHED, **more: Any) -> Case:
    """A function reports its refusal, and its caller deals with that."""
    return Case(
        f"handled_{how}",
        "handled",
        story + ", and an unrelated bug follows",
        ["@passes_on", f"handled_{how}"],
        innocent("crashed", unsure=MENTIONED),
        ends=ends,
        **more,
    )


PASSED = [
    passed("loop_abort", "the error branch has a loop and goes on", ABORTED),
    passed("loop_null", "the error branch has a loop and goes on", short=True),
    passed("strdup", "strdup's NULL is replaced", env={"OOMREC_LIMIT": "90M"}),
    passed("asprintf", "asprintf's failure is handled", env={"OOMREC_LIMIT": "50M"}),
    passed("asprintf_unused", "asprintf's failure is ignored, and so is its line",
           env={"OOMREC_LIMIT": "50M"}),
    passed("asprintf_replaced", "asprintf's line is replaced; another text is freed twice",
           ABORTED, env={"OOMREC_LIMIT": "50M"}),
    passed("getline", "a loop ends where getline fails",
           env={"OOMREC_FAIL": "malloc:min=100,nth=4"}),
    passed("memalign_unset", "posix_memalign's error is handled"),
    passed("free_twice_by_tail", "a block is freed twice whether or not another was refused",
           ABORTED),
    passed("fopen", "fopen's NULL is handled", env={"OOMREC_FAIL": "malloc:min=400,nth=3"}),
    passed("nothrow_wrapper", "a wrapper of new (nothrow) returns NULL, which is handled"),
    passed("pool", "an allocator's NULL is handled"),
    passed("code_stored", "a failure is stored as a flag"),
    passed("header_before", "a refusal is handled; the header before another NULL is written"),
    passed("realloc", "a refused realloc is handled"),
    passed("flag_passed", "a failure is passed to the next function as a flag"),
    passed("slot", "a number that stands for the failure selects a row"),
    passed("heap_overrun", "a refused realloc is handled; another block is overrun"),
    passed("second", "two refusals are handled"),
    passed("divide_returned", "a size that became 0 is not used", signalled(signal.SIGFPE)),
    passed("what", "an exception 'out of memory' is handled", ABORTED),
    passed("thread_spawn", "std::thread's system_error is handled", ABORTED),
    passed("own_bad_alloc", "a bad_alloc is handled; 3 s later an own class of it is thrown",
           ABORTED),
]  # fmt: skip

LOOKALIKES = {
    "missing_file": ("fopen finds no file, and fputs uses the NULL", CRASHED),
    "missing_path": ("realpath finds no path, and its NULL is written to", CRASHED),
    "missing_variable": ("getenv finds nothing, and strlen reads the NULL", CRASHED),
    "before_missing": ("the row before a NULL that a search returned is written", CRASHED),
    "zero_setting": ("a setting of 0 is a divisor", signalled(signal.SIGFPE)),
    "cannot_open": ("an uncaught runtime_error about a file", ABORTED),
    "bad_thread": ("an uncaught system_error: a thread that never started is joined", ABORTED),
    "bad_cast": ("an uncaught bad_any_cast", ABORTED),
    "no_value": ("an uncaught bad_optional_access", ABORTED),
    "too_long": ("an uncaught length_error: a size that no vector has", ABORTED),
    "thread_overflows": ("a thread's stack overflows", CRASHED),
    "rows_then_abort": ("a loop of small allocations, then abort() for a missing row", ABORTED),
    "overrun": ("a strdup'ed name is overrun, and the C library finds that", ABORTED),
}

PYTHON_HANDLED = """
import sys, ctypes, os
held = bytearray(b"x") * (24 << 20)
try:
    cache = bytearray(1 << 46)
except MemoryError:
    cache = None
rows = [[str(i) * 10 for i in range(400)] for _ in range(200)]
"""
PYTHON_BUGS = {
    "ctypes": ("ctypes.string_at(16)", CRASHED),
    "abort": ("os.abort()", ABORTED),
    "key_error": ("{}['missing']", "exit 1"),
    "exit_4": ("sys.exit(4)", "exit 4"),
    "recursion": ("f = lambda: f(); f()", "exit 1"),
}

PERL_HANDLED = """
my $held = "x" x (24 << 20);
my @rows = map { "row $_" x 20 } 1 .. 20000;
kill 'SEGV', $$;
"""

CASES = [
    *PASSED,
    *(
        Case(
            f"lookalike_{how}",
            "handled",
            f"a refusal is handled; then {story}",
            ["@lookalikes", how],
            innocent("crashed", unsure=MENTIONED),
            ends=ends,
        )
        for how, (story, ends) in LOOKALIKES.items()
    ),
    *(handled(what) for what in ("wild", "unmapped", "free_twice", "overflow", "map_at")),
    *(handled(what) for what in ("readonly", "call_null", "divide", "illegal", "terminate")),
    *(handled(what, short=True) for what in ("null", "assert", "out_of_range")),
    *(handled(what, "new") for what in ("null", "runtime_error", "abort", "overflow")),
    *(handled(what, "often") for what in ("wild", "assert")),
    *(handled(what, "thread") for what in ("null", "out_of_range", "raise")),
    *(handled(what, "none") for what in ("runtime_error", "null")),
    *(
        Case(
            f"handled_python_{name}",
            "handled",
            "Python catches a MemoryError and goes on; then " + bug,
            ["@python" + version, "-c", PYTHON_HANDLED + bug],
            # A refusal that was handled before an ordinary exit is worth its bundle.
            innocent("crashed", *(["exited", *MENTIONED] if ends.startswith("exit") else ())),
            ends=ends,
            short=name == "ctypes",
        )
        for version, (name, (bug, ends)) in zip(
            ("3.11", "3.8", "3.13", "3.12", "3.10"), PYTHON_BUGS.items()
        )
    ),
    *(handled(what, "jump") for what in ("null", "abort")),
    *(
        Case(
            f"handled_rust_{what}{backtrace}",
            "handled",
            "Rust's try_reserve fails and is handled; then a panic: " + what,
            ["@ends_in_rust", what],
            innocent("crashed", unsure=MENTIONED),
            ends=ABORTED,
            env={"RUST_BACKTRACE": "1"} if backtrace else {},
            needs=["rustc"],
        )
        for what, backtrace in (
            ("index", ""),
            ("unwrap", ""),
            ("index", "_traced"),
            ("parse", "_traced"),
        )
    ),
    Case(
        "handled_fibre",
        "handled",
        "a coroutine's refusal is handled; another coroutine uses a wild pointer",
        ["@fibres", "handled"],
        innocent("crashed", unsure=MENTIONED),
        ends=CRASHED,
    ),
    Case(
        "perl_segv",
        "handled",
        "a Perl program without a refusal gets a SIGSEGV of its own",
        ["perl", "-e", PERL_HANDLED],
        innocent("crashed", "killed_externally"),
        ends=CRASHED,
        needs=["perl"],
    ),
    plain("null", CRASHED),
    plain("thread", CRASHED),
    plain("overflow", CRASHED),
    plain("assert", ABORTED),
    plain("divide", signalled(signal.SIGFPE)),
    plain("free_bad", ABORTED),
    plain("after_free", CRASHED),
    plain("truncated", signalled(signal.SIGBUS)),
    plain("kill_self", signalled(signal.SIGKILL), "killed_externally"),
    plain("term_self", signalled(signal.SIGTERM), "killed_externally"),
    plain("alarm", signalled(signal.SIGALRM), "killed_externally", "crashed"),
    plain("quit", signalled(signal.SIGQUIT), "killed_externally", "crashed"),
]
