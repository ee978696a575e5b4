"""show, stats, tree and ls on one real bundle: JSON contracts, text, damaged recordings."""

import os
import random
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import distinct_versions
from kernel_log import report_oom_kill

LEAK = """\
kept = []
def make_batch():
    return bytearray(20 << 20)
while True:
    kept.append(make_batch())
"""
FRAME = {"kind", "function", "file", "line", "module", "build_id", "offset", "inlined", "guessed"}


@pytest.fixture
def bundle(oomrec, tmp_path):
    (tmp_path / "leak.py").write_text(LEAK)
    run = oomrec("run", "--limit", "128M", "--", "python3", "leak.py")
    assert run.exit_code == 1 and "MemoryError" in run.stderr, str(run)
    return run.only_bundle()


def test_the_json_contracts_hold(oomrec, bundle):
    """Every key is present, with the type that docs/json.md gives."""
    show = oomrec.json("show")
    assert list(show)[0] == "schema_version" and show["schema_version"] == 2
    assert show["bundle"] == str(bundle) and show["trigger"] == "soft_limit"
    assert show["verdict"]["code"] == "soft_limit" and show["limit"]["bytes"] == 128 << 20
    assert show["process"]["argv"][-1] == "leak.py" and isinstance(show["process"]["pid"], int)
    assert show["request"]["error"] == "ENOMEM" and show["request"]["size"] > 20 << 20
    holder = show["holders"][0]
    assert 0 < holder["share"] <= 1 and holder["count"] == 6
    assert holder["bytes"] >= 6 * (20 << 20)
    python = [frame for frame in holder["stack"] if frame["kind"] == "python"]
    assert (python[0]["function"], python[0]["line"]) == ("make_batch", 3)
    for frame in holder["stack"] + show["request"]["stack"]:
        assert set(frame) == FRAME
        assert frame["function"] is None or isinstance(frame["function"], str)

    stats = oomrec.json("stats")
    assert stats["peak_bytes"] >= stats["live_bytes"] >= 6 * (20 << 20)
    assert stats["top_by_bytes"][0]["function"] == "make_batch"
    assert stats["apis"]["malloc"]["count"] > 0 or stats["apis"]["calloc"]["count"] > 0
    assert all(
        set(bucket) == {"from", "to", "count", "bytes"} for bucket in stats["size_histogram"]
    )

    tree = oomrec.json("tree", "--space", "heap", "--at", "end")
    assert (tree["space"], tree["at"]) == ("heap", "end")
    assert set(tree["root"]) == {"function", "file", "line", "bytes", "count", "children"}
    assert tree["root"]["children"][0]["bytes"] >= 6 * (20 << 20)

    (listed,) = oomrec.json("ls")["bundles"]
    assert listed["bundle"] == str(bundle) and listed["outcome"] == "exited 1"


def test_ways_to_name_a_bundle(oomrec, tmp_path):
    """A file, a process by pid or program. An empty argument is not the same as none."""
    (tmp_path / "held_here.py").write_text("import sys; print(1, flush=True); sys.stdin.read()")
    process = oomrec.start(
        "run", "--quiet", "--", sys.executable, tmp_path / "held_here.py", stdin=-1
    )
    process.stdout.readline()
    held = oomrec.json("show", "held_here.py")["process"]
    assert held["argv"][-1] == str(tmp_path / "held_here.py")
    assert oomrec.json("show", str(held["pid"]))["process"] == held
    said = oomrec("show", held["pid"]).stdout
    assert said.startswith("running\n  no request was refused so far\n"), said
    assert "\nread " in said and "trigger" not in said
    assert oomrec.json("show", oomrec.json("dump", "held_here.py")["bundle"])["process"] == held

    empty = oomrec("leaks", "")
    assert empty.exit_code == 2 and "an empty word was given" in empty.stderr
    script = oomrec("show", tmp_path / "held_here.py")
    assert script.exit_code == 2 and "is not an oomrec recording" in script.stderr
    nothing = oomrec("show", "nowhere")
    assert nothing.exit_code == 2 and "cannot read nowhere: No such file" in nothing.stderr


@pytest.mark.parametrize("command", ["show", "stats", "top"])
def test_a_dump_directory_names_its_newest_bundle(oomrec, bundle, tmp_path, command):
    (tmp_path / "jobs of today").mkdir()
    dumps = shutil.copytree(bundle.parent, tmp_path / "jobs of today" / "oom_dumps")
    newest = shutil.copytree(bundle, bundle.with_name(bundle.name[:-3] + "010"))
    for named in ("oom_dumps", "oom_dumps/", tmp_path / "oom_dumps"):
        refused = oomrec(command, named)
        assert (refused.exit_code, refused.stdout) == (2, "")
        what, advice = refused.stderr.splitlines()
        assert what == f"oomrec {command}: {named} is a directory of 2 bundles"
        show, ls = advice.strip().removeprefix("The newest: oomrec ").split("; all: oomrec ")
        assert oomrec.json(*shlex.split(show))["bundle"] == str(newest)
        assert len(oomrec.json(*shlex.split(ls))["bundles"]) == 2

    above = oomrec(command, "./jobs of today")
    what, advice = above.stderr.splitlines()
    assert what.endswith("./jobs of today/oom_dumps is a directory of 1 bundle")
    assert f"oomrec show './jobs of today/oom_dumps/{bundle.name}'" in advice
    shutil.rmtree(dumps)
    assert "contains no recording.oomrec" in oomrec(command, "./jobs of today").stderr


def test_a_dump_directory_is_searched_after_recovery(preload, oomrec, victim):
    """The newest bundle is of the process that was killed last, even if nobody has asked since."""
    process = preload.start(victim("dies"), "never", stdin=subprocess.PIPE).once("ready")
    log = preload.directory / "kernel.log"
    report_oom_kill(log, process.pid, "dies")
    process.kill()
    process.wait()
    preload.dump_dir.mkdir(exist_ok=True)
    refused = oomrec("show", "oom_dumps", env={"OOMREC_KERNEL_LOG": log})
    assert "oom_dumps is a directory of 1 bundle" in refused.stderr, str(refused)


def test_a_process_that_has_ended_has_its_bundle_named(oomrec, bundle):
    """It is not opened: another process may have had that pid."""
    pid = oomrec.json("show")["process"]["pid"]
    newest = shutil.copytree(bundle, bundle.with_name(bundle.name[:-3] + "010"))
    created = oomrec.json("ls")["bundles"][0]["created_at_utc"]
    for command in ("show", "stats", "leaks", "top", "timeline", "dump"):
        refused = oomrec(command, pid)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.splitlines() == [
            f"oomrec {command}: process {pid} has ended",
            f"  Its newest bundle, of {created}: oomrec show {newest}",
        ]
    for unknown in (2**22 - 1, 999999999):
        refused = oomrec("show", unknown)
        assert refused.exit_code == 1 and f"there is no process {unknown}" in refused.stderr


def test_a_long_command_line_does_not_hide_the_pid(oomrec):
    words = ["python3", "-c", "bytearray(1 << 40)", "x" * 5000]
    run = oomrec("run", "--quiet", "--", *words)
    (line,) = (line for line in oomrec("show").stdout.splitlines() if line.startswith("process "))
    pid = oomrec.json("show", run.only_bundle())["process"]["pid"]
    assert len(line) <= 100 and line.endswith(f"… (pid {pid})")


def test_the_hint_is_a_valid_shell_command(oomrec, tmp_path):
    directory = tmp_path / "my dümps' place"
    words = [
        "--dump-dir",
        directory,
        "--",
        "python3",
        "-c",
        "bytearray(1 << 40)",
    ]
    run = oomrec("run", *words)
    (hint,) = (line for line in run.stderr.splitlines() if "read it with: " in line)
    (bundle,) = directory.iterdir()
    assert shlex.split(hint.partition("read it with: ")[2]) == [
        "oomrec",
        "show",
        str(bundle.relative_to(tmp_path)),
    ]


def test_the_newest_of_one_second_is_the_one_with_the_highest_number(oomrec, bundle):
    """Bundles of devices and of the CPU share one counter."""
    older = bundle.with_name(bundle.name.replace("oom_cpu", "oom_cuda"))
    newer = bundle.with_name(bundle.name[:-3] + "010")
    shutil.copytree(bundle, older)
    bundle.rename(newer)
    assert oomrec.json("show")["bundle"] == str(newer)
    assert [row["bundle"] for row in oomrec.json("ls")["bundles"]] == [str(newer), str(older)]


def test_the_pages_fit_and_report_what_happened(oomrec, bundle):
    for command in (
        ["show"],
        ["show", "--full"],
        ["stats"],
        ["tree"],
        ["tree", "--top-down"],
        ["ls"],
    ):
        page = oomrec(*command)
        assert page.exit_code == 0 and page.stderr == ""
        assert max(map(len, page.stdout.splitlines())) <= 100
    shown = oomrec("show", bundle).stdout
    assert shown.startswith("soft_limit (proven)\n")
    assert "leak.py:3 make_batch" in shown and "exited 1" in shown
    assert "oomrec run --python-objects" in shown


WARMS_UP = """\
import os
kept = []
def make_batch():
    return os.urandom(1 << 20)
while True:
    kept.append(make_batch())
"""


@pytest.mark.parametrize("version", distinct_versions(["3.11", "3.12", "3.13"]))
def test_one_source_line_is_one_holder_on_every_interpreter_path(oomrec, python, tmp_path, version):
    """The first calls go through interpreter functions that later calls skip."""
    (tmp_path / "warms_up.py").write_text(WARMS_UP)
    run = oomrec("run", "--limit", "48M", "--mode", "exact", "--", python(version), "warms_up.py")
    bundle = run.bundles()[0]  # printing the traceback may reach the limit again
    show = oomrec.json("show", "--top", "1000", bundle)

    def allocated_in_batch(frames):
        return any(frame["function"] == "make_batch" for frame in frames)

    (batches,) = (row for row in show["holders"] if allocated_in_batch(row["stack"]))
    assert batches == show["holders"][0] and batches["count"] > 30
    assert f"in {batches['count']} blocks, warms_up.py:4 make_batch" in run.stderr
    top = oomrec.json("stats", bundle)["top_by_bytes"][0]
    assert (top["function"], top["bytes"]) == ("make_batch", batches["bytes"])
    (leaf,) = (
        node
        for node in oomrec.json("tree", "--min-percent", "0", bundle)["root"]["children"]
        if node["function"] == "make_batch"
    )
    assert (leaf["bytes"], leaf["count"]) == (batches["bytes"], batches["count"])


MANY = """\
kept = [bytearray(40 << 20)]
for i in range(20):
    exec(f"def small_{i}():\\n return bytearray(1 << 20)\\nkept.append(small_{i}())")
kept.append(bytearray(1 << 30))
"""


def test_lists_have_headings_and_name_their_omissions(oomrec):
    oomrec("run", "--limit", "256M", "--mode", "exact", "--", "python3", "-c", MANY)
    stats = oomrec("stats").stdout
    assert "allocations   allocated\n" in stats and "calls       bytes\n" in stats
    assert "mappings that Python's small objects lie in" in " ".join(stats.split())
    assert stats.count("   allocated     allocations  function\n") == 2

    page, _, notes = oomrec(
        "tree", "--frames", "both", "--min-percent", "5", "--max-depth", "2"
    ).stdout.partition("\nnotes\n")
    assert "branches below 5 % are left out" in notes and "cut after 2 frames" in notes
    rest = page.splitlines()[-1]
    assert rest.endswith("smaller branches")  # 20 MiB, and what the interpreter holds
    assert 25 < float(rest.split()[0]) < 50
    # Their sum is below the minimum size of a branch.
    assert (
        "smaller branches" not in oomrec("tree", "--frames", "both", "--min-percent", "60").stdout
    )
    whole = oomrec("tree", "--frames", "both", "--min-percent", "0", "--max-depth", "500").stdout
    assert "smaller" not in whole and "are left out" not in whole and "are cut" not in whole


DEEP = """\
kept = []
def descend(depth):
    if depth == 0:
        return kept.append(bytearray(20 << 20))
    return descend(depth - 1)
def main():
    while True:
        descend(70)
main()
"""


def test_recursion_and_a_multi_line_program_take_one_line_each(oomrec):
    oomrec("run", "--mode", "exact", "--limit", "64M", "--", "python3", "-c", DEEP)
    lines = oomrec("show").stdout.splitlines()

    holder = lines.index("holders, the largest first") + 1
    stack = "\n".join(lines[holder : holder + 15])
    assert "<string>:4 descend\n" in stack and "<string>:5 descend  × 70\n" in stack
    assert "<string>:8 main\n" in stack and "<string>:9 <module>\n" in stack
    (process,) = (line for line in lines if line.startswith("process "))
    assert "kept = []↵def descend(depth):↵    if" in process
    notes = " ".join(line.strip() for line in lines[lines.index("notes") :])
    assert "percentages are shares of what the blocks of all holders take up" in notes


def test_a_bundle_that_was_not_copied_whole(oomrec, bundle, tmp_path):
    copy = shutil.copytree(bundle, tmp_path / "copy")
    (copy / "recording.oomrec").unlink()
    run = oomrec("show", copy)
    assert run.exit_code == 2 and run.stderr.splitlines() == [
        f"oomrec show: {copy} has no recording.oomrec: it is incomplete",
        "  Copy the whole directory again. Its metadata.json has the verdict.",
    ]


def test_an_empty_search_names_other_directories(preload, oomrec, victim, tmp_path):
    """A recording whose bundles belong elsewhere is not shown, but it is mentioned."""
    elsewhere = tmp_path / "elsewhere"
    process = preload.start(
        victim("dies"), "never", stdin=subprocess.PIPE, env={"OOMREC_DUMP_DIR": elsewhere}
    ).once("ready")
    running = oomrec("show", exits=1)
    assert "1 running process is recorded: `oomrec ls --all` lists" in running.stderr

    process.kill()
    process.wait()
    dead = oomrec("show", exits=1)
    assert dead.stderr.splitlines()[1].strip() == (
        "1 dead process left a recording elsewhere: "
        "`oomrec ls --all` lists them, `oomrec recover --unknown` makes bundles of them."
    )


@pytest.mark.parametrize("hint", [0x10000000, 0])
def test_attempts_with_a_fallback_are_not_denied(oomrec, python, tmp_path, hint):
    """A mapping with an address hint, as garbage collectors ask for; without one it is a refused request."""
    script = tmp_path / "hinted.py"
    script.write_text(
        "import ctypes\nkept = bytearray(20 << 20)\nmap = ctypes.CDLL(None).mmap\n"
        "map.restype = ctypes.c_void_p\n"
        f"assert map(ctypes.c_void_p({hint}), ctypes.c_size_t(1 << 50), 3, 34, -1, ctypes.c_long(0)) == 2**64 - 1\n"
    )
    run = oomrec("run", "--dump-at-exit", "--", python(), script, exits=0)
    page = oomrec("show", run.bundles()[0]).stdout
    assert ("  no request was refused, apart from 1 attempt with a fallback\n" in page) == bool(
        hint
    )
    assert ("from mmap in map: ENOMEM" in page) == (not hint)


@pytest.mark.parametrize("command", ["show", "stats", "tree"])
def test_a_damaged_recording_never_crashes_a_command(oomrec, bundle, tmp_path, command):
    """Cut or with flipped bits: shown, or two lines and exit code 2."""
    whole = (bundle / "recording.oomrec").read_bytes()
    damaged = tmp_path / "damaged"
    shutil.copytree(bundle, damaged)
    chance = random.Random(command)
    rounds = 0
    for _ in range(12):
        data = bytearray(whole[: chance.choice([chance.randrange(len(whole)), len(whole)])])
        for _ in range(chance.randrange(64)):
            if data:
                data[chance.randrange(min(len(data), 65536))] ^= 1 << chance.randrange(8)
        (damaged / "recording.oomrec").write_bytes(data)
        run = oomrec(command, damaged)
        assert run.exit_code in (0, 2), str(run)
        assert run.exit_code == 0 or len(run.stderr.splitlines()) == 2
        rounds += 1
    assert rounds == 12


@pytest.mark.parametrize("command", ["show", "stats", "tree"])
def test_a_truncated_recording_is_rejected(oomrec, bundle, tmp_path, command):
    """What is left of it would be misleading."""
    copy = tmp_path / "cut"
    shutil.copytree(bundle, copy)
    recording = copy / "recording.oomrec"
    os.truncate(recording, recording.stat().st_size - 1)

    run = oomrec(command, copy)

    assert run.exit_code == 2 and "is cut short" in run.stderr
