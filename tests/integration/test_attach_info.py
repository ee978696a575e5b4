"""`oomrec info PID`: whether a process is recorded, and what of it is not observed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from attach_targets import needs_tracing
from conftest import built
from schemas import check

pytestmark = needs_tracing


def unobserved(oomrec, process) -> list[tuple[str, str, list[str]]]:
    document = oomrec.json("info", process.pid)
    check("info_process", document)
    assert document["recorded"] and document["attached"]
    return [
        (Path(row["module"]).name, row["why"], row["functions"]) for row in document["unobserved"]
    ]


def test_info_names_what_is_not_observed(oomrec, plain, tmp_path):
    """An address that was looked up before, and no module whose calls are redirected."""
    library = tmp_path / "libkeeps.so"
    source = tmp_path / "keeps.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\n"
        "static void* (*stored)(size_t);\n"
        "void* through_pointer(void) { return stored(1000); }\n"
        "void* directly(void) { return calloc(1, 1000); }\n"
        'void look_up(void) { stored = (void*(*)(size_t))dlsym(RTLD_DEFAULT, "malloc"); }\n'
    )
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    program = built(
        tmp_path,
        "loads",
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        "int main(int n, char** words) { void* l = dlopen(words[1], RTLD_NOW); char line[4];\n"
        '((void(*)(void))dlsym(l, "look_up"))(); puts("ready"); fflush(stdout);\n'
        "while (read(0, line, 1) == 1) malloc(10); return 0; }\n",
    )
    process = plain.start(program, library, stdin=subprocess.PIPE).once()
    assert oomrec("info", process.pid).exit_code == 1
    assert oomrec("attach", process.pid).exit_code == 0
    assert unobserved(oomrec, process) == [("libkeeps.so", "stored_address", ["malloc"])]
    page = oomrec("info", process.pid)
    assert "calls by an address that it stored before: malloc" in page.stdout, str(page)


def test_info_of_a_program_with_its_own_malloc(oomrec, plain, tmp_path):
    program = built(
        tmp_path,
        "own",
        "#include <stddef.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "static char arena[1 << 24]; static size_t used;\n"
        "void* malloc(size_t n) { void* at = arena + used; used += (n + 31) & ~15ul; return at; }\n"
        "void* calloc(size_t k, size_t n) { return malloc(k * n); }\n"
        "void* realloc(void* old, size_t n) { char* at = malloc(n); for (size_t i = 0; old && i < n; ++i)\n"
        "at[i] = ((char*)old)[i]; return at; }\nvoid free(void* block) {}\n"
        'int main() { char line[4]; puts("ready"); fflush(stdout); return read(0, line, 1) < 0; }\n',
    )
    process = plain.start(program, stdin=subprocess.PIPE).once()
    assert oomrec("attach", process.pid).exit_code == 0
    assert ("own", "own_allocator", ["calloc", "free", "malloc", "realloc"]) in unobserved(
        oomrec, process
    )
    document = oomrec.json("info", process.pid)
    assert document["heap_note"] == "heap not observed: the program brings its own malloc"


def test_info_of_ordinary_programs_finds_nothing(oomrec, plain, running, preload, victim):
    python = plain.start(
        sys.executable,
        "-c",
        "import json, ssl, sqlite3; print(1, flush=True); input()",
        stdin=subprocess.PIPE,
    ).once()
    for process in (running("grows_in_steps"), python):
        assert oomrec("attach", process.pid).exit_code == 0
        assert unobserved(oomrec, process) == []
    recorded = preload.start(victim("grows_in_steps"), stdin=subprocess.PIPE).once()
    document = oomrec.json("info", recorded.pid)
    check("info_process", document)
    assert document["recorded"] and not document["attached"] and document["unobserved"] == []
    assert document["mode"] == "sampled" and document["limit_bytes"] is None


def test_info_names_mode_limit_and_files(oomrec, running):
    process = running("grows_in_steps")
    unrecorded = json.loads(oomrec("info", "--json", process.pid).stdout)
    check("info_process", unrecorded)
    assert {unrecorded[key] for key in ("mode", "limit_bytes", "recording", "bundles")} == {None}
    words = ("--mode", "exact", "--limit", "3G", "--dump-dir", "there")
    assert oomrec("attach", *words, process.pid).exit_code == 0
    document = oomrec.json("info", process.pid)
    check("info_process", document)
    assert (document["mode"], document["limit_bytes"]) == ("exact", 3 << 30)
    assert document["bundles"] == str(oomrec.directory / "there")
    assert Path(document["recording"]).is_file() and f"-{process.pid}-" in document["recording"]
    page = oomrec("info", process.pid).stdout
    for line in (
        "mode           exact",
        "limit          3.0 GiB",
        f"recording      {document['recording']}",
        f"bundles        {document['bundles']}",
    ):
        assert f"\n{line}\n" in page, page


def test_info_of_no_process(oomrec):
    assert "there is no process" in oomrec("info", 2**22 - 1).stderr
