"""The outcome of a process, and recovery of a dead process' recording."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import written
from kernel_log import report_oom_kill
from sizes import take_up
from watching import wait_for

# The victim does not touch its memory.
HELD = (
    r"it held 20\.0 MiB, \S+ MiB of it resident at its last check; no refused request is on record"
)


def started(preload, victim, way, **env):
    """A victim after its failed allocation (none for `never`), which it has announced."""
    process = preload.start(victim("dies"), way, stdin=subprocess.PIPE, env=env).once("ready")
    if way != "never":  # the program does not wait for the bundle's last steps
        wait_for(lambda: list(preload.dump_dir.glob("oom_*/manifest.json")))
    time.sleep(0.1)  # then it sleeps
    return process


def killed(preload, victim, way, **env):
    process = started(preload, victim, way, **env)
    process.send_signal(signal.SIGKILL)
    return preload.finish(process)


def killed_by_the_kernel(preload, oomrec, victim):
    """Without a failure. An end that nobody saw leaves no bundle, one in the kernel's log does."""
    log = preload.directory / "kernel.log"
    for runner in (preload, oomrec):
        runner.environment["OOMREC_KERNEL_LOG"] = str(log)
    process = started(preload, victim, "never")
    report_oom_kill(log, process.pid, "dies")
    process.kill()
    return preload.finish(process)


def sessions_in(preload):
    return list(preload.session_dir.glob("**/*.session"))


@pytest.mark.parametrize(
    "way, outcome", [("recovers", "recovered"), ("exits", "exited 3"), ("dies", "signal 9")]
)
def test_run_completes_the_outcome(oomrec, victim, way, outcome):
    run = oomrec("run", "--", victim("dies"), way)
    assert run.exit_code == {"recovers": 0, "exits": 3, "dies": 137}[way]
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["outcome"], shown["verdict"]["code"]) == (outcome, "request_too_large")
    assert shown["request"]["repeats"] == 3
    assert "ENOMEM, 3 repeats" in oomrec("show").stdout


@pytest.mark.parametrize("way, outcome", [("recovers", "recovered"), ("exits", "exited 3")])
def test_the_program_completes_its_outcome(preload, oomrec, victim, way, outcome):
    run = preload(victim("dies"), way)
    metadata = json.loads((run.only_bundle() / "metadata.json").read_text())
    assert (metadata["outcome"], metadata["request"]["repeats"]) == (outcome, 3)
    assert sessions_in(preload) == []


def test_a_reader_checks_that_the_process_still_runs(preload, oomrec, victim, tmp_path):
    process = started(preload, victim, "waits")
    (bundle,) = preload.dump_dir.glob("oom_*")
    assert oomrec.json("show", bundle)["outcome"] == "running"
    manifest = bundle / "manifest.json"
    words = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**words, "created_at_utc": "2026-01-01T00:00:00Z"}))
    assert oomrec.json("show", bundle)["outcome"] == "recovered"  # it survived
    elsewhere = shutil.copytree(bundle, tmp_path / "elsewhere" / bundle.name)
    process.kill()
    process.wait()
    assert oomrec.json("show", elsewhere)["outcome"] == "unknown"
    manifest.write_text(json.dumps(words))
    assert oomrec.json("ls")["bundles"][0]["outcome"] == "unknown"
    assert sessions_in(preload) == []


def test_a_kill_after_a_failure_completes_its_bundle(preload, oomrec, victim):
    run = killed(preload, victim, "waits")
    run.only_bundle()
    recovered = oomrec("recover", "--json").json()
    # There may be recordings of other programs on the machine.
    here = [path for path in recovered["bundles"] if path.startswith(str(run.dump_dir))]
    assert here == [str(run.only_bundle())]
    shown = oomrec.json("show")
    assert (shown["outcome"], shown["request"]["repeats"]) == ("unknown", 3)


def unseen_end(run) -> str:
    return rf"dies \(pid {run.pid}\), last seen 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ,"


def test_of_several_unseen_ends_the_newest_is_named(preload, oomrec, victim):
    """By what it did last, not by its start."""
    outlived = started(preload, victim, "never")
    killed(preload, victim, "never")
    run = killed(preload, victim, "never")
    outlived.kill()
    outlived.wait()
    looked = oomrec("show")
    assert re.search(
        unseen_end(run) + " and 2 more ended with an unknown exit status", looked.stderr
    )


def test_a_killed_program_without_a_trace_gets_a_bundle_if_asked(preload, oomrec, victim):
    """Nobody saw who killed it. A Go program that exits leaves the same, so none is made unasked;
    but its recording stays until somebody asks."""
    run = killed(preload, victim, "never")
    assert run.bundles() == []
    for command in ("show", "ls"):
        looked = oomrec(command)
        assert re.search(unseen_end(run) + " ended with an unknown exit status", looked.stderr), (
            str(looked)
        )
    assert run.bundles() == [] and len(sessions_in(preload)) == 1
    recovered = oomrec("recover", "--unknown", exits=0)
    shown = oomrec.json("show", run.only_bundle())
    assert shown["trigger"] == "killed" and shown["request"] is None
    verdict = shown["verdict"]
    assert verdict["code"] == "unknown"
    assert re.fullmatch("dies ended; its exit status is unknown; " + HELD, verdict["summary"])
    assert (
        take_up(shown["holders"][0]["bytes"], 20 << 20)
        and shown["holders"][0]["estimated"] is False
    )
    assert oomrec("recover").exit_code == 1
    unasked = killed(preload, victim, "never")
    assert oomrec("ls").exit_code == 0 and unasked.bundles() == run.bundles()
    assert len(sessions_in(preload)) == 1
    recovered = oomrec("recover")
    assert recovered.exit_code == 0 and recovered.stdout == (
        "1 recording with an unknown exit status was left: no evidence of a memory problem; "
        "oomrec recover --unknown makes a bundle of it\n"
    )
    assert oomrec("recover", "--json").json() == {
        "schema_version": 1, "bundles": [], "removed": 0, "left": 1, "unshipped": None,
    }  # fmt: skip
    assert len(sessions_in(preload)) == 1 and unasked.bundles() == run.bundles()
    advice = oomrec("show", env={"OOMREC_DUMP_DIR": "elsewhere"}).stderr
    assert "`oomrec recover --unknown` makes bundles of them" in advice
    assert oomrec("recover", "--unknown").exit_code == 0
    assert sessions_in(preload) == [] and len(unasked.bundles()) == 2


@pytest.mark.needs_cgroup_write
def test_a_kill_elsewhere_on_the_machine(preload, build_dir, victim, cgroup, tmp_path):
    """The machine's count of kills rose. That of the process' own cgroup, which has such kills, too, did not."""
    process = preload.start(
        victim("dies"), "never", stdin=subprocess.PIPE, preexec_fn=cgroup("200M").enter
    ).once("ready")
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    preload.finish(process)
    counts = Path("/proc/vmstat").read_text()
    kills = int(re.search(r"^oom_kill (\d+)$", counts, re.MULTILINE)[1])
    counts = counts.replace(f"\noom_kill {kills}\n", f"\noom_kill {kills + 1}\n")
    over = shlex.quote(str(written(tmp_path / "vmstat", counts)))
    recover = shlex.join([str(build_dir / "oomrec"), "recover"])
    # The tests' own has no name, over which none can be mounted (machine_isolation.py).
    script = f"umount -l /proc/vmstat; mount --bind {over} /proc/vmstat && {recover}"
    run = preload("unshare", "-m", "sh", "-c", script, env={"LD_PRELOAD": None})
    assert run.exit_code == 0, run.stderr
    assert "1 recording with an unknown exit status was left" in run.stdout
    assert run.bundles() == []


def killed_under_run(oomrec, victim, *options, env=None):
    process = oomrec.start(
        "run", *options, "--", victim("dies"), "never", stdin=subprocess.PIPE, env=env
    ).once("ready")
    os.kill(process.child(), signal.SIGKILL)
    return oomrec.finish(process)


def test_run_names_the_signal_that_killed_a_large_program(oomrec, victim):
    run = killed_under_run(oomrec, victim)
    summary = oomrec.json("show", run.only_bundle())["verdict"]["summary"]
    said = "dies was killed by SIGKILL, and not for lack of memory; "
    assert re.fullmatch(said + HELD, summary)
    metadata = json.loads((run.only_bundle() / "metadata.json").read_text())
    assert metadata["verdict"]["summary"] == summary


@pytest.mark.parametrize("way", ["by itself", "by another"])
def test_run_says_that_a_small_program_was_killed(oomrec, way):
    """A shell says "Killed"; `show` would open an older bundle."""
    script = "kill -9 $$" if way == "by itself" else "echo $$; read line"
    process = oomrec.start("run", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    if way == "by another":
        os.kill(int(process.stdout.readline()), signal.SIGKILL)
    run = oomrec.finish(process)
    assert run.exit_code == 137 and run.bundles() == []
    line = r"oomrec: \w+ \(pid \d+\) was killed by SIGKILL.*; it held [\d.]+ \w+, so there is no bundle\n"
    assert re.fullmatch(line, run.stderr), run.stderr
    quiet = oomrec("run", "--quiet", "--", "sh", "-c", "kill -9 $$")
    assert (quiet.exit_code, quiet.stderr) == (137, "")


def test_run_says_that_a_program_crashed(oomrec):
    script = "import os; held = bytearray(30 << 20); os.kill(os.getpid(), 11)"
    run = oomrec("run", "--", sys.executable, "-c", script)
    first, second = run.stderr.splitlines()
    assert re.fullmatch(r"oomrec: python\S* \(pid \d+\) crashed with SIGSEGV", first), run.stderr
    assert second.startswith(f"oomrec: bundle {run.only_bundle()}")


def test_run_names_a_bundle_outside_the_default_directory(oomrec, victim, tmp_path):
    found = killed_under_run(oomrec, victim)
    death, words = found.stderr.splitlines()
    killed = r"oomrec: dies \(pid \d+\) was killed by SIGKILL, and not for lack of memory"
    assert re.fullmatch(killed, death), found.stderr
    assert words == f"oomrec: bundle {found.only_bundle()}   read it with: oomrec show"
    run = killed_under_run(oomrec, victim, "--dump-dir", tmp_path / "other")
    (bundle,) = (tmp_path / "other").glob("oom_*")
    assert run.stderr.endswith(f"\noomrec: bundle {bundle}   read it with: oomrec show {bundle}\n")


def test_an_unwritable_dump_directory_sends_the_bundle_beside_the_recording(
    preload, oomrec, victim
):
    preload.dump_dir.write_text("in the way")
    killed_by_the_kernel(preload, oomrec, victim)
    (session,) = sessions_in(preload)
    recovered = oomrec("recover")
    (bundle,) = session.parent.glob("oom_*")
    assert recovered.exit_code == 0 and str(bundle) in recovered.stdout
    problem = f"oomrec: no bundle could be written to {preload.dump_dir}: Not a directory; set OOMREC_DUMP_DIR to another directory\n"
    assert recovered.stderr == problem
    assert sessions_in(preload) == []


def test_a_recording_that_cannot_be_written_is_not_reported_as_missing(preload, oomrec, victim):
    preload.dump_dir.write_text("in the way")
    killed_by_the_kernel(preload, oomrec, victim)
    (session,) = sessions_in(preload)
    limit = (64 << 10, 64 << 10)
    recovered = oomrec(
        "recover", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    assert recovered.exit_code == 1 and recovered.stdout == ""
    problem = f"oomrec: no bundle could be written to {preload.dump_dir}: Not a directory; set OOMREC_DUMP_DIR to another directory\n"
    assert recovered.stderr == problem
    assert sessions_in(preload) == [session]


def test_a_failure_without_a_bundle_is_reported_once(oomrec, victim):
    limit = (64 << 10, 64 << 10)
    run = oomrec(
        "run",
        "--",
        victim("dies"),
        "exits",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert run.exit_code == 3 and run.bundles() == []
    place, *lines = run.stderr.splitlines()
    assert place.endswith(
        ": File too large; the recording is private memory, and is lost in a kill; "
        "raise the limit of file sizes (ulimit -f)"
    )
    assert len(lines) == 3 and lines[0].startswith("oomrec: dies asked malloc for"), str(run)
    assert (
        lines[2]
        == f"oomrec: {run.dump_dir}: File too large; no bundle could be written; raise the limit of file sizes (ulimit -f)"
    )


@pytest.mark.needs_numpy
def test_a_killed_numpy_names_its_line(preload, oomrec, tmp_path):
    script = tmp_path / "hold.py"
    script.write_text(
        "import sys, time\nimport numpy as np\nheld = np.ones(4 << 20)\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    process = preload.start("python3", script).once("ready")
    process.kill()
    preload.finish(process)
    assert f"process {process.pid}: " in oomrec("recover", "--unknown").stdout
    holders = oomrec.json("show")["holders"]
    holder = next(holder for holder in holders if take_up(holder["bytes"], 32 << 20))
    lines = [(frame["file"], frame["line"]) for frame in holder["stack"]]
    assert (str(script), 3) in lines


def test_a_small_orphan_is_listed_and_removed(preload, oomrec):
    run = preload("sh", "-c", "kill -9 $$")
    assert run.exit_code == 137 and len(sessions_in(preload)) == 1
    listed = oomrec("ls", "--all", env={"OOMREC_DUMP_DIR": "elsewhere"})
    assert listed.exit_code == 0 and f"dead     {run.pid:>8}" in listed.stdout
    recovered = oomrec("recover")
    assert recovered.stdout == "1 recording that held nothing of note was removed\n"
    assert sessions_in(preload) == [] and run.bundles() == []


@pytest.mark.parametrize("left", ["nothing", "half a header"])
@pytest.mark.parametrize("command", ["ls", "recover"])
def test_a_process_killed_at_start_is_listed_and_removed(preload, oomrec, command, left):
    run = preload("sh", "-c", "kill -9 $$")
    (session,) = sessions_in(preload)
    begin = session.read_bytes()[:24] if left != "nothing" else b""
    bytes_ = session.stat().st_size if begin else 0
    with session.open("wb") as file:  # magic and version are stored first, the state last
        file.write(begin)
        file.truncate(bytes_)
    assert oomrec("recover").exit_code == 1 and sessions_in(preload) == [session]
    os.utime(session, (1_000_000, 1_000_000))  # too old to be just starting
    if command == "ls":
        assert f"dead     {run.pid:>8}" in oomrec("ls", "--all").stdout
    else:
        assert oomrec("recover", "--json").json() == {
            "schema_version": 1,
            "bundles": [],
            "removed": 1,
            "left": 0,
            "unshipped": None,
        }
    assert sessions_in(preload) == [] and run.bundles() == []


def test_a_listing_does_not_repeat_what_it_recovers(preload, oomrec, victim):
    run = killed_by_the_kernel(preload, oomrec, victim)
    (session,) = sessions_in(preload)
    listed = oomrec("ls", "--all")
    assert str(run.only_bundle().name) in listed.stdout and "is gone" in listed.stderr
    assert session.name not in listed.stdout, str(
        listed
    )  # other processes may be recorded meanwhile


def test_many_readers_make_one_bundle(preload, oomrec, victim):
    run = killed_by_the_kernel(preload, oomrec, victim)
    readers = [oomrec.start(word) for word in ["recover", "ls", "show", "recover", "show", "ls"]]
    for reader in readers:
        assert oomrec.finish(reader).exit_code in (0, 1)
    run.only_bundle()
    assert sessions_in(preload) == []


@pytest.mark.skipif(
    subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
    reason="no mount namespace of its own is to be had here",
)
def test_a_read_only_user_sees_the_orphan_unchanged(preload, oomrec, plain, victim):
    run = killed(preload, victim, "never")
    (session,) = sessions_in(preload)
    commands = f"{oomrec._prefix[0]} ls --all; {oomrec._prefix[0]} show {session}"
    mount = "mount --bind $PWD $PWD && mount -o remount,ro,bind $PWD && cd $PWD"
    inside = plain("unshare", "-m", "sh", "-c", f"{mount} && {{ {commands}; }}")
    if "mount" in inside.stderr:
        pytest.skip("no mount of one's own here")
    assert f"dead     {run.pid:>8}" in inside.stdout
    assert "20.0 MiB in 1 block" in inside.stdout and inside.exit_code == 0
    assert sessions_in(preload) == [session] and run.bundles() == []


def test_dump_from_outside_does_not_disturb_the_program(preload, oomrec, victim):
    process = started(preload, victim, "never")
    kept = ("Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "TracerPid")

    def status():
        with open(f"/proc/{process.pid}/status") as lines:
            rows = dict(line.rstrip("\n").split(":", 1) for line in lines)
        fds = sorted(os.listdir(f"/proc/{process.pid}/fd"))
        return {name: rows[name] for name in kept}, rows["voluntary_ctxt_switches"], fds

    before = status()
    dumped = oomrec("dump", "--reason", "curiosity", process.pid, exits=0)
    assert status() == before
    assert "bundle requested: curiosity\n" in oomrec("show", dumped.stdout.strip()).stdout
    shown = oomrec.json("show", dumped.stdout.strip())
    assert shown["context"] == "curiosity"
    assert (shown["trigger"], shown["verdict"]["code"]) == ("request", "requested")
    assert shown["outcome"] == "running" and take_up(shown["holders"][0]["bytes"], 20 << 20)
    process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_another_users_recording_is_not_trusted(preload, oomrec, victim):
    run = killed(preload, victim, "never")
    (session,) = sessions_in(preload)
    os.chown(session, 65534, 65534)
    assert oomrec("recover").exit_code == 1
    assert "dead" not in oomrec("ls", "--all").stdout
    assert session.exists() and run.bundles() == []
    assert (
        oomrec("show", session).exit_code == 0
    )  # it is read when given by name, but no bundle is written
    assert run.bundles() == []


def test_a_service_that_sees_only_processes_in_proc(preload, oomrec, victim):
    """systemd's ProcSubset=pid: such a process cannot record in which boot it ran."""
    script = 'mount -t proc -o subset=pid proc /proc && exec "$0" never'
    words = ["-m", "sh", "-c", script, victim("dies")]
    if subprocess.run(["unshare", *words[:-1], "true"], capture_output=True).returncode != 0:
        pytest.skip("no such mount here")
    process = preload.start("unshare", *words, stdin=subprocess.PIPE).once("ready")
    assert oomrec("recover", "--unknown").exit_code == 1  # it lives
    assert sessions_in(preload)
    process.kill()
    run = preload.finish(process)
    assert oomrec("recover", "--unknown").exit_code == 0
    evidence = oomrec.json("show", run.only_bundle())["verdict"]["evidence"]
    assert not any("rebooted" in line for line in evidence), evidence


def test_quiet(preload, oomrec, victim):
    """For epilogs: says nothing, and does not fail if there is nothing to do."""
    quiet = oomrec("recover", "--quiet")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    run = killed(preload, victim, "never")
    quiet = oomrec("recover", "--quiet", "--unknown")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    assert run.only_bundle()


@pytest.mark.parametrize("way", ["never", "waits"])
def test_a_reader_that_died_before_it_removed_the_recording_leaves_one_bundle(
    preload, oomrec, victim, tmp_path, way
):
    """As if it had been killed: all is as it left it, and the recording is still there."""
    log = tmp_path / "kernel.log"
    oomrec.environment["OOMREC_KERNEL_LOG"] = str(log)
    process = started(preload, victim, way)
    report_oom_kill(log, process.pid, "dies")
    process.kill()
    process.wait()
    (session,) = sessions_in(preload)
    copy = shutil.copy2(session, tmp_path)
    assert oomrec("recover").exit_code == 0
    before = {path: path.read_bytes() for path in preload.dump_dir.rglob("*.json")}
    assert not session.exists()
    shutil.copy2(copy, session)
    assert oomrec("recover").exit_code == 0
    assert not session.exists()
    assert {path: path.read_bytes() for path in preload.dump_dir.rglob("*.json")} == before


def test_bundles_that_retention_deletes_again_are_counted(preload, oomrec, victim):
    for _ in range(4):
        killed(preload, victim, "never")
    run = oomrec("recover", "--unknown", "--json", env={"OOMREC_MAX_DUMPS": "3"}, exits=0)
    assert sorted(run.json()["bundles"]) == sorted(map(str, preload.dump_dir.glob("oom_*")))
    assert len(run.json()["bundles"]) == 3
    assert "1 of these bundles was deleted again" in run.stderr
