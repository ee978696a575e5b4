"""liboomrec.so: its exports, its imports, and that unrelated programs start with it.

An accidental export would replace the program's own symbol. An extra dependency would be loaded into
every program. Both are read from the file with binutils.
"""

import platform
import re
import shutil
import subprocess

import pytest
from sizes import take_up

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
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def names(nm_output):
    return {line.split()[-1].partition("@")[0] for line in nm_output.splitlines()}


def imports(library):
    """Names that the loader binds for the library, including its own exports."""
    rows = [line.split() for line in output("readelf", "-rW", library).splitlines()]
    kind = re.compile(r"R_(X86_64|AARCH64)_(JUMP_SLOT?|GLOB_DAT|ABS64|64)")
    return {row[4].partition("@")[0] for row in rows if len(row) > 4 and kind.fullmatch(row[2])}


def test_golden_exports_are_the_hooks_and_the_c_api(library, golden):
    exported = names(output("nm", "-D", "--defined-only", library))
    if platform.machine() == "aarch64":  # where glibc began
        exported = exported - {"GLIBC_2.17"} | {"GLIBC_2.2.5"}

    golden("exports.txt", "\n".join(sorted(exported)) + "\n")


def test_golden_imports_have_nothing_unsafe_in_a_hook(library, golden):
    imported = imports(library)

    assert [name for name in sorted(imported) if NEVER_IMPORTED.fullmatch(name)] == []
    if platform.machine() == "aarch64":  # the compiler's choice of atomic instructions, libunwind
        imported -= {"__getauxval", "write"}
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

    # Not libdl, which is in libc since glibc 2.34, nor libpthread, which changes a program of an older one.
    assert needed == {"libc.so.6"}


@pytest.mark.needs_pid_namespace
@pytest.mark.needs_program("cc")
def test_records_where_libc_is_all_there_is(library, plain, oomrec, tmp_path):
    """In an image that has only the loader and libc."""
    root = tmp_path / "root"
    for name in ["proc", "tmp", "sessions"]:
        (root / name).mkdir(mode=0o700, parents=True)
    shutil.copy(library, root / "liboomrec.so")
    (tmp_path / "program.c").write_text(
        """#include <stdio.h>
        #include <stdlib.h>
        char* hold(void) { return malloc(3000000); }
        int main(void) {
          for (int i = 0; i < 10; i++) hold()[0] = 1;
          void* volatile refused = malloc((size_t)1 << 60);  // gcc leaves out a call whose result has no use
          return refused == NULL ? puts("refused"), 0 : 1;
        }"""
    )
    subprocess.run(
        ["cc", "-rdynamic", "-O1", "-w", "-o", root / "program", tmp_path / "program.c"], check=True
    )
    (loader,) = re.findall(r"/lib\S*/ld-linux\S+", output("ldd", library))
    (libc,) = re.findall(r"libc\.so\.6 => (\S+)", output("ldd", library))
    for path in [loader, libc]:
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])

    enter = ["unshare", "--fork", "--pid", "--mount-proc", f"--root={root}"]
    paths = {"OOMREC_SESSION_DIR": "/sessions", "OOMREC_DUMP_DIR": "/tmp/dumps"}
    run = plain(*enter, loader, "--preload", "/liboomrec.so", "/program", env=paths)

    assert (run.stdout, run.exit_code) == ("refused\n", 0), str(run)
    (bundle,) = (root / "tmp/dumps").glob("oom_*")
    largest = oomrec.json("show", bundle)["holders"][0]
    assert largest["count"] == 10 and take_up(largest["bytes"], 3_000_000, 10)
    assert "hold" in [frame["function"] for frame in largest["stack"]]


@pytest.mark.parametrize("name", ["liboomrec.so", "oomrec"])
def test_needs_no_newer_glibc(build_dir, name):
    """Neither a symbol of a newer version nor one of an older without a version."""
    listed = output("objdump", "-T", build_dir / name)
    assert "GLIBC_PRIVATE" not in listed
    rows = [line.split() for line in listed.splitlines()[4:] if line]
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
    relocations = output("readelf", "-rW", library)
    assert not re.search("TLSDESC|DTPMOD", relocations) and re.search("TPOFF|TPREL", relocations)
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
