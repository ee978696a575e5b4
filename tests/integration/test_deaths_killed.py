"""Killed processes: by the kernel for memory, close to a limit, by another process."""

import json
import os
import re
import signal
import subprocess

import pytest
from conftest import built, children_cpu_s, written
from consistency import contradictions
from kernel_log import report_oom_kill
from watching import IN_FIRST_PID_NAMESPACE

pytestmark = pytest.mark.usefixtures("without_warning")
MIB = 1 << 20
LIMIT = 64 * MIB


@pytest.fixture
def cgroup(cgroup):
    return cgroup(str(LIMIT))


def started(runner, words, cgroup=None, **options) -> subprocess.Popen:
    """A program that holds 24 MiB, has announced it, and grows on request."""
    if cgroup is not None:
        options["preexec_fn"] = cgroup.enter
    process = runner.start(*words, stdin=subprocess.PIPE, **options).once("ready")
    return process


def shown_of(oomrec, run) -> dict:
    """`show` of the only bundle, which agrees with its files."""
    bundle = run.only_bundle()
    shown = oomrec.json("show", bundle)
    metadata = json.loads((bundle / "metadata.json").read_text())
    for key in ("verdict", "outcome", "limit"):
        assert metadata[key] == shown[key]
    assert contradictions(shown) == []
    assert json.loads((bundle / "manifest.json").read_text())["verdict"] == shown["verdict"]["code"]
    return shown


@pytest.mark.needs_cgroup_write
def test_a_program_has_the_name_by_which_it_was_started(oomrec, victim, cgroup, tmp_path):
    """As redis-server, which is a link to redis-check-rdb on Debian."""
    link = tmp_path / "my-server"
    link.symlink_to(victim("grows"))
    process = started(oomrec, ["run", "--", link], cgroup)
    run = oomrec.finish(process, input="go on\n")
    assert re.search(r"^oomrec: my-server \(pid \d+\) was killed by the kernel", run.stderr, re.M)
    shown = shown_of(oomrec, run)
    assert shown["verdict"]["summary"].startswith("my-server was killed by the kernel")
    assert shown["process"]["executable"].endswith("/grows")
    (listed,) = oomrec.json("ls")["bundles"]
    assert listed["program"] == "my-server"


# As redis-server with --daemonize yes: its arguments are its state by the time that it forks.
TITLED = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
  memset(words[0], ' ', strlen(words[0]));
  strcpy(words[0], "my *:1");
  if (fork() == 0) {
    memset(malloc(64 << 20), 1, 64 << 20);
    raise(SIGKILL);
  }
  wait(NULL);
  return count - 1;
}
"""


def test_a_forked_server_has_the_name_by_which_it_was_started(oomrec, tmp_path):
    link = tmp_path / "my-server"
    link.symlink_to(built(tmp_path, "titled", TITLED))
    run = oomrec("run", "--", link, exits=0)
    assert re.search(r"^oomrec: my-server \(pid \d+\) was killed by SIGKILL", run.stderr, re.M), run
    assert [row["program"] for row in oomrec.json("ls")["bundles"]] == ["my-server"]


@pytest.mark.needs_cgroup_write
def test_the_limit_of_the_kernels_report_where_the_cgroup_cannot_be_read(
    oomrec, plain, build_dir, victim, cgroup
):
    """As in a chroot or a container without /sys/fs/cgroup."""
    hides = "mount -t tmpfs none /sys/fs/cgroup && exec $0 run -- $1"
    words = ["unshare", "-m", "sh", "-c", hides, build_dir / "oomrec", victim("grows")]
    process = started(plain, words, cgroup, env=oomrec.environment)
    shown = shown_of(oomrec, plain.finish(process, input="go on\n"))
    if (shown["cgroup_account"] or {}).get("source") != "kernel_log":
        pytest.skip("the kernel reports ten kills in five seconds, and there were more")
    assert shown["verdict"]["summary"].startswith(
        "grows was killed by the kernel: its memory cgroup had reached its limit of 64.0 MiB"
    )
    assert shown["limit"]["kind"] == "cgroup" and shown["limit"]["bytes"] == LIMIT
    advice = " ".join(hint["text"] for hint in shown["advice"])
    assert "give the cgroup" in advice and "machine" not in advice, advice


def evidence_of(shown: dict) -> str:
    return "\n".join(shown["verdict"]["evidence"])


@pytest.mark.needs_cgroup_write
def test_the_kernel_killed_it_under_run(oomrec, victim, cgroup):
    process = started(oomrec, ["run", "--", victim("grows")], cgroup)
    pid = process.child()
    run = oomrec.finish(process, input="go on\n")
    assert run.exit_code == 137 and cgroup.kills() == 1
    shown = shown_of(oomrec, run)
    assert (shown["verdict"]["code"], shown["outcome"]) == ("cgroup_oom_kill", "oom_killed"), shown
    assert shown["trigger"] == "killed" and shown["process"]["pid"] == pid
    # The kernel names a process by its id in the first namespace.
    named = str(pid) if IN_FIRST_PID_NAMESPACE else r"\d+"
    assert re.search(rf"Killed process {named} \(grows\)", evidence_of(shown))
    assert "oom_killed: the kernel's OOM killer killed the program" in oomrec("show").stdout


@pytest.mark.needs_cgroup_write
def test_the_limit_was_set_while_it_ran(oomrec, victim, cgroup):
    """As Kubernetes does in place. Without the kernel's log, the limit is read again at the end."""
    log = {"OOMREC_KERNEL_LOG": "/nowhere"}
    process = started(oomrec, ["run", "--", victim("grows")], cgroup, env=log)
    cgroup.set_limit(48 * MIB)
    run = oomrec.finish(process, input="go on\n")
    assert cgroup.kills() == 1
    shown = shown_of(oomrec, run)
    limit = shown["limit"]
    assert (limit["kind"], limit["bytes"]) == ("cgroup", 48 * MIB), shown["verdict"]
    assert "limit of 64.0 MiB" not in json.dumps(shown["verdict"]) + json.dumps(shown["advice"])


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_pid_namespace
def test_the_kernel_killed_it_in_another_pid_namespace(preload, oomrec, victim, cgroup, library):
    """Its pid differs from the log's, and /proc does not show it. The mutex in its recording does."""
    command = ["unshare", "-pf", "--mount-proc", "env", f"LD_PRELOAD={library}"]
    process = started(preload, [*command, victim("grows")], cgroup, env={"LD_PRELOAD": None})
    run = preload.finish(process, input="go on\n")
    assert cgroup.kills() == 1
    assert oomrec("recover").exit_code == 0
    shown = shown_of(oomrec, run)
    assert shown["process"]["pid"] == 1
    # The line is matched by the recorded cgroup. Without one, or if the kernel left out its report
    # because it kills often, it cannot be attributed.
    honest = ("cgroup_oom_kill", "killed_near_limit", "unknown")
    assert shown["verdict"]["code"] in honest, shown["verdict"]


@pytest.mark.needs_cgroup_write
def test_a_bundle_exists_within_a_second_of_the_kill(oomrec, victim, cgroup):
    process = started(oomrec, ["run", "--", victim("grows")], cgroup)
    process.child()  # it has started
    process.tell("go on\n")
    before = children_cpu_s()
    run = oomrec.finish(process)
    assert children_cpu_s() - before < 1  # of the launcher, and of the program that it waited for
    run.only_bundle()


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("way", ["run", "recover"])
def test_an_intermediate_warning_does_not_hide_the_kill(oomrec, preload, victim, cgroup, way):
    """A failure, a warning, a kill after further growth: each has its bundle; the kill is the cause."""
    warned = {"OOMREC_WARN": "95"}
    words = [victim("grows"), "refused"]
    if way == "run":
        process = started(oomrec, ["run", "--", *words], cgroup, env=warned)
        run = oomrec.finish(process, input="go on\n")
    else:
        process = started(preload, words, cgroup, env=warned)
        run = preload.finish(process, input="go on\n")
        oomrec("recover")
    assert run.exit_code == 137
    (failure,) = run.bundles_for("allocation_failed")
    (warning,) = run.bundles_for("near_limit")
    (killed,) = run.bundles_for("killed")
    assert run.bundles() == sorted([failure, warning, killed])
    pages = [oomrec.json("show", bundle) for bundle in (failure, warning, killed)]
    assert [(page["verdict"]["code"], page["outcome"]) for page in pages] == [
        ("request_too_large", "recovered"),
        ("near_limit", "oom_killed"),
        ("cgroup_oom_kill", "oom_killed"),
    ]
    assert oomrec.json("show")["bundle"] == str(killed)


def test_the_sender_of_the_signal_is_named(oomrec, victim):
    process = started(oomrec, ["run", "--", victim("grows")])
    process.terminate()  # the launcher passes it on
    run = oomrec.finish(process, exits=128 + signal.SIGTERM)
    shown = shown_of(oomrec, run)
    assert shown["verdict"]["code"] == "killed_externally"
    assert f"the signal came from process {os.getpid()}" in shown["verdict"]["evidence"]


def test_the_sender_of_another_signal_is_not_named(oomrec):
    # A handler must not print: it may have interrupted a print.
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'got it\\n'))\n"
        "held = bytearray(24 << 20)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    process = started(oomrec, ["run", "--", "python3", "-c", script])
    process.terminate()
    assert process.stdout.readline() == b"got it\n"
    os.kill(process.child(), signal.SIGKILL)
    shown = shown_of(oomrec, oomrec.finish(process))
    assert shown["outcome"] == "signal 9" and "came from process" not in evidence_of(shown)


def test_a_recording_that_cannot_be_moved_is_explained_too(preload, oomrec, victim, tmp_path):
    log = tmp_path / "kernel.log"
    process = started(preload, [victim("grows")])
    process.kill()
    preload.finish(process)
    report_oom_kill(log, process.pid, "grows")
    (session,) = preload.session_dir.glob("**/*.session")
    shown = oomrec.json("show", session, env={"OOMREC_KERNEL_LOG": log})
    assert (shown["verdict"]["code"], shown["outcome"]) == ("system_oom_kill", "oom_killed")


# As on Debian 13 (systemd 257): a user reads the journal, but not /dev/kmsg.
JOURNALCTL = """#!/bin/sh
case "$*" in *_TRANSPORT=kernel*) ;; *) exit ;; esac
date '+%Y-%m-%dT%H:%M:%S+00:00 machine kernel: Out of memory: Killed process PID (grows) total-vm:30208kB,\
 anon-rss:24576kB, file-rss:2944kB, shmem-rss:128kB, UID:1000 pgtables:92kB oom_score_adj:0'
"""


def test_the_kernels_log_is_in_the_journal(preload, build_dir, victim, tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no permission to mount here")
    process = started(preload, [victim("grows")])
    process.kill()
    preload.finish(process)
    (session,) = preload.session_dir.glob("**/*.session")
    journalctl = written(tmp_path / "journalctl", JOURNALCTL.replace("PID", str(process.pid)))
    journalctl.chmod(0o755)
    script = (
        "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount -t tmpfs none /var/log &&"
        " { [ ! -e /dev/kmsg ] || mount --bind /dev/null /dev/kmsg; } &&"
        f' PATH="{tmp_path}:$PATH" TZ=UTC exec "{build_dir}/oomrec" show --json {session}'
    )
    shown = json.loads(subprocess.check_output(["unshare", "-m", "sh", "-c", script]))
    assert shown["verdict"]["code"] == "system_oom_kill", shown["verdict"]
    assert f"Out of memory: Killed process {process.pid} (grows)" in evidence_of(shown)


def test_a_program_that_exits_was_not_killed(oomrec, victim, tmp_path):
    """Even if the kernel's log has a kill of an earlier process with its pid."""
    log = tmp_path / "kernel.log"
    process = started(
        oomrec, ["run", "--", victim("grows"), "ends"], env={"OOMREC_KERNEL_LOG": log}
    )
    report_oom_kill(log, process.child(), "grows")
    run = oomrec.finish(process, input="go on\n")
    assert run.exit_code == 3 and run.bundles() == []


REFUSED_THEN_ENDED = """
import os, signal, sys, time
kept = []
try:
    while True:
        kept.append(bytearray(1_000_000))
except MemoryError:
    if sys.argv[1] == "frees":
        del kept[30:]
time.sleep(2)
os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize("then", ["keeps", "frees"])
def test_memory_is_not_ruled_out_near_a_soft_limit_that_refused(oomrec, python, tmp_path, then):
    script = written(tmp_path / "refused.py", REFUSED_THEN_ENDED)
    run = oomrec("run", "--limit", "100M", "--", python(), script, then, exits=128 + signal.SIGTERM)
    said = [line for line in run.stderr.splitlines() if "SIGTERM" in line]
    assert ("not for lack of memory" in "".join(said)) == (then == "frees"), str(run)
