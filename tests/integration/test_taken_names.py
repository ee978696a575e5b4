"""Another user has taken the names of our directories of recordings, which everybody can guess."""

import json
import os
import stat
from pathlib import Path

import pytest
from other_users import KILLED, MEMORY, NAMES

LOST = "the recording is private memory, and is lost in a kill"
TAKEN = "another user has taken this name, or it is no directory"

# What an attacker may put there. The last one leads to a directory that the victim owns.
SQUATTERS = {
    "open directory": "os.mkdir(name); os.chmod(name, 0o777)",
    "closed directory": "os.mkdir(name, 0o700)",
    "file": "open(name, 'w').close()",
    "pipe": "os.mkfifo(name)",
    "link to the attacker's": "os.symlink(os.getcwd(), name)",
    "link to the victim's": "os.symlink(sys.argv[1], name)",
}


def take(users, how, *names):
    for name in names:
        users.attacker.python(
            f"import os, sys; name = {str(name)!r}; {SQUATTERS[how]}", users.victim.home
        )


def first_names(victim):
    return victim.name_in(MEMORY), victim.name_in(victim.users.temporary)


def assert_recovered(victim, directory, env=None):
    """The killed program's recording is there, is private, and readers find it."""
    (session,) = victim.sessions()
    assert session.parent == directory
    for path, mode in ((directory, 0o700), (session, 0o600)):
        facts = path.lstat()
        assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (victim.uid, mode), path
    shown = victim.oomrec("show", "--json", session, env=env)
    assert shown.returncode == 0 and json.loads(shown.stdout), shown.stderr
    recovered = victim.oomrec("recover", env=env)
    assert not session.exists(), str(recovered)


@pytest.mark.parametrize("how", SQUATTERS)
def test_a_taken_name_gives_way_to_a_spare_one(users, how):
    victim = users.victim
    take(users, how, *first_names(victim))
    run = victim.recorded(KILLED)
    assert (run.returncode, run.stderr) == (-9, "")
    assert_recovered(victim, victim.name_in(MEMORY, ".1"))
    assert not list(users.attacker.home.iterdir())  # nothing went to the attacker


def test_the_next_process_uses_the_same_spare_name(users):
    victim = users.victim
    take(users, "open directory", *first_names(victim), victim.name_in(MEMORY, ".1"))
    victim.recorded(KILLED)
    victim.recorded(KILLED)
    assert {session.parent for session in victim.sessions()} == {victim.name_in(MEMORY, ".2")}


def test_the_temporary_directory_comes_before_spare_names(users):
    victim = users.victim
    take(users, "open directory", victim.name_in(MEMORY))
    assert victim.recorded(KILLED).stderr == ""
    assert_recovered(victim, victim.name_in(users.temporary))


def runtime_directory(users, owner, mode):
    directory = users.scratch / "run"
    directory.mkdir()
    os.chown(directory, owner, owner)
    directory.chmod(mode)
    return directory, {"XDG_RUNTIME_DIR": str(directory)}


def test_the_runtime_directory_comes_before_spare_names(users):
    victim = users.victim
    take(users, "open directory", *first_names(victim))
    directory, env = runtime_directory(users, victim.uid, 0o700)
    assert victim.recorded(KILLED, env=env).stderr == ""
    sessions = list(directory.rglob("*.session"))
    assert [session.parent for session in sessions] == [victim.name_in(directory)]
    assert str(sessions[0]) in victim.oomrec("ls", "--all", "--json", env=env).stdout


@pytest.mark.parametrize("of_attacker, mode", [(True, 0o700), (True, 0o777), (False, 0o770)])
def test_a_runtime_directory_must_be_private(users, of_attacker, mode):
    victim = users.victim
    take(users, "open directory", *first_names(victim))
    owner = users.attacker if of_attacker else victim
    directory, env = runtime_directory(users, owner.uid, mode)
    assert victim.recorded(KILLED, env=env).stderr == ""
    assert not list(directory.iterdir())
    assert_recovered(victim, victim.name_in(MEMORY, ".1"), env)


def test_without_any_name_one_line_says_what_is_lost(users):
    victim = users.victim
    bases = (MEMORY, users.temporary)
    names = [victim.name_in(base, suffix) for base in bases for suffix in NAMES]
    take(users, "open directory", *names)
    run = victim.recorded("import os; print(len(bytes(1 << 20))); os.fork() or os._exit(0)")
    assert (run.returncode, run.stdout) == (0, f"{1 << 20}\n")
    hint = "set OOMREC_SESSION_DIR to a directory of yours"
    assert run.stderr == f"oomrec: {names[0]}: {TAKEN}; {LOST}; {hint}\n"
    own = {"OOMREC_SESSION_DIR": str(victim.home)}
    assert victim.recorded(KILLED, env=own).stderr == ""
    assert [session.parent for session in victim.home.rglob("*.session")] == [
        victim.name_in(victim.home)
    ]
    assert not any(list(name.iterdir()) for name in names)


def test_a_taken_name_in_a_named_directory_is_reported(users):
    victim = users.victim
    shared = users.scratch / "sessions"
    shared.mkdir()
    shared.chmod(0o1777)
    take(users, "open directory", victim.name_in(shared))
    run = victim.recorded("", env={"OOMREC_SESSION_DIR": str(shared)})
    instead = f"the recording is in {victim.name_in(MEMORY)} instead"
    assert run.stderr == f"oomrec: {victim.name_in(shared)}: {TAKEN}; {instead}\n"


def test_a_made_directory_is_closed_to_others_whatever_the_umask(users):
    victim = users.victim
    named = victim.home / "sessions"
    victim.recorded("", env={"OOMREC_SESSION_DIR": str(named)})
    assert stat.S_IMODE(named.stat().st_mode) == 0o755


def test_a_watch_finds_spare_names(users):
    victim = users.victim
    take(users, "open directory", *first_names(victim))
    failed = "import os\ntry: bytes(1 << 50)\nexcept MemoryError: os.kill(os.getpid(), 9)"
    victim.recorded(failed, env={"OOMREC_MAX_DUMPS": "5"})
    assert len(victim.sessions()) == 1
    watched = victim.oomrec("watch", "--once")
    assert watched.returncode in (0, 1), watched.stderr
    assert victim.sessions() == [] and list(Path(victim.dumps).glob("oom_*"))
