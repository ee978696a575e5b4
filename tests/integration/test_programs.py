"""Third-party programs: same output, same exit code, same files, and no session left behind."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "victims" / "new_caught.cpp"

SQL = (
    "create table t(a, b); with recursive c(i) as (select 1 union all select i + 1 from c"
    " where i < 20000) insert into t select i, hex(i) from c; create index k on t(b);"
    " select count(*), sum(a), max(b) from t;"
)
NODE = (
    "const {Worker} = require('worker_threads'); require('child_process').execSync('echo child',"
    " {stdio: 'inherit'}); new Worker('console.log([...Array(1e5).keys()].length)', {eval: true})"
)
MAKEFILE = "all: a b c d\\n%%:\\n\\t@echo $@ > $@.txt\\n"

SCRIPTS = {
    "g++": f"g++ -O1 -g -c {SOURCE} -o object.o && sha256sum object.o",
    "sqlite3": f'sqlite3 file.db "{SQL}" && sha256sum file.db',
    "perl": "perl -e 'my %h; $h{$_ % 500} .= 1 for 1..50000; fork or exit 0; wait; print keys %h, $?'"
    " | wc -c",
    "git": "git init -q r && cd r && seq 9999 > f && git add f && git -c user.name=a -c user.email=b"
    " commit -qm m --date=@0 && git gc -q && git fsck && git status --short && git log --format=%s",
    "bash": "f() { echo $(echo a | tr a b); }; f & wait; cat <(echo p1) <(echo p2); (exit 3); echo $?;"
    " trap 'echo bye' EXIT; coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} z; echo $z",
    "make": f"printf '{MAKEFILE}' > Makefile && make -s -j2 && cat *.txt",
    "tar": "cp -r /usr/include/asm-generic l && tar cf l.tar --sort=name --mtime=@0 l && gzip -nk l.tar"
    " && xz -k0 l.tar && bzip2 -k l.tar && rm -r l && tar xzf l.tar.gz && sha256sum l.tar*",
    "awk": "seq 50000 | awk '{s += $1} END {print s}'; seq 50000 | sed -n s/9/x/gp | sha256sum;"
    " grep -rc define /usr/include/linux | sort --parallel=2 | sha256sum",
    "xargs": "find /usr/include/linux -name '*.h' | sort | xargs -P2 -n 100 cat | wc -c",
    "openssl": "echo abc | openssl dgst -sha256; openssl genrsa 2048 | head -1",
    "ssh-keygen": "ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -y -f key | wc -c",
    "gdb": "gdb -q -batch -ex 'info functions main' /bin/true; gdb --version",
    "node": f'node -e "{NODE}"',
    "java": "java -XshowSettings:vm -version 2>&1 | grep -v Estimated",
    "setsid": "setsid -w nohup nice -n 1 env A=1 timeout 9 stdbuf -oL echo through six programs",
    sys.executable: f"{sys.executable} -m venv --without-pip v && ls v/bin && v/bin/python -c 'print(1)'",
}  # fmt: skip


@pytest.mark.parametrize("program", SCRIPTS)
def test_a_program_runs_unchanged(plain, preload, tmp_path, program):
    if shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")
    directory = tmp_path / "in"
    runs = []
    for run, mode in ((plain, "none"), (preload, "sampled"), (preload, "exact")):
        directory.mkdir()
        env = {"OOMREC_MODE": mode}
        ended = run("bash", "-c", SCRIPTS[program], cwd=directory, env=env, timeout=300)
        files = sorted(str(path) for path in directory.rglob("*") if ".git" not in path.parts)
        runs.append((ended.exit_code, ended.stdout, ended.stderr, files))
        shutil.rmtree(directory)
    assert runs[0][0] == 0 and runs[0][1] != "", runs[0]
    assert runs[1] == runs[0] and runs[2] == runs[0]
    assert not preload.dump_dir.exists()
    assert preload.sessions_left() == []
