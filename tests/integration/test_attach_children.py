"""What a process starts and forks after `oomrec attach` is recorded, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from attach_targets import needs_tracing, rows_with, say, step
from conftest import built
from watching import wait_for

pytestmark = needs_tracing


def starts(plain, tmp_path, program: Path) -> subprocess.Popen:
    """Starts the program in the way that a line of its input says, and prints its pid."""
    script = tmp_path / "starts.py"
    script.write_text(
        "import os, subprocess, sys\nprogram = sys.argv[1]\nprint('ready', flush=True)\n"
        "def start(**how):\n    return subprocess.Popen([program], stdin=subprocess.PIPE,\n"
        "                            stdout=subprocess.PIPE, **how)\n"
        "children = []\n"
        "for line in sys.stdin:\n    word = line.strip()\n    if word == 'exec':\n"
        "        os.execv(program, [program])\n"
        "    environment = {'PATH': '/usr/bin'} if word == 'clean' else None\n"
        "    child = start(env=environment, close_fds=word != 'spawn')\n"
        "    children.append(child)\n    child.stdout.readline()\n"
        "    print(child.pid, 'LD_PRELOAD' in os.environ, flush=True)\n"
    )
    env = {f"HARMLESS_{n}": "1" for n in range(9)}
    words = sys.executable, script, program
    return plain.start(*words, stdin=subprocess.PIPE, env=env).once("ready")


def start_child(process: subprocess.Popen, word: str) -> int:
    pid, changed = say(process, word).split()
    assert changed == "False", "the program's own environment stays as it is"
    return int(pid)


def environment_of(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def test_programs_that_it_starts_are_recorded_until_detach(oomrec, plain, tmp_path, victim):
    process = starts(plain, tmp_path, victim("grows_in_steps"))
    children = [start_child(process, "own")]
    assert oomrec("top", "--once", children[-1]).exit_code == 1

    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    for word in ("own", "spawn"):
        children.append(start_child(process, word))
        assert oomrec("top", "--once", children[-1]).exit_code == 0, word
        assert environment_of(children[-1])["OOMREC_MODE"] == "exact"
        assert environment_of(children[-1])["HARMLESS_1"] == "1"
    children.append(start_child(process, "clean"))
    assert oomrec("top", "--once", children[-1]).exit_code == 1
    assert set(environment_of(children[-1])) <= {"PATH", "LC_CTYPE"}

    assert oomrec("attach", "--detach", process.pid).exit_code == 0
    children.append(start_child(process, "own"))
    assert oomrec("top", "--once", children[-1]).exit_code == 1
    assert "LD_PRELOAD" not in environment_of(children[-1])
    for child in children:
        os.kill(child, signal.SIGKILL)


def test_the_program_that_takes_its_place_is_recorded(oomrec, plain, tmp_path, victim):
    process = starts(plain, tmp_path, victim("grows_in_steps"))
    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    step(process.tell("exec\n").once())  # of grows_in_steps
    rows_with(oomrec, process.pid, allocate_small=4000)


def test_programs_are_not_recorded_without_children(oomrec, plain, tmp_path, victim):
    process = starts(plain, tmp_path, victim("grows_in_steps"))
    oomrec("attach", process.pid, env={"OOMREC_CHILDREN": "0"}, exits=0)
    child = start_child(process, "own")
    assert "LD_PRELOAD" not in environment_of(child)
    os.kill(child, signal.SIGKILL)


SHELLS = (
    "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
    "int main(int n, char** words) { static char line[4096], output[4096];\n"
    'puts("ready"); fflush(stdout);\n'
    "for (int length; (length = read(0, line, sizeof line - 1)) > 0;) { line[length - 1] = 0;\n"
    "if (line[0] == 's') { int status = system(line + 1);\n"
    'printf("status %d\\n", WEXITSTATUS(status)); } else { FILE* pipe = popen(line + 1, "r");\n'
    "size_t bytes = fread(output, 1, sizeof output - 1, pipe); output[bytes] = 0;\n"
    'printf("%s|%d\\n", output, WEXITSTATUS(pclose(pipe))); }\n'
    "fflush(stdout); } return 0; }\n"
)


def test_programs_of_system_and_popen_are_recorded_until_detach(oomrec, plain, tmp_path, victim):
    """With their output and status, and without a change of what the shell sees."""
    process = plain.start(
        built(tmp_path, "shells", SHELLS), stdin=subprocess.PIPE, env={"KEPT": "it's"}
    ).once("ready")
    asks = "echo ${LD_PRELOAD##*/} $OOMREC_MODE $KEPT $0 $LINENO"
    words = [f"p{asks} | tr '\\n' ' '; exit 5", "sexit 3", "pno-such-'program' 2>&1 | tr '\\n' ' '"]
    before = [say(process, line) for line in words]
    assert before[1] == "status 3" and "sh" in before[2], before

    assert oomrec("attach", "--mode", "exact", process.pid).exit_code == 0
    since = [say(process, line) for line in words]
    assert since[0] == "liboomrec.so exact " + before[0], (before, since)
    assert since[1:] == before[1:]
    waits = f"'{victim('dies')}' never > /dev/null"
    for line in (
        f"p{waits} & echo $! | tr '\\n' ' '",
        f"s{waits} & echo $! > pid",
    ):
        answer = say(process, line)
        child = int(answer.split("|")[0] if line[0] == "p" else (tmp_path / "pid").read_text())
        wait_for(lambda child=child: oomrec("top", "--once", child).exit_code == 0, 20)
        os.kill(child, signal.SIGKILL)

    assert oomrec("attach", "--detach", process.pid).exit_code == 0
    assert [say(process, line) for line in words] == before
    assert oomrec("attach", process.pid, env={"OOMREC_CHILDREN": "0"}).exit_code == 0
    assert [say(process, line) for line in words] == before
