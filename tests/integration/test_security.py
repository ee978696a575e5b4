"""What docs/security.md promises, tried by real accounts. Each test is an attack."""

import os
import re
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest
from conftest import written
from other_users import KILLED, MEMORY
from watching import wait_for

FAILS = "try: bytes(1 << 50)\nexcept MemoryError: print('went on')"
# Records a failure, reports its pid, and waits until stdin ends.
WAITS = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"


def mode_of(path):
    return stat.S_IMODE(path.lstat().st_mode)


def bundles_in(directory):
    return sorted(directory.glob("oom_*"))


def bundle_of(account, env=None):
    """A new bundle of this account, in its own dump directory."""
    before = bundles_in(account.dumps)
    run = account.recorded(FAILS, env=env)
    assert run.stdout == "went on\n", run.stderr
    (bundle,) = set(bundles_in(account.dumps)) - set(before)
    return bundle


# --- Who may read what --------------------------------------------------------------------------


def test_all_that_we_create_is_the_owners_alone(users):
    """With umask 0, which the account's programs have."""
    victim = users.victim
    bundle = bundle_of(victim)
    victim.recorded(KILLED)
    report = victim.home / "report.html"
    assert victim.oomrec("report", bundle, "-o", report).returncode == 0
    assert victim.oomrec("redact", bundle, "-o", victim.home / "shared").returncode == 0
    words = ["--format", "folded", "-o", victim.home / "stacks.folded"]
    assert victim.oomrec("export", *words, bundle).returncode == 0
    victim.oomrec("analyze", bundle, "--visualize")
    victim.oomrec("show", bundle)  # writes the cache of names
    created = [victim.name_in(MEMORY), *victim.sessions()]
    created += list(victim.home.rglob("*"))
    assert len(created) > 20
    for path in created:
        assert path.lstat().st_uid == victim.uid, path
        assert mode_of(path) & 0o077 == 0, f"{path}: {mode_of(path):o}"


def test_another_user_reads_no_recording_and_no_bundle(users):
    victim, attacker = users.victim, users.attacker
    bundle = bundle_of(victim)
    victim.recorded(KILLED)
    (session,) = victim.sessions()
    for path in (session, session.parent, bundle, bundle / "environment.json"):
        run = attacker("cat" if path.suffix else "ls", path)
        assert run.returncode != 0 and "Permission denied" in run.stderr, path
    for words in (["show", session], ["show", bundle], ["ls", victim.dumps], ["stats", session]):
        run = attacker.oomrec(*words)
        assert run.returncode == 2 and "Permission denied" in run.stderr, str(run)


def start(account, script, env=None):
    environment = {**users_environment(account), **(env or {})}
    return subprocess.Popen(
        [account.users.python, "-c", script],
        cwd=account.home,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=account.become,
    )


def users_environment(account):
    users = account.users
    return {**users.environment, "HOME": str(account.home), "LD_PRELOAD": str(users.library)}


def test_another_user_sees_nothing_of_a_running_process(users):
    with start(users.victim, WAITS) as process:
        pid = int(process.stdout.readline())
        for words in (["top", "--once", pid], ["dump", pid], ["leaks", pid], ["stats", pid]):
            run = users.attacker.oomrec(*words)
            assert run.returncode != 0 and run.stdout == "", f"{words}: {run.stdout}"
        assert not bundles_in(users.victim.dumps)
        # The writer of bundles shares nothing but memory: no descriptor stays open.
        targets = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
        assert not [target for target in targets if "oomrec" in target], targets
        process.stdin.close()


# --- What root trusts ---------------------------------------------------------------------------


def root(users, *words, env=None, cwd=None):
    return subprocess.run(
        [str(users.command), *map(str, words)],
        env={**users.environment, "HOME": str(users.scratch), **(env or {})},
        cwd=cwd or users.scratch,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("owner_of_directory", ["attacker", "root"])
@pytest.mark.parametrize(
    "command", [["watch", "--once"], ["recover", "--unknown"], ["ls", "--all"]]
)
def test_root_acts_only_on_its_own_recordings(users, command, owner_of_directory):
    """The attacker owns the recording, or also the directory named as root's."""
    attacker = users.attacker
    protected = users.scratch / "protected"
    protected.mkdir(mode=0o700)
    attacker.recorded(
        "import os\ntry: bytes(1 << 50)\nexcept MemoryError: os.kill(os.getpid(), 9)",
        env={"OOMREC_DUMP_DIR": str(protected), "OOMREC_SESSION_DIR": str(attacker.home)},
    )
    (session,) = attacker.home.rglob("*.session")
    forged = attacker.home / "oomrec-0"
    attacker.python(f"import os; os.rename({str(session.parent)!r}, {str(forged)!r})")
    if owner_of_directory == "root":
        os.chown(forged, 0, 0)
    evil = f"touch {users.scratch}/run-by-root"
    env = {"OOMREC_SESSION_DIR": str(attacker.home), "OOMREC_ON_OOM_EXEC": evil}
    words = [*command, "--on-oom-exec", evil] if command[0] == "watch" else command
    run = root(users, *words, env=env)
    assert run.returncode in (0, 1), run.stderr
    assert (forged / session.name).exists() and not list(protected.iterdir())
    assert not (users.scratch / "run-by-root").exists()


def test_forged_names_make_no_process_a_recorded_one(users):
    """Files that claim a process, in a directory that is not ours, are no evidence."""
    victim, attacker = users.victim, users.attacker
    with start(attacker, WAITS, {"LD_PRELOAD": ""}) as other:
        pid = int(other.stdout.readline())
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        name = victim.name_in(MEMORY)
        forged = f"{name}/host-{pid}-{ticks}-00000000.session"
        attacker.python(f"import os; os.mkdir({str(name)!r}, 0o755); open({forged!r}, 'w')")
        assert forged not in victim.oomrec("ls", "--all").stdout
        assert victim.oomrec("recover").returncode == 1
        assert Path(forged).exists()
        other.stdin.close()


def test_root_runs_no_module_of_the_working_directory(users):
    """Drawing imports json, html and matplotlib."""
    bundle = bundle_of(users.victim)
    mark = users.scratch / "run-by-root"
    module = f"open({str(mark)!r}, 'w')"
    names = ("json", "html", "sitecustomize", "matplotlib")
    users.attacker.python(f"for name in {names}: open(name + '.py', 'w').write({module!r})")
    pictures = users.scratch / "pictures"
    run = root(
        users,
        "analyze",
        bundle,
        "--visualize",
        "--plot-dir",
        pictures,
        cwd=users.attacker.home,
    )
    assert list(pictures.iterdir()), run.stderr
    assert not mark.exists()


def test_a_live_recording_that_shrinks_ends_no_reader(users):
    """Root looks at another user's program, which cuts its recording."""
    attacker = users.attacker
    with start(attacker, WAITS) as process:
        process.stdout.readline()
        (session,) = attacker.sessions()
        for bytes_left in (1 << 20, 4096, 100, 0):
            os.truncate(session, bytes_left)
            for words in (["show"], ["stats"], ["leaks"], ["top", "--once"]):
                run = root(users, *words, session)
                assert run.returncode >= 0, f"{words} at {bytes_left} died of {-run.returncode}"
        process.kill()


# Swaps the name for a directory of the attacker's, a link to one, and nothing.
SWAPS = """
import itertools, os
os.mkdir("trap")
os.chmod("trap", 0o777)
print("started", flush=True)
for _ in itertools.count():
    for take, leave in ((lambda: os.mkdir(name, 0o777), lambda: os.rmdir(name)),
                        (lambda: os.symlink(os.path.abspath("trap"), name), lambda: os.unlink(name)),
                        (lambda: os.rename(name, name + ".away"), lambda: None)):
        try:
            take()
            leave()
        except OSError:
            pass
"""


def test_a_swapped_directory_gets_no_recording(users):
    """In a directory without the sticky bit the attacker may rename everything."""
    attacker, victim = users.attacker, users.victim
    shared = users.scratch / "sessions"
    shared.mkdir()
    shared.chmod(0o777)
    name = str(victim.name_in(shared))
    swapping = subprocess.Popen(
        [users.python, "-c", f"name = {name!r}\n{SWAPS}"],
        cwd=attacker.home,
        stdout=subprocess.PIPE,
        preexec_fn=attacker.become,
    )
    try:
        assert swapping.stdout.readline() == b"started\n"
        for _ in range(20):
            run = victim.recorded(KILLED, env={"OOMREC_SESSION_DIR": str(shared)})
            assert run.returncode == -9, run.stderr
    finally:
        swapping.kill()
        swapping.wait()
    recordings = list(users.scratch.rglob("*.session")) + list(victim.sessions())
    assert len(recordings) >= 1
    for recording in recordings:
        directory = recording.parent.stat()
        assert (directory.st_uid, stat.S_IMODE(directory.st_mode)) == (victim.uid, 0o700), recording


# --- A directory that several users write to ------------------------------------------------------


@pytest.fixture
def shared(users):
    directory = users.scratch / "dumps"
    directory.mkdir()
    directory.chmod(0o1777)
    return directory


def test_planted_names_lead_nowhere(users, shared):
    """Links under the names of the next two minutes' bundles, and of what they are written as."""
    protected = users.victim.home / "protected"
    protected.mkdir()
    os.chown(protected, users.victim.uid, users.victim.uid)
    (protected / "precious").write_text("kept")
    users.attacker.python(
        f"""
import os, time
for second in range(120):
    name = time.strftime("oom_cpu_%Y%m%d_%H%M%S_001", time.gmtime(time.time() + second))
    os.symlink({str(protected)!r}, {str(shared)!r} + "/" + name)
    os.symlink({str(protected)!r}, {str(shared)!r} + f"/.{{name}}.partial")
    old = name[:8] + "2020" + name[12:]
    os.symlink({str(protected)!r}, {str(shared)!r} + f"/.{{old}}.deleted")
""",
    )
    env = {"OOMREC_DUMP_DIR": str(shared), "OOMREC_MAX_DUMPS": "1"}
    run = users.victim.recorded(FAILS, env=env)
    assert run.stdout == "went on\n"
    made = [path for path in bundles_in(shared) if not path.is_symlink()]
    assert len(made) == 1 and made[0].lstat().st_uid == users.victim.uid, run.stderr
    assert [path.name for path in protected.iterdir()] == ["precious"]


# Bundles of the attacker's that count as important and large, half of them as the newest.
FORGED = """
import json, os, time
for number in range(20):
    created = time.gmtime(time.time() + (3600 if number % 2 else -3600))
    second = time.strftime("%Y%m%d_%H%M%S", created)
    bundle = f"{directory}/oom_cpu_{second}_{number + 1:03}"
    os.mkdir(bundle, 0o755)
    manifest = {
        "created_at_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", created),
        "oomrec_version": "1",
        "reason": "soft_limit",
        "verdict": "soft_limit",
    }
    with open(bundle + "/manifest.json", "w") as file:
        json.dump(manifest, file)
    os.truncate(os.open(bundle + "/ballast", os.O_CREAT | os.O_RDWR), 1 << 40)
"""


@pytest.mark.parametrize("writer", ["victim", "root"])
def test_bundles_of_others_neither_count_nor_go(users, shared, writer):
    users.attacker.python(f"directory = {str(shared)!r}\n{FORGED}")
    env = {"OOMREC_DUMP_DIR": str(shared), "OOMREC_MAX_DUMPS": "2"}
    uid = users.victim.uid
    for _ in range(4):
        if writer == "root":
            uid = 0
            environment = {**users_environment(users.victim), **env}
            subprocess.run([users.python, "-c", FAILS], env=environment, capture_output=True)
        else:
            users.victim.recorded(FAILS, env=env)
    owners = [bundle.stat().st_uid for bundle in bundles_in(shared)]
    assert owners.count(users.attacker.uid) == 20  # also root leaves them alone
    assert owners.count(uid) == 2  # and they crowd out nothing


def test_a_held_lock_does_not_stop_retention(users, shared):
    env = {"OOMREC_DUMP_DIR": str(shared), "OOMREC_MAX_DUMPS": "2"}
    with subprocess.Popen(
        ["flock", str(shared), "sh", "-c", "echo locked; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=users.attacker.become,
    ) as holder:
        assert holder.stdout.readline() == b"locked\n"
        for _ in range(4):
            users.victim.recorded(FAILS, env=env)
        assert len(bundles_in(shared)) == 2
        holder.stdin.close()


def test_a_pipe_in_place_of_a_manifest_holds_nobody_up(users, shared):
    users.attacker.python(
        f"""
import os
for number in range(3):
    bundle = {str(shared)!r} + f"/oom_cpu_20200101_000000_00{{number + 1}}"
    os.mkdir(bundle, 0o755)
    for name in ("manifest.json", "metadata.json", "recording.oomrec")[number:]:
        os.mkfifo(f"{{bundle}}/{{name}}", 0o644)
""",
    )
    env = {"OOMREC_DUMP_DIR": str(shared), "OOMREC_MAX_DUMPS": "1"}
    begin = time.monotonic()
    users.victim.recorded(FAILS, env=env)
    for words in (["ls"], ["show"], ["recover"], ["watch", "--once"]):
        users.victim.oomrec(*words, env=env)
    assert time.monotonic() - begin < 30


NO_BUILD_ID = (b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", b"\x04\0\0\0\x14\0\0\0\x63\0\0\0GNU\0")


@pytest.mark.parametrize("forged", [False, True])
def test_root_reveals_no_names_in_files_of_its_own(users, victim, forged):
    """A recording names any file as a module. A build id would have to be guessed."""
    private = users.scratch / "private"
    private.mkdir(mode=0o700)
    program = private / "program"
    program.write_bytes(Path(victim("leak")).read_bytes().replace(*NO_BUILD_ID))
    program.chmod(0o700)
    environment = {**users_environment(users.victim), "OOMREC_DUMP_DIR": str(private / "dumps")}
    environment |= {"OOMREC_MODE": "exact"}
    subprocess.run([program], env=environment, capture_output=True, timeout=300)
    (bundle,) = bundles_in(private / "dumps")
    if forged:
        os.chown(bundle / "recording.oomrec", users.attacker.uid, users.attacker.uid)
    (bundle / "symbols.json").unlink()  # its names are the recording's own
    run = root(users, "stats", "--json", bundle)
    assert run.returncode == 0, run.stderr
    assert ('"function": "leak"' in run.stdout) == (not forged)


NEWEST = "oom_cuda_20300101_000000_"


def plant_bundle(account, shared, number, process, more=""):
    """A bundle of the future, as the account's: for a watch it is new."""
    account.python(
        f"""
import json, os
bundle = {str(shared / NEWEST)!r} + "{number:03}"
os.mkdir(bundle, 0o755)
manifest = {{"created_at_utc": "2030-01-01T00:00:00Z", "oomrec_version": "1", "reason": "request"}}
manifest["process"] = {process!r}
with open(bundle + "/manifest.json", "w") as file:
    json.dump(manifest, file)
{more}
"""
    )
    return shared / f"{NEWEST}{number:03}"


def test_a_watch_neither_believes_nor_completes_bundles_of_others(users, shared, build_dir):
    """It adds the GPUs' processes to new bundles: through a link, root could write anywhere."""
    precious = written(users.scratch / "precious", "kept")
    environment = {
        **users_environment(users.victim),
        "LD_LIBRARY_PATH": str(build_dir / "tests" / "fake_gpu"),
        "FAKE_NVML": "0:used=950M,pid=1/300M",
        "OOMREC_DUMP_DIR": str(shared),
        "OOMREC_SESSION_DIR": str(users.scratch / "sessions"),
    }
    recorded = subprocess.Popen(
        [users.python, "-c", WAITS], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    environment["LD_PRELOAD"] = ""
    textfiles = users.scratch / "textfiles"
    textfiles.mkdir()
    watch = subprocess.Popen(
        [users.command, "watch", "--textfile", textfiles], env=environment, cwd=users.scratch
    )
    try:
        pid = int(recorded.stdout.readline())
        page = textfiles / "oomrec.prom"
        counted = rf'oomrec_bundles_total{{.*pid="{pid}".*trigger="request"}} (\d+)'
        wait_for(lambda: page.exists() and re.search(counted, page.read_text()))
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        key = f"{boot}-{pid}-{ticks}"
        link = f"os.symlink({str(precious)!r}, bundle + '/.gpu_processes.json.partial')"
        planted = [
            plant_bundle(users.attacker, shared, 1, key, link),
            plant_bundle(users.attacker, shared, 2, key, "os.chmod(bundle, 0o777)"),
        ]
        own = shared / f"{NEWEST}003"
        shutil.copytree(planted[1], shared / ".own")  # root's
        (shared / ".own").rename(own)
        wait_for((own / "gpu_processes.json").exists)
        assert mode_of(own / "gpu_processes.json") == 0o600
        assert precious.read_text() == "kept"
        assert not [path for path in planted if (path / "gpu_processes.json").exists()]
        wait_for(lambda: int(re.search(counted, page.read_text())[1]) > 0)
        watch.terminate()  # it writes the page a last time
        watch.wait()
        assert int(re.search(counted, page.read_text())[1]) == 1
    finally:
        for process in (watch, recorded):
            process.kill()
            process.wait()


# --- Privileged programs --------------------------------------------------------------------------


@pytest.fixture
def setuid_program(users, victim):
    program = Path(shutil.copy(victim("privileged"), users.scratch))
    program.chmod(0o4755)
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        pytest.skip(f"{program.parent} is mounted nosuid")
    return program


def assert_unrecorded(users, program, run):
    assert (run.returncode, run.stderr) == (0, ""), str(run)
    assert run.stdout == "privileged, not recorded\n"
    assert not (users.scratch / "made").exists() and not users.attacker.sessions()
    assert not list(users.scratch.rglob("*.session"))


SETTINGS = ("OOMREC_SESSION_DIR", "OOMREC_DUMP_DIR")


def test_settings_reach_no_setuid_program(users, setuid_program):
    env = {name: str(users.scratch / "made") for name in SETTINGS}
    env["LD_PRELOAD"] = str(users.library)
    assert_unrecorded(users, setuid_program, users.attacker(setuid_program, env=env))


def test_settings_reach_no_setuid_program_that_the_system_preloads(users, setuid_program):
    """/etc/ld.so.preload brings the library into setuid programs, too."""
    script = """
set -e
cp -a /etc "$1/etc"
mount --make-rprivate /
echo "$1/liboomrec.so" > "$1/etc/ld.so.preload"
mount --bind "$1/etc" /etc
user=$2; shift 2
exec setpriv --reuid $user --regid $user --clear-groups env OOMREC_MODE=exact "$@"
"""
    command = ["unshare", "-m", "sh", "-c", script, "sh", users.scratch, users.attacker.uid]
    settings = [f"{name}={users.scratch}/made" for name in SETTINGS]

    def run(program):
        words = map(str, [*command, *settings, *program])
        env = {**users.environment, "OOMREC_MODE": "off"}  # of the programs that start it
        done = subprocess.run(list(words), env=env, capture_output=True, text=True)
        shutil.rmtree(users.scratch / "etc", ignore_errors=True)
        return done

    loaded = "print(open('/proc/self/maps').read().count('liboomrec.so') > 0)"
    plain = run([users.python, "-c", loaded])
    if plain.stdout != "True\n":
        pytest.skip(f"/etc/ld.so.preload could not be replaced: {plain.stderr}")
    shutil.rmtree(users.scratch / "made", ignore_errors=True)
    assert_unrecorded(users, setuid_program, run([setuid_program]))


def test_settings_reach_no_program_with_file_capabilities(users, victim):
    program = Path(shutil.copy(victim("privileged"), users.scratch))
    # Version 2, effective; CAP_NET_RAW permitted.
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    try:
        os.setxattr(program, "security.capability", capability)
    except OSError as error:
        pytest.skip(f"no file capabilities here: {error}")
    env = {name: str(users.scratch / "made") for name in SETTINGS}
    env["LD_PRELOAD"] = str(users.library)
    run = users.attacker(program, env=env)
    assert run.stdout == "plain, not recorded\n" and run.stderr == "", str(run)
    assert not list(users.scratch.rglob("*.session"))


# --- Metrics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "hard link", "kept open"])
def test_a_textfile_is_never_one_that_another_user_prepared(users, kind):
    """In a directory that others may write to: the name it is written as is no secret."""
    directory = users.scratch / "textfile"
    directory.mkdir()
    directory.chmod(0o777)
    precious = written(users.scratch / "precious", "kept")
    precious.chmod(0o600)

    def prepare():
        name = directory / f".oomrec.prom.{os.getpid()}"
        if kind == "pipe":
            os.mkfifo(name, 0o666)
        elif kind == "hard link":
            os.link(precious, name)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_RDWR, 0o666))
            os.chown(name, users.attacker.uid, users.attacker.uid)

    process = subprocess.Popen(
        [users.command, "watch", "--textfile", directory],
        env=users.environment,
        cwd=users.scratch,
        stderr=subprocess.PIPE,
        preexec_fn=prepare,
    )
    try:
        page = wait_for(lambda: next(directory.glob("oomrec.prom"), None), 20)
        assert page.stat().st_uid == 0 and mode_of(page) == 0o644 and page.stat().st_nlink == 1
        assert precious.read_text() == "kept" and mode_of(precious) == 0o600
    finally:
        process.terminate()
        process.communicate()


def test_webhooks_read_no_curlrc(users):
    """After `sudo -E` the home directory is another user's."""
    curl = users.scratch / "bin" / "curl"
    curl.parent.mkdir()
    curl.write_text(f'#!/bin/sh\necho "$@" > {users.scratch}/words\n')
    curl.chmod(0o755)
    environment = {**users.environment, "PATH": f"{curl.parent}:/usr/bin:/bin"}
    process = subprocess.Popen(
        [users.command, "watch", "--alert-webhook", "https://example.org/hook"],
        env=environment,
        cwd=users.scratch,
    )
    try:
        script = "import os\ntry: bytes(1 << 50)\nexcept MemoryError: os.kill(os.getpid(), 9)"
        recorded = {**environment, "LD_PRELOAD": str(users.library)}
        time_of_alert = users.scratch / "words"
        wait_for(lambda: Path(f"/proc/{process.pid}/fdinfo").exists())
        subprocess.run(
            [users.python, "-c", script], env=recorded, cwd=users.scratch, capture_output=True
        )
        words = wait_for(lambda: time_of_alert.exists() and time_of_alert.read_text()).split()
        assert words[0] == "--disable"
        assert not set(words) & {"--insecure", "--location"}
    finally:
        process.terminate()
        process.wait()
