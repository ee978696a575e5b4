"""With the recorder off, the program's calls do not pass our code."""

from __future__ import annotations

import subprocess

import pytest

# The heap's are called too often for one jump more: they read a flag of ours before anything else.
# dlsym hides our CUDA and HIP functions, which have no next definition in most programs.
DIRECT = {
    "malloc", "calloc", "realloc", "reallocarray", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc",
    "pvalloc", "dlsym",
}  # fmt: skip


# Their hooks stay where nothing else has the function.
NOT_IN_EACH_C_LIBRARY = {
    "cfree", "free_sized", "free_aligned_sized", "dallocx", "sdallocx", "mallocx", "rallocx",
}  # fmt: skip


def exported(library) -> set[str]:
    lines = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True).splitlines()
    names = {line.split()[2].split("@")[0] for line in lines if line.split()[1] == "T"}
    return {name for name in names if not name.startswith(("oomrec_", "cu", "hip", "_Z"))}


def libraries(run) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in run.stdout.splitlines())


@pytest.mark.parametrize("mode", ["off", "sampled", "exact"])
def test_where_a_call_continues(preload, victim, library, mode):
    names = sorted(exported(library) - DIRECT)
    assert {"mmap", "mmap64", "_exit", "execl", "syscall", "pthread_create"} <= set(names)
    run = preload(victim("entries"), *names, env={"OOMREC_MODE": mode})
    found = libraries(run)
    assert found.keys() == set(names)
    ours = {name for name, path in found.items() if "liboomrec" in path}
    assert "itself" not in found.values(), found
    assert ours == set(names) if mode != "off" else ours <= NOT_IN_EACH_C_LIBRARY, found


def test_what_a_call_without_the_library_is(plain, victim):
    """The control: libc's functions do not begin with a jump."""
    assert set(libraries(plain(victim("entries"), "mmap", "_exit", "fork")).values()) == {"itself"}
