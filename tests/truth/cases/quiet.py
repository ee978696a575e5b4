"""Programs that end well, or that fail without any relation to memory: nothing is wanted."""

from __future__ import annotations

from typing import Any

from truth.case import Case, quiet


def ends(name: str, story: str, *words: str, code: int = 0, **more: Any) -> Case:
    truth = quiet("exited") if code else quiet()
    return Case(f"ends_{name}", "quiet", story, words, truth, ends=f"exit {code}", **more)


CASES = [
    ends("true", "true", "true", short=True),
    ends("false", "false", "false", code=1),
    ends("not_found", "ls of a missing file", "ls", "/nowhere", code=2),
    ends("git", "git of an empty repository", "sh", "-c",
         "git init -q r && cd r && git status --short && git log", code=128, needs=["git"]),
    ends("gcc", "gcc compiles a file", "sh", "-c", "echo 'int main(){}' > a.c && gcc a.c -o a",
         needs=["gcc"], short=True),
    ends("gcc_error", "gcc rejects a file", "sh", "-c", "echo 'int main({}' > a.c; gcc a.c",
         code=1, needs=["gcc"]),
    ends("python_assert", "an AssertionError", "@python3.10", "-c",
         "h = bytearray(b'x') * (40 << 20)\nassert 0", code=1),
    ends("python_threads", "forty threads", "@python3.13", "-c",
         "import threading as t\nl = [t.Thread(target=lambda: bytearray(1 << 20)) for _ in range(40)]\n"
         "[x.start() for x in l]; [x.join() for x in l]"),
    ends("python_large", "half a GiB, freed, exit 0", "@python3.11", "-c",
         "x = bytearray(b'x') * (512 << 20)\ndel x", short=True),
    ends("python_subprocess", "a subprocess that fails is expected", "@python3.12", "-c",
         "import subprocess as s\nassert s.call(['false']) == 1"),
    ends("perl_die", "Perl dies of a bug", "perl", "-e", "my $h = 'x' x (30 << 20); die 'bug'",
         code=255, needs=["perl"]),
    ends("near_but_fine", "a program uses 60 % of its cgroup and ends well", "@python3.11", "-c",
         "x = bytearray(b'x') * (60 << 20)", cgroup="120M"),
    ends("fork_tree", "a tree of short shells", "sh", "-c",
         "for i in 1 2 3 4 5 6; do (sh -c 'exit 0') & done; wait"),
    ends("sqlite", "sqlite counts", "sqlite3", ":memory:", "select 1", needs=["sqlite3"]),
    ends("ruby", "Ruby sorts", "ruby", "-e", "(1..200000).map { rand }.sort", needs=["ruby"]),
    ends("node", "Node answers", "node", "-e", "console.log([1,2].map(x => x * 2))",
         needs=["node"]),
    ends("zsh", "a zsh loop", "zsh", "-fc", "for i in {1..50}; do x=$i; done", needs=["zsh"]),
]  # fmt: skip
