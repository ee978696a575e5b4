"""Names of functions where no reader finds the program's file: deleted, replaced, in a chroot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import built

pytestmark = pytest.mark.needs_program("gcc")

# `hold` is not exported, so only the file's symbol table names it.
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) char *hold(size_t bytes) {
  char *const block = malloc(bytes);
  if (block != NULL) memset(block, 1, bytes);
  return block;
}
int main(void) {
  char *const held = hold(30 << 20);
  puts("ready");
  fflush(stdout);
  getchar();
  volatile size_t much = (size_t)1 << 46;
  char *const refused = malloc(much);
  return held == NULL || refused != NULL;
}
"""


@pytest.fixture
def program(tmp_path) -> Path:
    return built(tmp_path, "holds", PROGRAM)


def functions_of_the_largest_holder(oomrec, bundle) -> list[str]:
    shown = oomrec.json("show", bundle)
    return [frame["function"] for frame in shown["holders"][0]["stack"]]


def deleted(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    path.unlink()
    shutil.copy("/bin/true", path)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [deleted, replaced, a_pipe])
def test_a_program_whose_file_is_gone(preload, oomrec, program, change):
    process = preload.start(program, stdin=subprocess.PIPE).once("ready")
    change(program)
    run = preload.finish(process, input="\n", exits=0)
    assert "hold" in functions_of_the_largest_holder(oomrec, run.only_bundle())
    assert "hold" in run.stderr, str(run)


@pytest.mark.parametrize("place", ["beside", "below .debug"])
def test_a_pipe_in_place_of_a_debug_file(preload, oomrec, program, place):
    """The program's owner chose the name: libdwfl would wait for the pipe's writer."""
    directory = program.parent if place == "beside" else program.parent / ".debug"
    directory.mkdir(exist_ok=True)
    (program.parent / "linked.debug").write_text("to compute its checksum")
    subprocess.run(
        ["objcopy", "--add-gnu-debuglink=linked.debug", program], cwd=program.parent, check=True
    )
    (program.parent / "linked.debug").unlink()
    os.mkfifo(directory / "linked.debug")
    process = preload.start(program, stdin=subprocess.PIPE).once("ready")
    run = preload.finish(process, input="\n")
    oomrec("show", run.only_bundle(), exits=0)


def own_mounts() -> bool:
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not own_mounts(), reason="no permission to mount here")
def test_a_program_in_a_chroot(oomrec, library, program, tmp_path):
    root = tmp_path / "root"
    for directory in ("tmp", "proc", "inside", "usr/bin"):
        (root / directory).mkdir(parents=True)
    for file in (library, *libraries_of(program), *libraries_of(library)):
        inside = root / str(file).lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(file), inside)
    shutil.copy("/usr/bin/env", root / "usr/bin/env")
    shutil.move(program, root / "inside/holds")
    words = f"/usr/bin/env LD_PRELOAD={library} OOMREC_DUMP_DIR=/dumps /inside/holds"
    script = f"mount -t proc proc {root}/proc && exec chroot {root} {words}"
    run = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], input="\n", text=True, capture_output=True
    )
    assert run.returncode == 0, run.stderr
    (bundle,) = (root / "dumps").iterdir()
    assert "hold" in functions_of_the_largest_holder(oomrec, bundle)


def libraries_of(file: Path) -> list[Path]:
    lines = subprocess.check_output(["ldd", file], text=True).splitlines()
    words = [word for line in lines for word in line.split() if word.startswith("/")]
    return [Path(word) for word in words]
