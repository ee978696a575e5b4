"""What real shells complete for a typed line, with our completion script loaded."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path

BASH = r"""
[[ -n $2 ]] && source "$2"
source "$1"
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
_oomrec
printf '%s\n' "${COMPREPLY[@]}"
"""

# Writes zsh's completions to $OFFERED, and creates $OFFERED.all at the end.
ZSH = r"""
mkdir functions && ln -s $SCRIPT functions/_oomrec
fpath=($PWD/functions $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits
  builtin compadd -A hits "$@"
  print -rl -- $hits >> $OFFERED
  builtin compadd "$@"
}
completed() { : > $OFFERED.all }
comppostfuncs=(completed)
bindkey '^I' list-choices
zstyle ':completion:*' insert-tab false
setopt no_list_ambiguous no_beep
: > $OFFERED.ready
"""


BUILD = Path(os.environ.get("OOMREC_TEST_BUILD", "build")).resolve()


def environment(directory: Path, **more: str) -> dict[str, str]:
    own = {
        "PATH": f"{BUILD}:{os.environ['PATH']}",
        "HOME": str(directory),
        "XDG_DATA_HOME": str(directory / "data"),
        **more,
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OOMREC_")}
    return {**kept, **own}


def bash(script: Path, words: list[str], directory: Path, library: Path | None = None) -> set[str]:
    """`words`: the line as bash splits it. `library`: the script of the package bash-completion."""
    command = ["bash", "--norc", "--noprofile", "-c", BASH, "bash", script, library or "", *words]
    return set(printed(command, directory)) - {""}


def printed(command: list, directory: Path) -> list[str]:
    run = subprocess.run(
        command,
        cwd=directory,
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.stderr == "", run.stderr
    return run.stdout.splitlines()


def fish(script: Path, line: str, directory: Path) -> set[str]:
    command = ["fish", "--no-config", "-c", f"source {script}; complete -C $argv[1]", line]
    return {row.split("\t")[0] for row in printed(command, directory)}


def zsh(script: Path, line: str, directory: Path) -> set[str]:
    """zsh completes only on a terminal, so it gets one."""
    offered = directory / f"offered-{len(list(directory.glob('offered-*.ready')))}"
    start = directory / f"{offered.name}.zsh"
    start.write_text(ZSH)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        settings = environment(
            directory, SCRIPT=str(script), OFFERED=str(offered), TERM="xterm", PS1=""
        )
        os.execvpe("zsh", ["zsh", "-f", "-i"], settings)
    try:
        os.write(terminal, f"source {start}\n".encode())
        wait_for(Path(f"{offered}.ready"), terminal)
        os.write(terminal, line.encode() + b"\t")
        wait_for(Path(f"{offered}.all"), terminal)
    finally:
        os.close(terminal)  # the hangup ends zsh
        os.waitpid(pid, 0)
    return set(offered.read_text().splitlines()) - {""} if offered.exists() else set()


def wait_for(file: Path, terminal: int) -> None:
    """Waits for the file, and meanwhile reads the shell's output so that it does not block."""
    printed = b""
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until, printed.decode(errors="replace")
        if select.select([terminal], [], [], 0.02)[0]:
            printed += os.read(terminal, 4096)
