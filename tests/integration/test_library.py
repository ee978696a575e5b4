"""liboomrec.so: its exports, its imports, and that unrelated programs start with it.

An accidental export would replace the program's own symbol. An extra dependency would be loaded into
every program. Both are read from the file with binutils.
"""

import re
import subprocess

import pytest

# Part of libc, and known to musl's loader, too (which has no ld-linux).
ALLOWED_LIBRARIES = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"}
NEWEST_GLIBC = (2, 28)
LARGEST_TLS_BYTES = 512  # static TLS in every thread of every program

# What the library never calls. What it calls is in a golden file: malloc and free only when it
# starts (does the program call ours?), mutexes to show that the session's process lives.
NEVER_IMPORTED = re.compile(
    r"(calloc|realloc|posix_memalign|_Zn[wa].*|_Zd[la].*"
    r"|__cxa_(throw|allocate_exception|begin_catch|guard_.*)|_Unwind_.*|__gxx_personality_.*"
    r"|pthread_getattr_np|dl_iterate_phdr|__tls_get_addr|.*printf)"
)
MUSL_LOADER = "/lib/ld-musl-x86_64.so.1"


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def names(nm_output):
    return {line.split()[-1].partition("@")[0] for line in nm_output.splitlines()}


def imports(library):
    """Names that the loader binds for the library, including its own exports."""
    rows = [line.split() for line in output("readelf", "-rW", library).splitlines()]
    kinds = ("R_X86_64_JUMP_SLO", "R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT")
    return {row[4].partition("@")[0] for row in rows if len(row) > 4 and row[2] in kinds}


def test_golden_exports_are_the_hooks_and_the_c_api(library, golden):
    exported = names(output("nm", "-D", "--defined-only", library))

    golden("exports.txt", "\n".join(sorted(exported)) + "\n")


def test_golden_imports_have_nothing_unsafe_in_a_hook(library, golden):
    imported = imports(library)

    assert [name for name in sorted(imported) if NEVER_IMPORTED.fullmatch(name)] == []
    golden("imports.txt", "\n".join(sorted(imported)) + "\n")


def test_the_recorder_never_allocates(build_dir):
    archives = list((build_dir / "recorder").rglob("*.a"))
    wanted = {
        name
        for archive in archives
        for name in names(output("nm", "-A", "--undefined-only", "--quiet", archive))
    }

    assert len(archives) > 5
    assert wanted & {"malloc", "calloc", "realloc", "free", "_Znwm", "_Znam", "_ZdlPv"} == set()


def test_needs_only_libc(library):
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", library)))

    assert needed <= ALLOWED_LIBRARIES and "libc.so.6" in needed


@pytest.mark.parametrize("name", ["liboomrec.so", "oomrec"])
def test_needs_no_newer_glibc(build_dir, name):
    """Neither a symbol of a newer version nor one of an older without a version."""
    rows = [
        line.split() for line in output("objdump", "-T", build_dir / name).splitlines()[4:] if line
    ]
    needed = {
        (row[-1], tuple(map(int, version[1].split("."))))
        for row in rows
        if "*UND*" in row and (version := re.fullmatch(r"\(?GLIBC_([\d.]+)\)?", row[-2]))
    }

    assert len(needed) > 40, "few versions found: has objdump's output changed?"
    newer = sorted(symbol for symbol, version in needed if version > NEWEST_GLIBC)
    assert newer == [], "older_glibc/ must define them, or link them by an older version"


def test_thread_local_storage_is_small_and_static(library):
    segments = re.findall(r"^ +TLS +(?:0x\w+ +){4}(0x\w+)", output("readelf", "-lW", library), re.M)

    assert sum(int(size, 16) for size in segments) <= LARGEST_TLS_BYTES
    assert "STATIC_TLS" in output("readelf", "-dW", library) or not segments
    assert "__tls_get_addr" not in imports(library)


@pytest.mark.needs_file(MUSL_LOADER)
def test_glibc_only_symbols_are_weak(library):
    # From musl 1.2.4 on, the loader resolves stat64 to stat, but exports only stat.
    strong = {
        line.split()[-1].partition("@")[0].removesuffix("64")
        for line in output("nm", "-D", "--undefined-only", library).splitlines()
        if line.split()[-2] == "U"
    }

    assert strong - names(output("nm", "-D", "--defined-only", MUSL_LOADER)) == set()


@pytest.mark.needs_program("musl-gcc")
def test_a_musl_program_starts_unrecorded(preload, tmp_path):
    source = tmp_path / "hello.c"
    source.write_text(
        """#include <stdio.h>
        #include <stdlib.h>
        int main(void) {
          for (int i = 1; i < 1000; i++) free(malloc((size_t)i * 1001));
          puts("hello from musl");
          return 7;
        }"""
    )
    subprocess.run(["musl-gcc", "-O1", "-o", tmp_path / "hello", source], check=True, timeout=60)

    run = preload(tmp_path / "hello")

    assert (run.stdout, run.exit_code) == ("hello from musl\n", 7), str(run)
    assert list(preload.session_dir.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["true", "ls /", "sh -c 'echo a | cat; exit 3'", "cat /dev/null"]
)
def test_small_programs_behave_as_without_the_recorder(preload, plain, command):
    recorded, alone = preload("sh", "-c", command), plain("sh", "-c", command)

    assert (recorded.stdout, recorded.stderr, recorded.exit_code) == (
        alone.stdout,
        alone.stderr,
        alone.exit_code,
    )
    assert not preload.dump_dir.exists()
