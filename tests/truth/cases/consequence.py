"""A refused request, and the crash or exit that follows from it: memory is the reason."""

from __future__ import annotations

from typing import Any

from truth.case import ABORTED, CRASHED, Case, died

# That a request was refused is true as well, but says less than how it ended the program.
REFUSED = ("request_too_large", "soft_limit", "mapping_failed", "allocation_failed")
NULL = ("null_dereference", "crash_after_refusal")


def follows(
    how: str, story: str, ends: str, *codes: str, short: bool = False, api: str = ""
) -> Case:
    return Case(
        f"follows_{how}",
        "consequence",
        story,
        ["@consequence", how],
        died(*codes, unsure=REFUSED, api=api),
        ends=ends,
        short=short,
    )


def passed(how: str, story: str, ends: str, *codes: str, **more: Any) -> Case:
    """A function that notices its refusal and reports it as its own failure."""
    return Case(f"passed_{how}", "consequence", story, ["@passes_on", how],
                died(*codes, unsure=REFUSED), ends=ends, **more)  # fmt: skip


FIXED = "crash_after_refusal"
UNSET = (*NULL, FIXED)
UNCAUGHT = ("uncaught_bad_alloc", "crash_after_refusal")


def refusing(nth: int, least: int = 400) -> dict[str, str]:
    """A small request that no limit would refuse."""
    return {"OOMREC_FAIL": f"malloc:min={least},nth={nth}"}


PASSED = [
    passed("loop_abort", "the error branch saves 400 rows in a loop, then aborts", ABORTED, FIXED,
           short=True),
    passed("loop_trap", "the error branch has a loop with a branch, then a trap", "signal 4", FIXED),
    passed("loop_null", "after a loop the error branch writes to the NULL", CRASHED, *NULL),
    passed("strdup_used", "strdup returns NULL, which is written to", CRASHED, *NULL, short=True,
           env={"OOMREC_LIMIT": "90M"}),
    passed("asprintf_used", "asprintf fails, and its line is used", CRASHED, *NULL,
           env={"OOMREC_LIMIT": "50M"}),
    passed("fopen_fputs", "fopen returns NULL, which fputs uses", CRASHED, *NULL, env=refusing(3)),
    passed("getline_used", "getline fails, and its line is used", CRASHED, *NULL,
           env=refusing(4, 100)),
    passed("asprintf_unset", "asprintf fails, and the pointer that it did not set is used", CRASHED,
           *UNSET, env={"OOMREC_LIMIT": "50M"}),
    passed("asprintf_unset_freed", "asprintf fails, and the pointer that it did not set is freed",
           "", *UNSET, env={"OOMREC_LIMIT": "50M"}),
    passed("asprintf_measured", "asprintf fails, and strlen reads its line", CRASHED, *UNSET,
           env={"OOMREC_LIMIT": "50M"}),
    passed("asprintf_freed_before", "asprintf fails, and the line from before is freed again",
           ABORTED, *UNSET, env={"OOMREC_LIMIT": "50M"}),
    passed("asprintf_elsewhere", "asprintf fails, and the line is a variable of the caller's",
           CRASHED, *NULL, env={"OOMREC_LIMIT": "50M"}),
    passed("vasprintf_returned", "a wrapper of vasprintf returns a pointer that nobody set",
           CRASHED, *UNSET, env={"OOMREC_LIMIT": "50M"}),
    passed("getline_unset", "getline returns -1, which is the line's length", CRASHED, *NULL,
           env=refusing(4, 100)),
    passed("memalign_unset", "posix_memalign fails, and the pointer that it did not set is used",
           CRASHED, *UNSET),
    passed("realpath_used", "realpath returns NULL, which is written to", CRASHED, *NULL,
           env=refusing(3, 10)),
    passed("nothrow_wrapper", "a wrapper of new (nothrow) returns NULL, which is used", CRASHED,
           *NULL),
    passed("pool_used", "a library's own allocator returns NULL for a refused mmap", CRASHED, *NULL),
    passed("header_before", "the header before a NULL is written", CRASHED, *NULL),
    passed("realloc_overrun", "a refused realloc's old block is overrun", CRASHED, *NULL),
    passed("free_twice", "the error path frees a block twice", ABORTED, FIXED),
    passed("free_twice_by_tail", "the error path frees a block twice, by tail calls", ABORTED,
           FIXED),
    passed("free_twice_in_helper", "the error path frees a block twice, in a helper's tail call",
           ABORTED, FIXED),
    passed("free_twice_last", "the error path ends with the second free of a block", ABORTED,
           FIXED),
    passed("second_null", "a refusal is handled, and a second one's NULL is used", CRASHED, *NULL,
           short=True),
    passed("second_abort", "a refusal is handled, and after a second one the program aborts",
           ABORTED, FIXED),
    passed("divide_zero", "a division by a size that became 0", "signal 8", FIXED),
    passed("divide_returned", "a function returns 0 slots, by which its caller divides", "signal 8",
           FIXED),
    passed("what_kept", "a runtime_error 'out of memory' is kept and rethrown later", ABORTED,
           *UNCAUGHT),
    passed("what_in_future", "a runtime_error 'out of memory' crosses threads in a future", ABORTED,
           *UNCAUGHT),
    passed("thread_spawn", "std::thread cannot map its stack; uncaught", ABORTED, *UNCAUGHT),
    passed("thread_spawn_kept", "std::thread's system_error is kept and rethrown later", ABORTED,
           *UNCAUGHT),
    *(
        Case(f"passed_rust_{how}", "consequence", story, ["@ends_in_rust", how],
             died(FIXED, unsure=REFUSED + ("thread_creation_failed",)), ends=ABORTED,
             env={"RUST_BACKTRACE": "1"}, needs=["rustc"])
        for how, story in (
            ("expect", "Rust's try_reserve fails, and expect() panics with a backtrace"),
            ("spawn", "Rust's thread::spawn fails, and unwrap() panics with a backtrace"),
        )
    ),
]  # fmt: skip

USED = {
    "before": ("the row before calloc's NULL is written", CRASHED, NULL),
    "memcpy": ("malloc's NULL is memcpy's destination", CRASHED, NULL),
    "aligned": ("aligned_alloc's NULL is written to", CRASHED, NULL),
    "memalign": ("posix_memalign's error is printed, and its NULL is used", CRASHED, NULL),
    "map": ("a row in MAP_FAILED is written", CRASHED, NULL),
    "string": ("a string is too long: bad_alloc, uncaught", ABORTED, UNCAUGHT),
    "constructor": ("a constructor's new[] throws, uncaught", ABORTED, UNCAUGHT),
    "async": ("a task's bad_alloc is rethrown by get(), uncaught", ABORTED, UNCAUGHT),
    "thread": ("a thread's bad_alloc is uncaught", ABORTED, UNCAUGHT),
    "cleanup": ("the error branch frees 400 rows, says so and aborts", ABORTED, (FIXED,)),
}

CASES = [
    *PASSED,
    *(
        Case(f"used_{how}", "consequence", story, ["@lookalikes", f"used_{how}"],
             died(*codes, unsure=REFUSED), ends=ends)
        for how, (story, ends, codes) in USED.items()
    ),
    follows("memset", "memset on the NULL of malloc", CRASHED, *NULL, api="malloc", short=True),
    follows("first_byte", "the first byte of a NULL is written", CRASHED, *NULL),
    follows("far_index", "byte 40 Mi of a NULL is written", CRASHED, *NULL),
    follows("member", "a struct keeps the NULL, another function uses it", CRASHED, *NULL),
    follows("struct_field", "a field of a refused struct is written", CRASHED, *NULL),
    follows("stored_then_worked", "the NULL is used after some work", CRASHED, *NULL, short=True),
    Case(
        "follows_stored_long",
        "consequence",
        "the NULL is stored and used 11 s later",
        ["@consequence", "stored_long"],
        died(*NULL, unsure=[*REFUSED]),
        ends=CRASHED,
    ),
    follows("calloc", "calloc's NULL is used as an array", CRASHED, *NULL, api="calloc"),
    follows("realloc", "realloc's result is not checked", CRASHED, *NULL, api="realloc"),
    follows("strcpy", "strcpy into a NULL", CRASHED, *NULL),
    follows("read_null", "a refused block is read", CRASHED, *NULL),
    follows("mmap", "MAP_FAILED is written to", CRASHED, *NULL, api="mmap"),
    follows("xmalloc_abort", "xmalloc aborts", ABORTED, "crash_after_refusal", short=True),
    follows("xmalloc_exit", "xmalloc exits with 2", "exit 2", "request_too_large"),
    follows("xmalloc_trap", "a checked allocator traps", "signal 4", "crash_after_refusal"),
    *(
        follows(how, f"an uncaught std::bad_alloc: {how}", ABORTED, "uncaught_bad_alloc")
        for how in ("make_unique", "shared", "rethrown", "noexcept", "std_thread")
    ),
    follows(
        "vector", "an uncaught bad_alloc of a vector", ABORTED, "uncaught_bad_alloc", short=True
    ),
    follows("future", "a bad_alloc crosses threads in a future", ABORTED,
            "uncaught_bad_alloc", "crash_after_refusal"),
    follows("reserve", "vector.reserve throws, uncaught", ABORTED, "uncaught_bad_alloc"),
    follows("wrapped", "bad_alloc is translated to a runtime_error, uncaught", ABORTED,
            "uncaught_bad_alloc", "crash_after_refusal"),
    follows("new_handler", "the new handler aborts", ABORTED, "crash_after_refusal",
            "uncaught_bad_alloc"),
    follows("nothrow", "the NULL of new (nothrow) is used", CRASHED, *NULL),
    follows("pthread", "a thread uses its NULL", CRASHED, *NULL),
    follows("signal_self", "the program raises SIGABRT on a NULL", ABORTED, "crash_after_refusal"),
    Case("follows_fibre", "consequence", "a coroutine uses the NULL of a refused request",
         ["@fibres", "null"], died(*NULL, unsure=REFUSED), ends=CRASHED),
    Case("follows_rust", "consequence", "Rust's handle_alloc_error aborts",
         ["@ends_in_rust", "refused"], died("crash_after_refusal", unsure=REFUSED), ends=ABORTED,
         needs=["rustc"]),
    Case("follows_python_abort", "consequence",
         "Python's fatal error: a C call aborts on the NULL of a refused request",
         ["@python3.12", "-c", "import ctypes\nh = bytearray(b'x') * (24 << 20)\n"
          "c = ctypes.CDLL(None)\nc.malloc.restype = ctypes.c_void_p\n"
          "p = c.malloc(ctypes.c_size_t(1 << 46)) or 0\nctypes.memset(p, 0, 16)"],
         died(*NULL, unsure=REFUSED), ends=CRASHED),
    Case("follows_ocaml", "consequence", "OCaml's Out_of_memory, uncaught: exit 2",
         ["ocaml", "@refused.ml"], died("request_too_large", "exception"), ends="exit 2",
         needs=["ocaml"]),
]  # fmt: skip
