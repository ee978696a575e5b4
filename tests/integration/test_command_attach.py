"""`oomrec attach`: the recorder in a process that runs already, which must not notice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from attach_targets import (
    copies,
    heap_bytes,
    mapped_hooks,
    needs_tracing,
    rows,
    rows_with,
    starts_ready,
    state_if_running,
    state_of,
    step,
)
from conftest import built, full, metadata, rounds
from schemas import check
from sizes import take_up
from watching import eventually

STEPS = ["seized", "stopped", "written", "redirected", "blocked", "calling", "done", "returning"]
STEPS += ["unblocked", "released"]
UNDISTURBED = "result 0 errno {errno} wrong 0 blocked 0"

pytestmark = needs_tracing


# --- The process goes on as before ----------------------------------------------------------------


@pytest.mark.parametrize("threads", [full(0), 3])
@pytest.mark.parametrize("call", ["nanosleep", "poll", "epoll", "select", "futex", "read", "spin"])
def test_a_call_goes_on_where_it_was(oomrec, plain, running, call, threads):
    """Results, errno, signal mask and floating-point state are those of a run without us."""
    for seconds in (2, 20):  # a busy machine may need more than two
        process = running("attached", call, threads, seconds)
        begun = time.monotonic()
        time.sleep(0.15 * seconds)
        before = state_if_running(process.pid)
        if before is None:  # this test got no processor for so long
            continue
        run = oomrec("attach", process.pid)
        attached_ms = 1000 * (time.monotonic() - begun)
        after = state_if_running(process.pid)
        ended = plain.finish(process, input="x")
        assert ended.exit_code == 0 and ended.stderr == "", str(ended)
        assert UNDISTURBED.format(errno=77) in ended.stdout
        took = int(re.search(r"took (\d+)", ended.stdout)[1])
        # A call that began anew would take 15 % longer. epoll_wait cannot be resumed, only repeated.
        least = seconds * 1000
        longest = least * 1.12 + (attached_ms if call == "epoll" else 0)
        if after is not None and (call == "read" or took < longest):
            break

    assert before is not None
    assert run.exit_code == 0, str(run)
    assert after == before
    assert call == "read" or least - 1 <= took < longest


# What a program calls to wait for a line, with `line` and `stdin`.
READS = {
    "fgets": "fgets(line, sizeof line, stdin)",
    "getc": "for (int c; (c = getc(stdin)) != '\\n'; at++) line[at] = c",
    "getc_unlocked": "for (int c; (c = getc_unlocked(stdin)) != '\\n'; at++) line[at] = c",
    "fread": "fread(line, 1, 6, stdin)",
    "scanf": 'scanf("%6s", line)',
    "getline": "char* whole = NULL; size_t bytes = 0; getline(&whole, &bytes, stdin); memcpy(line, whole, 6)",
}


@pytest.mark.parametrize("read", READS)
def test_a_process_that_waits_for_a_line(oomrec, plain, tmp_path, read):
    """As an interpreter at its prompt."""
    source = f"""#define _GNU_SOURCE
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        int main(void) {{
          char line[64] = ""; int at = 0;
          puts("ready"); fflush(stdout);
          {READS[read]};
          void* kept = malloc(1000000);
          printf("%.5s %d\\n", line, kept != NULL);
        }}"""
    process = plain.start(built(tmp_path, "waits", source), stdin=subprocess.PIPE).once("ready")
    time.sleep(0.2)
    oomrec("attach", process.pid, exits=0)
    ended = plain.finish(process, input="hello\n")
    assert (ended.exit_code, ended.stdout) == (0, "hello 1\n"), str(ended)


def test_attach_takes_less_than_a_second(oomrec, running):
    process = running("attached", "read", 2)

    @eventually  # others may have the processors meanwhile
    def takes_less():
        begin = time.monotonic()
        assert oomrec("attach", process.pid).exit_code == 0
        took = time.monotonic() - begin
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
        assert took < 1


@pytest.fixture
def killed_at(oomrec, plain, build_dir, library):
    """killed_at(STEP, PID) attaches as the command does, and is killed at this step."""
    settings = f"OOMREC_SESSION_DIR={oomrec.session_dir}", f"OOMREC_DUMP_DIR={oomrec.dump_dir}"

    def attach(step: str, pid: int):
        return plain(
            build_dir / "tests" / "integration" / "attach_dies", step, pid, library, *settings
        )

    return attach


def test_the_shipped_command_cannot_be_killed_by_a_variable(oomrec, running):
    process = running("attached", "nanosleep", 2)
    assert oomrec("attach", process.pid, env={"OOMREC_ATTACH_DIES_AT": "stopped"}).exit_code == 0


@pytest.mark.parametrize(
    "step_of_death, threads",
    [*((step, 2) for step in STEPS), ("stopped", 0), ("calling", 0)]
    + [full(step, 0) for step in STEPS if step not in ("stopped", "calling")],
)
def test_the_command_is_killed_at_each_step(plain, killed_at, running, step_of_death, threads):
    process = running("attached", "nanosleep", threads)
    before = state_of(process.pid)

    run = killed_at(step_of_death, process.pid)

    # A short call may be over before the command sees that it has begun.
    assert run.exit_code == 128 + signal.SIGKILL or step_of_death in (
        "calling",
        "returning",
        "unblocked",
    )
    ended = plain.finish(process)
    assert ended.exit_code == 0 and UNDISTURBED.format(errno=77) in ended.stdout, str(ended)
    assert before["SigBlk"] == "0000000000000000"
    assert int(re.search(r"took (\d+)", ended.stdout)[1]) < 10_000, "the wait goes on"


HANDLERS = (
    "#include <errno.h>\n#include <signal.h>\n#include <stdio.h>\n#include <time.h>\n"
    "#include <unistd.h>\nstatic char* stack; static volatile long far, calls;\n"
    "static void handle(int number) { char here; ++calls;\n"
    "if (&here > stack || stack - &here > 1 << 20) ++far; }\n"
    "static void start(int number, long ns) { struct sigaction action = {0}; timer_t timer;\n"
    "struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};\n"
    "const struct itimerspec each = {{0, ns}, {0, ns}};\n"
    "action.sa_handler = handle; sigaction(number, &action, 0);\n"
    "timer_create(CLOCK_MONOTONIC, &event, &timer); timer_settime(timer, 0, &each, 0); }\n"
    "int main() { char here, line; stack = &here;\n"
    "start(SIGUSR1, 300000); start(SIGUSR2, 370000); start(SIGALRM, 410000);\n"
    'puts("ready"); fflush(stdout);\n'
    "while (read(0, &line, 1) < 0); while (calls <= 100) pause();\n"
    'printf("%ld\\n", far); return 0; }\n'
)


@pytest.mark.parametrize("step_of_death", STEPS)
def test_no_handler_runs_in_the_call_of_a_killed_command(plain, killed_at, tmp_path, step_of_death):
    """They may allocate, as PostgreSQL's do: they know that the program is only ever in read then."""
    program = built(tmp_path, "handles", HANDLERS)
    process = plain.start(program, stdin=subprocess.PIPE).once("ready")
    killed_at(step_of_death, process.pid)
    time.sleep(0.5)
    ended = plain.finish(process, input="x")
    assert ended.exit_code == 0 and ended.stdout == "0\n", str(ended)


def test_the_next_command_waits_for_the_call_of_a_killed_one(oomrec, plain, killed_at, running):
    """Else it would write its code over the one that a thread still runs."""
    process = running("attached", "read", 2)
    for step_of_death in ("redirected", "blocked", "calling", "done"):
        killed_at(step_of_death, process.pid)
        run = oomrec("attach", process.pid)
        assert run.exit_code == 0 or "is recorded already" in run.stderr, str(run)
        run = oomrec("attach", "--detach", process.pid, exits=0)
    ended = plain.finish(process, input="x")
    assert ended.exit_code == 0 and UNDISTURBED.format(errno=77) in ended.stdout, str(ended)


def test_one_command_at_a_time(oomrec, running):
    process = running("attached", "read", 2)
    commands = [oomrec.start("attach", process.pid) for _ in range(4)]
    runs = [oomrec.finish(command) for command in commands]
    assert [run.exit_code for run in runs].count(0) == 1, runs
    assert all(
        "is at work on" in run.stderr or "is recorded already" in run.stderr
        for run in runs
        if run.exit_code != 0
    ), runs


def test_the_process_is_killed_during_the_attach(oomrec, running):
    """A sentence, and no crash of the command."""
    for delay_ms in range(0, 60, 6):
        process = running("attached", "spin", 2)
        command = oomrec.start("attach", process.pid)
        time.sleep(delay_ms / 1000)
        process.kill()
        run = oomrec.finish(command)
        assert run.exit_code in (0, 2), str(run)
        assert run.exit_code == 0 or "oomrec attach: " in run.stderr
        process.wait()


def test_it_is_attached_to_and_detached_from_again_and_again(oomrec, plain, running):
    process = running("attached", "read", 3)
    time.sleep(0.3)
    before = state_of(process.pid)
    for _ in range(rounds(4, 12)):
        assert oomrec("attach", process.pid).exit_code == 0
        assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert state_of(process.pid) == before
    assert list(oomrec.session_dir.rglob("*.session")) == []
    ended = plain.finish(process, input="x")
    assert UNDISTURBED.format(errno=77) in ended.stdout, str(ended)


HANDLER = (
    "#ifdef __x86_64__\n#define PROGRAM_COUNTER gregs[REG_RIP]\n#else\n#define PROGRAM_COUNTER pc\n#endif\n"
    "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <signal.h>\n#include <stdio.h>\n"
    "#include <stdlib.h>\n#include <string.h>\n#include <sys/time.h>\n#include <ucontext.h>\n"
    "#include <unistd.h>\nstatic const char* what; static volatile int over;\n"
    "static int in_c_library(void* at) { Dl_info found;\n"
    'return dladdr(at, &found) && strstr(found.dli_fname, "libc.so") != 0; }\n'
    "static void handle(int number, siginfo_t* info, void* context) { char line;\n"
    "void* at = (void*)((ucontext_t*)context)->uc_mcontext.PROGRAM_COUNTER;\n"
    'if (over || in_c_library(at) != (strcmp(what, "program") != 0)) return;\n'
    'write(1, "ready\\n", 6); read(0, &line, 1); over = 1; }\n'
    "int main(int n, char** words) { what = words[1]; struct sigaction action = {0}; char line;\n"
    "action.sa_sigaction = handle; action.sa_flags = SA_SIGINFO; sigaction(SIGALRM, &action, 0);\n"
    "const struct itimerval timer = {{0, 3000}, {0, 3000}}; setitimer(ITIMER_REAL, &timer, 0);\n"
    "void* volatile block = 0; long volatile sum = 0; while (!over) {\n"
    'if (!strcmp(what, "pause")) pause();\n'
    'if (!strcmp(what, "malloc")) { block = malloc(sum++ % 4000); free(block); }\n'
    'if (!strcmp(what, "program")) ++sum; }\n'
    'write(1, "over\\n", 5); while (read(0, &line, 1) < 0); return 0; }\n'
)


@pytest.mark.parametrize("interrupted", ["pause", "program", "malloc"])
def test_a_thread_in_a_signal_handler(oomrec, plain, tmp_path, interrupted):
    """PostgreSQL starts some of its processes in handlers, in which they then stay. But a function of
    the C library that a handler has interrupted may hold a lock."""
    program = built(tmp_path, "handles", HANDLER)
    process = plain.start(program, interrupted, stdin=subprocess.PIPE).once("ready")
    run = oomrec("attach", process.pid)
    if interrupted == "malloc":
        assert run.exit_code == 2 and "came to a point where a library can be loaded" in run.stderr
        assert not mapped_hooks(process.pid)
    else:
        assert run.exit_code == 0, str(run)
    process.tell("x").once("over")
    if interrupted == "malloc":
        assert oomrec("attach", process.pid).exit_code == 0, "now it is in none"
    ended = plain.finish(process, input="x")
    assert ended.exit_code == 0 and ended.stderr == "", str(ended)


# --- What is recorded -----------------------------------------------------------------------------


def test_libraries_at_the_end_of_the_address_space(oomrec, plain, tmp_path):
    """As a debugger starts a program: at fixed addresses. Nothing is mapped between its heap and them."""
    source = (
        "#include <unistd.h>\n"
        "int main(void) { char c; return write(1, &c, 1) != 1 || read(0, &c, 1) != 1; }\n"
    )
    program = built(tmp_path, "waits", source, "-no-pie")
    process = plain.start("setarch", "-R", program, stdin=subprocess.PIPE)
    if not process.stdout.read(1):
        pytest.skip("this machine does not let a program have fixed addresses")

    oomrec("attach", process.pid, exits=0)
    assert plain.finish(process, input="x").exit_code == 0


def test_every_block_since_is_recorded_exactly(oomrec, running, victim, build_dir):
    plugin = build_dir / "tests" / "victims" / "plugin_that_allocates.so"
    process = running("grows_in_steps", plugin)
    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0

    given_out = step(process)
    found = rows_with(oomrec, process.pid, allocate_small=4000, allocate_large=1, map_some=1)
    assert take_up(found["allocate_small"]["own_bytes"], 1009, 4000)
    assert take_up(found["allocate_large"]["own_bytes"], 7000001)
    assert found["map_some"]["own_bytes"] == 3 << 20
    held_before = found["[before attaching]"]["own_bytes"]
    assert held_before == pytest.approx(500 * 10007, rel=0.02)
    assert heap_bytes(oomrec, process) == pytest.approx(given_out, rel=0.01)

    given_out = step(process)  # frees the rest of the old blocks, and loads a library

    @eventually
    def is_all_published():
        found = rows(oomrec, process.pid)
        assert "allocate_small" not in found
        assert take_up(found["plugin_allocate"]["own_bytes"], 5000011)
        assert found.get("[before attaching]", {"own_bytes": 0})["own_bytes"] < 64 * 1024
        assert heap_bytes(oomrec, process) == pytest.approx(given_out, rel=0.01)


def test_the_loader_searches_where_the_caller_says(oomrec, plain, tmp_path, build_dir):
    """By its run path: the hook of dlopen may not become the caller."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    shutil.copy(
        build_dir / "tests/victims/plugin_that_allocates.so", plugins / "found_by_run_path.so"
    )
    source = (
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        'int main(void) { char line[2]; puts("ready"); fflush(stdout); read(0, line, 1);\n'
        'void* found = dlopen("found_by_run_path.so", RTLD_NOW);\n'
        'void* (*get)(unsigned long) = found ? dlsym(found, "plugin_allocate") : 0;\n'
        'printf("%d\\n", get && get(3000017)); fflush(stdout); read(0, line, 1); }\n'
    )
    program = built(tmp_path, "loads", source, f"-Wl,-rpath,{plugins}", "-ldl")
    process = plain.start(program, stdin=subprocess.PIPE).once("ready")
    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    process.tell("\n").once("1")
    found = rows_with(oomrec, process.pid, plugin_allocate=1)
    assert take_up(found["plugin_allocate"]["own_bytes"], 3000017)


def test_it_records_what_a_preloaded_run_does(oomrec, preload, running, victim):
    attached = running("grows_in_steps")
    assert oomrec("attach", "--mode", "exact", attached.pid).exit_code == 0
    preloaded = preload.start(
        victim("grows_in_steps"), stdin=subprocess.PIPE, env={"OOMREC_MODE": "exact"}
    ).once()
    for process in (attached, preloaded):
        step(process)
    counts = {"allocate_small": 4000, "allocate_large": 1, "map_some": 1}
    found = [rows_with(oomrec, each.pid, **counts) for each in (attached, preloaded)]
    for name in counts:
        assert found[0][name]["own_bytes"] == found[1][name]["own_bytes"]


def test_samples_add_up_to_the_total(oomrec, running):
    """Sampled: what is left of the old memory is the exact total without the estimates."""
    process = running("grows_in_steps")
    assert oomrec("attach", process.pid).exit_code == 0
    step(process)
    given_out = step(process)

    @eventually
    def is_all_published():
        assert heap_bytes(oomrec, process) == pytest.approx(given_out, rel=0.01)
        found = rows(oomrec, process.pid)
        assert take_up(found["allocate_large"]["own_bytes"], 7000001)


def test_after_detach_nothing_is_recorded_and_no_word_is_ours(oomrec, running):
    process = running("grows_in_steps")
    assert oomrec("attach", process.pid).exit_code == 0
    assert hooked_words(process.pid) > 0
    assert oomrec("attach", "--detach", process.pid).exit_code == 0

    assert hooked_words(process.pid) == 0
    assert oomrec("top", "--once", process.pid).exit_code == 1
    assert oomrec("attach", "--detach", process.pid).exit_code == 1
    step(process)
    assert oomrec("attach", process.pid).exit_code == 0, "once more"
    assert rows(oomrec, process.pid)["[before attaching]"]["own_bytes"] > 10**7


def hooked_words(pid: int) -> int:
    """How many words of the program's own data are addresses in the code of liboomrec.so."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    ours = [
        tuple(int(word, 16) for word in line.split()[0].split("-"))
        for line in maps
        if "liboomrec" in line and " r-xp" in line
    ]
    exe = os.readlink(f"/proc/{pid}/exe")
    count = 0
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            if not line.endswith((exe, "libc.so.6")) or "-xp" in line or " ---p" in line:
                continue
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            memory.seek(start)
            data = memory.read(end - start)
            for at in range(0, len(data), 8):
                word = int.from_bytes(data[at : at + 8], "little")
                count += any(low <= word < high for low, high in ours)
    return count


def test_a_fork_is_recorded_like_a_preloaded_one(oomrec, running):
    process = running("grows_in_steps")
    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    step(process)
    step(process)
    child = step(process)
    try:

        @eventually
        def is_recorded():
            found = [
                row
                for row in oomrec.json("top", "--once", child)["rows"]
                if row["function"] == "allocate_large" and len(row["stack"]) < 9
            ]
            assert max(row["own_bytes"] for row in found) >= 7000001, found
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_limit_is_enforced(oomrec, plain):
    process = starts_ready(
        plain,
        "import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "try:\n    kept = [bytearray(16 << 20) for _ in range(64)]\n"
        "except MemoryError:\n    print('refused')\n",
    )
    assert oomrec("attach", "--limit", "200M", process.pid).exit_code == 0
    ended = plain.finish(process, input="\n")
    assert ended.stdout == "refused\n", str(ended)
    [bundle] = oomrec.dump_dir.glob("oom_*")
    assert metadata(bundle)["reason"] == "soft_limit"


def test_a_limit_below_what_it_holds_is_not_set(oomrec, plain):
    """The program's next request would fail."""
    process = starts_ready(
        plain,
        "import sys\nkept = bytearray(64 << 20)\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "print(len([bytes(2000) for _ in range(10000)]))\n",
    )
    for _ in range(2):  # by a copy of the library that is loaded for it, and by that copy again
        run = oomrec("attach", "--limit", "20M", process.pid, exits=2)
        assert re.search(
            r"it holds 6\d\.\d MiB already, and its limit would be 20\.0 MiB", run.stderr
        ), str(run)
    assert oomrec("info", process.pid).exit_code == 1
    assert copies(process.pid) == 1
    assert oomrec("attach", "--limit", "200M", process.pid).exit_code == 0
    ended = plain.finish(process, input="\n")
    assert (ended.exit_code, ended.stdout) == (0, "10000\n"), str(ended)


def test_a_failed_allocation_leaves_a_bundle_with_its_line(oomrec, plain):
    process = starts_ready(
        plain,
        "import resource, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))\nkept = []\n"
        "def grow():\n    while True:\n        kept.append(bytearray(10 << 20))\ngrow()\n",
    )
    assert oomrec("attach", process.pid).exit_code == 0
    ended = plain.finish(process, input="\n")
    assert ended.exit_code == 1 and "MemoryError" in ended.stderr
    [bundle] = oomrec.dump_dir.glob("oom_*")
    report = oomrec.json("show", bundle)
    assert report["verdict"]["code"] == "address_space_limit"
    lines = [frame for frame in report["request"]["stack"] if frame["kind"] == "python"]
    assert lines[0]["file"].endswith("program.py") and lines[0]["line"] == 8
    page = oomrec("show", bundle).stdout
    assert re.search(r"^attached +\d{4}-", page, re.M) and not re.search(r"^started", page, re.M)


def test_python_lines_are_recorded(oomrec, plain):
    process = starts_ready(
        plain,
        "import sys, time\nold = [bytearray(100_000) for _ in range(20)]\n"
        "def hold():\n    return [bytearray(1_000_003) for _ in range(30)]\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nkept = hold()\nprint('held', flush=True)\n"
        "sys.stdin.readline()\nprint(sum(map(len, kept)))\n",
    )
    assert oomrec("attach", process.pid).exit_code == 0
    process.tell("\n").once("held")
    [line] = [
        row
        for row in oomrec.json("top", "--once", process.pid)["rows"]
        if row["file"] and row["file"].endswith("program.py") and row["own_bytes"] > 10**7
    ]
    assert line["line"] == 4 and line["own_bytes"] == pytest.approx(30 * 1_000_003, rel=0.01)
    ended = plain.finish(process, input="\n")
    assert ended.stdout == f"{30 * 1_000_003}\n" and ended.stderr == ""


def test_top_attaches_if_it_must(oomrec, running):
    process = running("grows_in_steps")
    assert oomrec("top", "--once", process.pid).exit_code == 1
    for _ in range(2):  # the second time it is recorded already
        run = oomrec("top", "--attach", "--once", process.pid)
        assert run.exit_code == 0 and "[before attaching]" in run.stdout, str(run)
    assert oomrec("top", "--attach", "--once", "grows_in_steps").exit_code == 2


def test_duration_leaves_a_bundle_and_the_process(oomrec, running):
    process = running("grows_in_steps")
    written = oomrec.json("attach", "--duration", "1s", process.pid)
    check("attach", written)
    assert metadata(Path(written["bundle"]))["reason"] == "request"
    assert oomrec.json("show", written["bundle"])["resident_memory"]["seconds_before_end"] < 1
    assert process.poll() is None and hooked_words(process.pid) == 0
    check("attach", oomrec.json("attach", process.pid))
    check("attach", oomrec.json("attach", "--detach", process.pid))
