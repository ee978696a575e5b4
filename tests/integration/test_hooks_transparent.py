"""A program behaves the same with and without the preload: output, errno, exit code."""

from __future__ import annotations

import glob
import subprocess
import sys

import pytest

VICTIMS = [
    "new_caught", "leak", "tls_destructor", "vfork_exec", "daemonize", "coroutine", "fork_storm", "naive_malloc",
    *(f"refusals {way}" for way in ("posix_memalign", "aligned_alloc", "mmap", "mremap", "calloc",
                                    "realloc", "threads", "thread", "fork", "own_limit")),
]  # fmt: skip

ALLOCATORS = [
    "libjemalloc.so.2",
    "libtcmalloc.so.4",
    "libtcmalloc_minimal.so.4",
    "libmimalloc.so.[23]",
]


def allocator(name: str) -> str:
    found = glob.glob(f"/usr/lib/*/{name}")
    if not found:
        pytest.skip(f"not installed: {name}")
    return found[0]


def same(plain, preload, *args, **options):
    without = plain(*args, **options)
    recorded = preload(*args, **options)
    assert (recorded.stdout, recorded.exit_code) == (without.stdout, without.exit_code), str(
        recorded
    )
    return without, recorded


@pytest.mark.parametrize("name", VICTIMS)
@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_victim_ends_as_without_the_recorder(plain, preload, victim, name, mode):
    program, *words = name.split()
    same(plain, preload, victim(program), *words, env={"OOMREC_MODE": mode})


def test_the_programs_view_of_itself_is_unchanged(plain, preload, victim, tmp_path):
    """Threads, children, descriptors, signals, timers, environment, directory: as unrecorded."""
    ours = ("LD_PRELOAD=", "OOMREC_")
    without, recorded = plain(victim("own_view")), preload(victim("own_view"))
    seen = [line for line in recorded.stdout.splitlines() if not line.startswith(ours)]
    assert seen == [line for line in without.stdout.splitlines() if not line.startswith(ours)]
    assert not list(tmp_path.glob("oom_dumps"))


@pytest.mark.parametrize("name", ALLOCATORS)
def test_other_allocators_in_both_orders(plain, library, name):
    other = allocator(name)
    without = plain("ls", "/usr", env={"LD_PRELOAD": other})
    for order in (f"{library}:{other}", f"{other}:{library}"):
        run = plain("ls", "/usr", env={"LD_PRELOAD": order})
        assert (run.stdout, run.exit_code) == (without.stdout, 0), str(run)


@pytest.mark.parametrize("name", ALLOCATORS[:3])  # mimalloc, built as C, aborts on a refused new
def test_another_allocators_new_throws_its_own_exception(plain, library, victim, name):
    other = allocator(name)
    without = plain(victim("new_caught"), env={"LD_PRELOAD": other})
    run = plain(victim("new_caught"), env={"LD_PRELOAD": f"{library}:{other}"})
    assert (run.stdout, run.exit_code) == (without.stdout, without.exit_code), str(run)


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc_minimal", "mimalloc"])
def test_linked_allocators(plain, preload, victim, name, build_dir):
    if not (build_dir / "tests" / "victims" / f"new_caught_{name}").exists():
        pytest.skip(f"not installed for linking: {name}")
    same(plain, preload, victim(f"new_caught_{name}"))


@pytest.fixture
def foreign(build_dir, victim):
    """foreign(KIND) is hello.c as a program that cannot be recorded. Skips without musl's compiler."""

    def path_of(kind: str) -> str:
        if kind == "musl" and not (build_dir / "tests" / "victims" / "hello_musl").exists():
            pytest.skip("built without musl-gcc (musl-tools)")
        return victim(f"hello_{kind}")

    return path_of


@pytest.mark.parametrize("kind", ["static", "musl"])
def test_static_and_musl_programs_start(preload, foreign, kind):
    run = preload(foreign(kind), "x")
    assert run.exit_code == 0 and run.stdout.startswith("hello 2 x 1\n"), str(run)


@pytest.mark.parametrize("kind", ["static", "musl", "asan"])
def test_exec_of_an_unrecordable_program_drops_the_preload(preload, foreign, kind):
    """A shell starts them: our entry is removed from LD_PRELOAD."""
    run = preload("/bin/sh", "-c", f"exec {foreign(kind)} x", exits=0)
    assert "liboomrec" not in run.stdout, str(run)


def test_exec_keeps_other_preloads(preload, foreign, library):
    other = allocator("libjemalloc.so.2")
    run = preload("/bin/sh", "-c", foreign("static"), env={"LD_PRELOAD": f"{library}:{other}"})
    assert f"LD_PRELOAD {other}\n" in run.stdout, str(run)


def test_posix_spawn_and_subprocess_drop_the_preload_too(preload, victim):
    script = (
        "import os, subprocess, sys\n"
        "target = sys.argv[1]\n"
        "pid = os.posix_spawn(target, [target], os.environ)\n"
        "os.waitpid(pid, 0)\n"
        "print(subprocess.run([target], capture_output=True, text=True).stdout, end='')\n"
        "print(subprocess.run([target], close_fds=False, capture_output=True, text=True).stdout, end='')\n"
    )
    run = preload(sys.executable, "-c", script, victim("hello_static"))
    assert run.exit_code == 0 and "liboomrec" not in run.stdout, str(run)
    assert run.stdout.count("hello 1 - 1") == 3, str(run)


def test_children_can_be_left_unrecorded(preload, victim):
    run = preload("/bin/sh", "-c", f"exec {victim('hello')}", env={"OOMREC_CHILDREN": "0"})
    assert "LD_PRELOAD is not set" in run.stdout, str(run)


def test_a_cleaned_environment_stays_clean(preload, victim):
    run = preload("/usr/bin/env", "-i", victim("hello"))
    assert "LD_PRELOAD is not set" in run.stdout, str(run)


PROGRAMS = {
    "gcc": "echo 'int main(void){return 7;}' > p.c && gcc -O2 -o p p.c; ./p; echo $?; rm -f p p.c",
    "sqlite3": "sqlite3 :memory: 'create table t(x); insert into t values(1),(2); select sum(x) from t'",
    "perl": "perl -e 'my %h = map { $_ => $_ * 2 } 1..20000; print scalar(keys %h), \"\\n\"'",
    "git": "rm -rf r && git init -q r && cd r && echo a > f && git add f && git -c user.name=a -c user.email=b"
    " commit -qm m && git gc -q && git status --short && git log --format=%s && cd .. && rm -rf r",
    "bash": "bash -c 'for i in 1 2 3; do echo $(echo $i | sed s/./x/) | cat; done; wait'",
    "node": "node -e 'console.log([1,2,3].map(x => x * 2).join())'",
    "java": "java -version 2>&1 | wc -l",
    "awk": "seq 1 10000 | awk '{s += $1} END {print s}'",
    "tar": "tar -cf - -C /etc hostname | tar -tf -",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_third_party_programs(plain, preload, name):
    if subprocess.run(["which", name], capture_output=True).returncode:
        pytest.skip(f"not installed: {name}")
    without, recorded = same(plain, preload, "/bin/sh", "-c", PROGRAMS[name])
    assert recorded.stderr == without.stderr, str(recorded)


def test_python_runs_unchanged(plain, preload):
    """Python, its threads, subprocesses (vfork) and multiprocessing (fork)."""
    script = (
        "import subprocess, threading, multiprocessing, os\n"
        "print(subprocess.run(['echo', 'x'], capture_output=True).stdout)\n"
        "t = threading.Thread(target=lambda: bytearray(10**6)); t.start(); t.join()\n"
        "with multiprocessing.get_context('fork').Pool(4) as pool: print(sum(pool.map(abs, range(-50, 0))))\n"
        "print(len(os.listdir('/proc/self/fd')))\n"
    )
    same(plain, preload, sys.executable, "-c", script)
