"""Attached to and detached from often, by several commands, and by ones that die on the way."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from attach_targets import copies, needs_tracing, rows, rows_with, say, starts_ready
from conftest import built, full, rounds
from pythons import find_python
from sizes import take_up
from watching import wait_for

UNDISTURBED = "result 0 errno {errno} wrong 0 blocked 0"

pytestmark = needs_tracing


def size_of(pid: int) -> dict[str, int]:
    """What a process would grow in if something was left by each recording."""
    maps = Path(f"/proc/{pid}/smaps").read_text()
    return {
        "mappings": len(re.findall(r"^\w+-\w+ ", maps, re.MULTILINE)),
        "kb": sum(map(int, re.findall(r"^Rss: *(\d+)", maps, re.MULTILINE))),
        "address_space_kb": sum(map(int, re.findall(r"^Size: *(\d+)", maps, re.MULTILINE))),
        "files": len(os.listdir(f"/proc/{pid}/fd")),
        "copies": copies(pid),
    }


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_attached_to_as_often_as_one_likes(oomrec, plain, running, mode):
    process = running("attached", "read", 3)
    sizes = []
    for _ in range(rounds(12, 1000)):
        oomrec("attach", "--mode", mode, process.pid, exits=0)
        if mode == "exact":  # three threads allocate all the time
            wait_for(lambda: "allocate_in_thread" in rows(oomrec, process.pid))
        oomrec("attach", "--detach", process.pid, exits=0)
        sizes.append(size_of(process.pid))

    late = sizes[-1]
    alike = [size for size in sizes if size["copies"] == late["copies"]]
    early = alike[len(alike) // 3]
    # Another is loaded where a thread of a busy machine is still in the last one.
    assert late["copies"] <= 3 and late["files"] == early["files"], sizes
    # The threads' own malloc maps an arena at times.
    assert late["mappings"] <= early["mappings"] + 8, sizes
    assert late["kb"] <= early["kb"] + 4096, sizes
    assert late["address_space_kb"] <= early["address_space_kb"] + 256 * 1024, sizes
    ended = plain.finish(process, input="x")
    assert ended.exit_code == 0 and ended.stderr == "", str(ended)
    assert UNDISTURBED.format(errno=77) in ended.stdout


def test_each_recording_has_what_came_since_its_attach(oomrec, plain, tmp_path):
    program = built(
        tmp_path,
        "keeps",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        "void* allocate_kept() { return malloc(100003); }\n"
        "void* allocate_for_a_step() { return malloc(777); }\n"
        'int main() { char line[8]; for (;;) { puts("ready"); fflush(stdout);\n'
        "if (read(0, line, 8) < 1) return 0;\n"
        "for (int i = 0; i < 10; ++i) { allocate_kept(); free(allocate_for_a_step()); } } }\n",
    )
    process = plain.start(program, stdin=subprocess.PIPE).once()
    for cycle in range(rounds(4, 20)):
        assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
        process.tell("\n").once()
        found = rows_with(oomrec, process.pid, allocate_kept=10)
        assert take_up(found["allocate_kept"]["own_bytes"], 100003, 10)
        assert found["[before attaching]"]["own_bytes"] >= cycle * 10 * 100003
        moment = oomrec.json("top", "--once", process.pid)["moment"]
        assert moment["live_bytes"]["heap"] == pytest.approx((cycle + 1) * 10 * 100003, abs=10**5)
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert copies(process.pid) == 1


WAITS_FOR_CHILD = (
    "#include <pthread.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
    "static int child; static int status = -1;\n"
    'static void* wait_for_it(void* of) { char go; read(0, &go, 1); puts("waits"); fflush(stdout);\n'
    "if (waitpid(child, &status, 0) != child) status = -2; return of; }\n"
    "int main(int n, char** words) { pthread_t thread; child = fork();\n"
    'if (child == 0) { sleep(600); return 1; } printf("%d\\n", child); fflush(stdout);\n'
    "if (n == 1) wait_for_it(0);\n"
    "else { pthread_create(&thread, 0, wait_for_it, 0); pthread_join(thread, 0); }\n"
    'printf("status %d\\n", status); return 0; }\n'
)


@pytest.fixture
def waits_for_child(oomrec, plain, tmp_path):
    """A program that waits in our hook of waitpid, and the function that ends its child and checks its end."""

    def start(*words):
        program = built(tmp_path, "waits", WAITS_FOR_CHILD)
        process = plain.start(program, *words, stdin=subprocess.PIPE)
        child = int(process.line())
        assert oomrec("attach", process.pid).exit_code == 0
        process.tell("x").once("waits")
        wait_for(lambda: states(process.pid) == {"S"})

        def end() -> None:
            os.kill(child, signal.SIGKILL)
            ended = plain.finish(process)
            assert ended.exit_code == 0 and ended.stdout == "status 9\n", str(ended)

        return process, end

    return start


def states(pid: int) -> set[str]:
    """Of its threads."""
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    return {stat.read_text().rpartition(") ")[2][0] for stat in stats}


def test_a_thread_that_stays_in_the_recorder_keeps_its_copy(oomrec, waits_for_child):
    """It sleeps in a call that the first recording observed: the next one gets a copy of its own."""
    process, end = waits_for_child("in a thread")
    found = []
    for _ in range(3):
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
        assert oomrec("attach", process.pid).exit_code == 0
        found.append(copies(process.pid))
    assert found == [2, 2, 2]
    end()


def test_detached_from_while_it_waits_for_a_child(oomrec, waits_for_child):
    """Its only thread sleeps in our hook of waitpid."""
    process, end = waits_for_child()
    assert oomrec("attach", "--detach", process.pid).exit_code == 0
    end()


def test_code_of_a_jit_compiler_does_not_keep_a_copy(oomrec, plain, tmp_path):
    """Its thread waits: its stack is in the midst of other memory and has a frame that cannot be followed, and words
    of calls that have returned."""
    program = built(
        tmp_path,
        "like_jit",
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        # Without call frame information, and it uses the frame pointer for something else.
        "#ifdef __x86_64__\n"
        '__asm__(".text\\nlike_jit: push %rbp; mov $8, %rbp; call *%rdi; pop %rbp; ret\\n");\n'
        "#else\n"
        '__asm__(".text\\nlike_jit: stp x29, x30, [sp, #-16]!; mov x29, #8; blr x0;"\n'
        '"ldp x29, x30, [sp], #16; ret\\n");\n'
        "#endif\n"
        "void like_jit(void (*called)(void));\n"
        "__attribute__((noinline)) static void allocate(void) {\n"
        "for (int i = 0; i < 1000; ++i) { void* volatile p = malloc(3000 + i); free(p); } }\n"
        "__attribute__((noinline)) static int wait_in_large_frame(void) {\n"
        "char volatile left[16384]; return read(0, (char*)left, 1) == 1; }\n"
        "__attribute__((noinline)) static void work(void) {\n"
        'do { allocate(); puts("done"); } while (wait_in_large_frame()); }\n'
        "static void* run(void* of) { like_jit(work); return of; }\n"
        "int main() { pthread_attr_t how; pthread_t thread; setlinebuf(stdout);\n"
        "char* const memory = aligned_alloc(4096, 2 << 20);\n"
        "for (int i = 0; i < 2 << 20; ++i) memory[i] = 1;\n"
        "pthread_attr_init(&how); pthread_attr_setstack(&how, memory, 256 << 10);\n"
        "pthread_create(&thread, &how, run, 0); pthread_join(thread, 0); return 0; }\n",
    )
    process = plain.start(program, stdin=subprocess.PIPE).once("done")
    for _ in range(3):
        assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
        process.tell("x").once("done")
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert copies(process.pid) == 1
    assert plain.finish(process).exit_code == 0


def test_a_library_of_another_build_is_loaded_beside_the_idle_one(
    oomrec, running, build_dir, tmp_path
):
    process = running("grows_in_steps")
    assert oomrec("attach", process.pid).exit_code == 0
    assert oomrec("attach", "--detach", process.pid).exit_code == 0
    library = bytearray((build_dir / "liboomrec.so").read_bytes())
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0"  # of the build-id
    library[library.index(note) + len(note)] ^= 1
    other = tmp_path / "liboomrec.so"
    other.write_bytes(library)
    other.chmod(0o755)
    for _ in range(2):  # the second time it is the one that is idle
        oomrec("attach", process.pid, env={"OOMREC_LIBRARY": other}, exits=0)
        assert copies(process.pid) == 2
        assert oomrec("attach", "--detach", process.pid).exit_code == 0


def test_a_child_that_is_not_recorded_can_be_attached_to(oomrec, plain, tmp_path):
    """It has its parent's hooks and recording, which stays the parent's."""
    program = built(
        tmp_path,
        "forks",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        "void* allocate_in_parent() { return malloc(200003); }\n"
        "void* allocate_in_child() { return malloc(100003); }\n"
        'int main() { char go; printf("ready\\n"); fflush(stdout); read(0, &go, 1);\n'
        "const int child = fork(); if (child == 0) for (;;) { allocate_in_child(); usleep(20000); }\n"
        "for (int i = 0; i < 10; ++i) allocate_in_parent();\n"
        'printf("%d\\n", child); fflush(stdout); read(0, &go, 1); return 0; }\n',
    )
    process = plain.start(program, stdin=subprocess.PIPE).once()
    words = ["attach", "--mode", "exact"]
    assert oomrec(*words, process.pid, env={"OOMREC_CHILDREN": "0"}).exit_code == 0
    process.tell("x")
    child = int(process.stdout.readline())
    try:
        assert oomrec("top", "--once", child).exit_code == 1
        for _ in range(2):
            oomrec(*words, child, exits=0)
            wait_for(lambda: "allocate_in_child" in rows(oomrec, child))
            assert oomrec("attach", "--detach", child).exit_code == 0
        assert copies(child) == 1
        assert take_up(rows(oomrec, process.pid)["allocate_in_parent"]["own_bytes"], 200003, 10)
    finally:
        os.kill(child, signal.SIGKILL)


def has_line(oomrec, pid: int, file: str, *lines: int) -> bool:
    """Whether one of these lines has memory."""
    found = oomrec.json("top", "--once", pid)["rows"]
    return any((row["file"] or "").endswith(file) and row["line"] in lines for row in found)


def test_a_python_program_is_attached_to_again(oomrec, plain):
    """Its allocators are replaced each time, and each time lines are found."""
    process = starts_ready(
        plain,
        "import sys, threading\nstop = False\n"
        "def work():\n    while not stop:\n        kept = [str(i) * 3 for i in range(3000)]\n"
        "        kept.append(bytearray(300_000))\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for thread in threads:\n    thread.start()\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nstop = True\n"
        "for thread in threads:\n    thread.join()\nprint('ended')\n",
    )
    for _ in range(rounds(6, 100)):
        assert oomrec("attach", process.pid).exit_code == 0
        wait_for(lambda: has_line(oomrec, process.pid, "program.py", 5, 6))
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert copies(process.pid) == 1
    ended = plain.finish(process, input="\n")
    assert ended.stdout == "ended\n" and ended.stderr == ""


@pytest.mark.parametrize("version", ["3.8", "3.11", full("3.12"), "3.13", "3.13t", "3.14"])
def test_tracemalloc_is_started_after_the_attach(oomrec, plain, version):
    """It calls our allocators; and they must not call it, whatever is attached to in which order."""
    interpreter = find_python(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} here")
    process = starts_ready(
        plain,
        "import sys, tracemalloc\nprint('ready', flush=True)\n"
        "for line in sys.stdin.buffer.raw:\n    word = line.decode().strip()\n"
        "    if word == 'start': tracemalloc.start()\n    if word == 'stop': tracemalloc.stop()\n"
        "    kept = [str(i) * 3 for i in range(60_000)] + [bytearray(2000) for _ in range(2000)]\n"
        "    print(len(kept), tracemalloc.get_traced_memory()[0] > 5_000_000, flush=True)\n",
        interpreter,
    )
    orders = "attach start detach attach stop detach start attach detach stop attach start".split()
    traced = False
    for word in orders:
        if word in ("attach", "detach"):
            words = ["attach", "--detach"][: 1 + (word == "detach")]
            oomrec(*words, process.pid, exits=0)
        traced = traced if word in ("attach", "detach") else word == "start"
        assert say(process, word) == f"62000 {traced}", word
    assert has_line(oomrec, process.pid, "program.py", 7)
