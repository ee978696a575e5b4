"""A failed request in its bundle: function, size, stack."""

from __future__ import annotations

import glob
import re

import pytest
from conftest import built

TOO_MUCH = 1 << 46
PAGE = 4096

# victim and its words: api, bytes, space, a function of its stack
FAILURES = {
    "naive_malloc": ("malloc", TOO_MUCH + 101, "heap", "main"),
    "refusals posix_memalign": ("posix_memalign", TOO_MUCH + 107, "heap", "main"),
    "refusals aligned_alloc": ("aligned_alloc", TOO_MUCH + 109 * 64, "heap", "main"),
    "refusals mmap": ("mmap", 2 * TOO_MUCH + 127, "map", "main"),
    "refusals mremap": ("mremap", TOO_MUCH + 131 * PAGE, "map", "main"),
    "refusals calloc": ("calloc", 2**64 - 1, "heap", "main"),
    "refusals thread": ("pthread_create", 4 * TOO_MUCH, "map", "main"),
    "leak": ("malloc", TOO_MUCH + 137, "heap", "main"),
    "refusals own_limit": ("malloc", (512 << 20) + 139, "heap", "main"),
    "vfork_exec": ("malloc", TOO_MUCH + 149, "heap", "main"),
    "coroutine": ("malloc", TOO_MUCH + 157, "heap", "fail_in_coroutine"),
}


def request_of(oomrec, run) -> dict:
    return oomrec.json("show", run.bundles()[0])["request"]


@pytest.mark.parametrize("name", FAILURES)
def test_request_is_exact(oomrec, preload, victim, name):
    api, bytes_, space, function = FAILURES[name]
    program, *words = name.split()
    request = request_of(oomrec, preload(victim(program), *words))
    assert (request["api"], request["size"], request["space"]) == (api, bytes_, space)
    assert request["error"] in ("ENOMEM", "EAGAIN")
    assert function in [frame["function"] for frame in request["stack"]]


def test_a_growing_realloc(oomrec, preload, victim):
    run = preload(victim("refusals"), "realloc")
    request = request_of(oomrec, run)
    assert request["api"] == "realloc" and f"refused {request['size']}\n" in run.stdout


def test_each_of_64_threads_is_counted(oomrec, preload, victim):
    run = preload(victim("refusals"), "threads")
    request = request_of(oomrec, run)
    assert run.stdout == "64 refused\n"
    assert request["api"] == "malloc" and (request["size"] - TOO_MUCH - 1000) in range(0, 128, 2)
    assert "fail" in [frame["function"] for frame in request["stack"]]


@pytest.mark.parametrize("name", [None, "libjemalloc.so.2", "libtcmalloc.so.4"])
def test_new_is_recorded_under_every_allocator(oomrec, plain, library, victim, name):
    other = "" if name is None else ":" + (glob.glob(f"/usr/lib/*/{name}") or pytest.skip(name))[0]
    run = plain(victim("new_caught"), env={"LD_PRELOAD": f"{library}{other}"})
    request = request_of(oomrec, run)
    assert request["size"] == 2 * TOO_MUCH + 103, str(run)
    assert request["api"] == ("malloc" if name is None else "operator_new")
    assert "main" in [frame["function"] for frame in request["stack"]]


# By the names of the operators, which jemalloc has, too.
ALIGNED_NEW = """
#include <stddef.h>
void* _ZnwmSt11align_val_t(size_t, size_t);
void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void*);
void _ZdlPvSt11align_val_t(void*, size_t);
int main(void) {
  static void* volatile kept[1000];
  for (int i = 0; i < 1000; ++i) {
    kept[i] = _ZnwmSt11align_val_t(32768, 64);
    _ZdlPvSt11align_val_t(_ZnamSt11align_val_tRKSt9nothrow_t(2048, 64, &kept), 64);
  }
}
"""


@pytest.mark.parametrize("name", [None, "libjemalloc.so.2", "libtcmalloc.so.4"])
def test_new_with_an_alignment_counts_once(oomrec, plain, library, tmp_path, name):
    """jemalloc's calls aligned_alloc, which is a hook."""
    other = "" if name is None else ":" + (glob.glob(f"/usr/lib/*/{name}") or pytest.skip(name))[0]
    program = built(tmp_path, "aligned_new", ALIGNED_NEW, "-lstdc++")
    env = {"LD_PRELOAD": f"{library}{other}", "OOMREC_DUMP_AT_EXIT": "1"}
    run = plain(program, env=env, exits=0)
    (bundle,) = run.bundles()
    heap = oomrec.json("show", bundle)["spaces"]["heap"]
    assert 1000 <= heap["live_count"] <= 1100 and heap["allocated_count"] <= 2200, heap
    assert 1000 * 32768 <= heap["live_bytes"] <= 1300 * 32768, heap


def test_soft_limit_throws_the_programs_own_exception(oomrec, plain, library, victim):
    for name in (None, "libjemalloc.so.2", "libtcmalloc.so.4", "libmimalloc.so.[23]"):
        found = [] if name is None else glob.glob(f"/usr/lib/*/{name}")
        preloads = ":".join([str(library), *found])
        run = plain(
            victim("new_within_limit"),
            env={"LD_PRELOAD": preloads, "OOMREC_LIMIT": "64M", "OOMREC_DUMP_DIR": name or "none"},
        )
        if "mimalloc" not in str(name):  # built as C, it aborts instead of throwing
            assert run.stdout == "caught, 7 again\n", str(run)
        # The request itself, and nothing of the allocator's own failing mmap.
        assert re.findall(r"asked (\w+) for (\S+ \w+)", run.stderr) == [
            ("malloc" if not found else "operator_new", "7.0 MiB")
        ], str(run)


def test_probes_write_no_bundle(preload, victim):
    run = preload(victim("probes"))
    assert run.exit_code == 0 and run.bundles() == [], str(run)


def test_a_failed_fork_is_a_failure(oomrec, preload, victim, tmp_path):
    tmp_path.chmod(0o777)
    run = preload(victim("refusals"), "fork")
    if run.exit_code == 77:
        pytest.skip("the limit of tasks could not be set")
    assert "EAGAIN 1" in run.stdout
