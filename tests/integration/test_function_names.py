"""Native functions have the names of their source, and the program's own frame leads."""

import re
import subprocess
import sys

import pytest
from conftest import SOURCE

NUMPY = """
import numpy

def make_noise(generator, size):
    return generator.standard_normal(size)

held = []
generator = numpy.random.default_rng(1)
while True:
    held.append(make_noise(generator, 1 << 20))
"""

PICKLE = """
import pickle

class Model:
    def __reduce__(self):
        return bytearray, (bytearray(300 << 20),)

pickle.dumps([Model()])
"""


def request_stack(oomrec, run):
    return oomrec.json("show", run.only_bundle())["request"]["stack"]


def rows_of_request(oomrec, run, *words):
    """The request's stack as a page shows it."""
    page = oomrec("show", *words, "--source-dir", SOURCE, run.only_bundle()).stdout
    return re.search(r"\nrequest\n.*?\n  in thread[^\n]*\n(.*?)\n\n", page, re.S)[1].splitlines()


def test_a_cython_function_has_its_name_in_the_source(preload, oomrec):
    pytest.importorskip("numpy")
    run = preload(sys.executable, "-c", NUMPY, env={"OOMREC_LIMIT": "128M"})
    functions = [frame["function"] for frame in request_stack(oomrec, run)]
    assert "numpy.random._generator.Generator.standard_normal" in functions
    assert not [name for name in functions if name and name.startswith("__pyx_p")], functions
    assert any(
        row.strip().startswith("numpy.random._generator.Generator.standard_normal  (_generator.")
        for row in rows_of_request(oomrec, run, "--full")
    )


@pytest.mark.parametrize("version", ["3.9", "3.12", "3.13"])
def test_the_standard_librarys_extensions_are_the_interpreters(preload, oomrec, python, version):
    run = preload(python(version), "-c", PICKLE, env={"OOMREC_LIMIT": "128M"})
    modules = [frame["module"] or "" for frame in request_stack(oomrec, run)]
    if not any("/_pickle." in module for module in modules):
        pytest.skip("this interpreter has _pickle built in")  # as Debian's
    rows = "\n".join(rows_of_request(oomrec, run))
    assert "_pickle" not in rows, rows
    assert re.search(r"… \d+ frames of the interpreter", rows), rows


def test_a_cxx_programs_own_function_leads(preload, oomrec, victim):
    run = preload(victim("containers"), env={"OOMREC_LIMIT": "64M"})
    assert (
        "containers asked malloc for 64.0 MiB at train::Model::grow and was refused: " in run.stderr
    )
    assert re.search("largest holder: .*, train::Model::grow in containers\n", run.stderr)
    rows = rows_of_request(oomrec, run)
    own = next(row for row, line in enumerate(rows) if "emplace_back();" in line) - 1
    assert rows[own].strip().startswith("train::Model::grow()"), (
        "its source line is shown, no library's"
    )
    assert own >= 3, "the library's frames are above it"


@pytest.mark.parametrize("words", [[], ["map"]])
def test_rows_of_long_cxx_names_are_told_apart_in_80_columns(preload, oomrec, victim, words):
    run = preload(victim("containers"), *words, env={"OOMREC_LIMIT": "64M"})
    stack = request_stack(oomrec, run)
    assert max(len(frame["function"] or "") for frame in stack) > 80, "JSON has the whole names"
    rows = [
        row for row in rows_of_request(oomrec, run) if "(" in row and "_M_" in row or "::" in row
    ]
    assert len(rows) > 3
    assert len({row[:80] for row in rows}) == len(rows), rows
    methods = [re.sub(r"<.*|\(.*", "", frame["function"].split("::")[-1]) for frame in stack[:3]]
    assert all(method in row for method, row in zip(methods, rows_of_request(oomrec, run))), rows


LIBRARY = """
#include <stdlib.h>
#include <string.h>
void keep_page(void) { memset(malloc(1 << 20), 1, 1 << 20); }
"""


@pytest.mark.needs_cgroup_write
def test_a_librarys_name_says_more_than_an_address_of_the_program(oomrec, cgroup, tmp_path):
    """The line at death of a stripped program names the library's function, as the warning does."""
    (tmp_path / "keep.c").write_text(LIBRARY)
    main = "void keep_page(void);\nint main(void) { for (;;) keep_page(); }"
    (tmp_path / "main.c").write_text(main)
    installed = tmp_path / "site-packages"
    installed.mkdir()
    library, program = installed / "libkeep.so", tmp_path / "stripped"
    gcc = ["gcc", "-O0", tmp_path / "keep.c", "-shared", "-fPIC", "-o", library]
    subprocess.run(gcc, check=True)
    gcc = ["gcc", "-O0", "-s", tmp_path / "main.c", library, "-o", program]
    subprocess.run([*gcc, f"-Wl,-rpath,{installed}"], check=True)
    run = oomrec("run", "--", program, preexec_fn=cgroup("100M").enter)
    said = re.search(r"was killed.*; largest holder: (.*)", run.stderr)
    assert said and "MiB, keep_page  (libkeep.so)" in said[1].replace(" (", "  ("), str(run)


DEEP = """
#include <stdlib.h>
#include <string.h>
void* kept;
int keep_page(int depth) {
  if (depth != 0) return keep_page(depth - 1) + 1;
  for (;;) kept = memset(malloc(1 << 20), 1, 1 << 20);
}
int main(void) { return keep_page(700); }
"""


@pytest.mark.needs_cgroup_write
def test_a_function_says_more_than_that_frames_are_missing(oomrec, cgroup, tmp_path):
    """The line at death of a program whose stacks are too deep, or cannot be followed to their end."""
    (tmp_path / "deep.c").write_text(DEEP)
    gcc = ["gcc", "-O0", tmp_path / "deep.c", "-o", tmp_path / "deep"]
    subprocess.run(gcc, check=True)
    run = oomrec("run", "--", tmp_path / "deep", preexec_fn=cgroup("100M").enter)
    said = re.search(r"was killed.*; largest holder: (.*)", run.stderr)
    assert said and "MiB, keep_page (deep)" in said[1], str(run)
