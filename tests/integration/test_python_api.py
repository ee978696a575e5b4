"""The Python package: labels, marks, bundles, figures, limits; recorded, unrecorded, without the library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import SOURCE, metadata
from python_programs import package_environment, programs
from pythons import PACKAGE_PYTHON_VERSIONS

MIB = 1 << 20


@pytest.fixture
def recorded(preload, build_dir):
    return programs(preload, build_dir)


@pytest.fixture
def unrecorded(plain, build_dir):
    """Programs that start unrecorded: the package loads the library."""
    return programs(plain, build_dir)


BASIC = """
    import json, oomrec

    held = []
    with oomrec.context("epoch 3"):
        held.append(bytearray(6 << 20))
        oomrec.mark("after the first")

    @oomrec.context("load")
    def load():
        held.append(bytearray(7 << 20))

    load()
    before = oomrec.last_bundle()
    path = oomrec.dump("asked", {"step": 4, 5: float("nan")})
    usage = oomrec.usage()
    active = oomrec.is_active()
    print(json.dumps({
        "before": before,
        "path": path,
        "last": oomrec.last_bundle(),
        "active": bool(active),
        "missing": active.missing,
        "heap": usage.space("heap").live,
        "peak": usage.peak,
        "rss": usage.rss,
        "limit": usage.limit,
        "limit_kind": usage.limit_kind,
        "headroom": usage.headroom,
    }))
"""


@pytest.mark.parametrize("version", PACKAGE_PYTHON_VERSIONS)
def test_every_python(recorded, oomrec, python, version):
    run = recorded(BASIC, python=python(version), env={"OOMREC_LIMIT": "64G"})
    result = run.json()
    bundle = run.only_bundle()
    assert result["before"] is None and result["path"] == result["last"] == str(bundle)
    assert result["active"] and result["missing"] == ""
    assert 13 * MIB <= result["heap"] <= result["peak"] < 64 * MIB
    assert (result["limit"], result["limit_kind"]) == (64 << 30, "soft")
    assert result["rss"] > 13 * MIB and 0 < result["headroom"] < 64 << 30
    written = metadata(bundle)
    assert (written["reason"], written["context"]) == ("request", "asked")
    assert written["custom_metadata"] == {"step": 4, "5": "nan"}
    shown = oomrec.json("show", bundle)
    labels = {holder["bytes"]: holder["stack"][-1]["function"] for holder in shown["holders"]}
    sizes = {6: "[epoch 3]", 7: "[load]"}
    for mib, label in sizes.items():
        assert [said for size, said in labels.items() if size // MIB == mib] == [label]


@pytest.mark.parametrize("version", PACKAGE_PYTHON_VERSIONS)
def test_every_python_beside_the_recorder(unrecorded, python, version):
    run = unrecorded(BASIC, python=python(version))
    result = run.json()
    assert not result["active"] and "oomrec run" in result["missing"], result["missing"]
    assert result["heap"] == 0 and result["rss"] > 13 * MIB
    assert result["path"] == result["last"] == str(run.only_bundle())
    written = metadata(run.only_bundle())
    assert (written["reason"], written["context"]) == ("request", "asked")
    assert written["custom_metadata"] == {"step": 4, "5": "nan"}


@pytest.mark.parametrize("how", ["run", "preloaded", "loaded"])
def test_disabled_recording_is_reported(oomrec, preload, plain, build_dir, how):
    script = "import oomrec; found = oomrec.is_active(); print(bool(found), found.missing)"
    words = [sys.executable, "-c", script]
    environment = package_environment(build_dir)
    if how == "run":
        run = oomrec("run", "--mode", "off", "--", *words, env=environment)
    else:
        runner = preload if how == "preloaded" else plain
        run = runner(*words, env={**environment, "OOMREC_MODE": "off"})
    assert run.stdout.startswith("False everything: recording is off, by `oomrec run --mode off`")
    assert run.stderr == "" and run.bundles() == []


@pytest.mark.parametrize("library", ["/nowhere/liboomrec.so", "libm.so.6"])
def test_without_the_library_nothing_fails(unrecorded, library):
    run = unrecorded(BASIC, env={"OOMREC_LIBRARY": library})
    result = run.json()
    assert (result["active"], result["path"], result["heap"]) == (False, None, 0)
    assert library in result["missing"] and "OOMREC_LIBRARY" in result["missing"]
    assert result["rss"] > 13 * MIB and run.stderr == "" and run.bundles() == []


TORCH = """
    import sys, types
    asked = []
    class Cuda:
        def is_initialized(self): return True
        def device_count(self): return 3
        def memory_reserved(self, ordinal): return (0, 6 << 30, 2 << 30)[ordinal]
        def memory_allocated(self, ordinal): return (0, 5 << 30, 1 << 30)[ordinal]
        def mem_get_info(self, ordinal):
            asked.append(ordinal)
            if ordinal == 2 and sys.argv[1:] == ["lost"]: raise RuntimeError("device lost")
            return 10 << 30, 24 << 30
        def get_device_name(self, ordinal): return f"Model {ordinal}"
    sys.modules["torch"] = types.SimpleNamespace(cuda=Cuda(), version=types.SimpleNamespace(hip=None))
    import oomrec
    for device in oomrec.usage().devices:
        print(device.kind, device.ordinal, device.name, device.total >> 30, device.free >> 30, device.used >> 30)
    print(set(asked), oomrec.usage().space("torch").live >> 30)
"""


def test_torch_device_figures_without_the_recorder(unrecorded):
    run = unrecorded(TORCH)
    assert run.stdout.splitlines() == [
        "cuda 1 Model 1 24 10 14",
        "cuda 2 Model 2 24 10 14",
        "{1, 2} 6",
    ], str(run)
    lost = unrecorded(TORCH, "lost")
    assert lost.stdout.splitlines()[0] == "cuda 1 Model 1 24 10 14" and lost.exit_code == 0


def test_usage_agrees_with_the_system(recorded):
    run = recorded(
        """
        import oomrec
        before = oomrec.usage()
        block = bytearray(64 << 20)
        held = oomrec.usage()
        del block
        after = oomrec.usage()
        grown = held.space("heap").live - before.space("heap").live
        resident = next(int(l.split()[1]) << 10 for l in open("/proc/self/status") if "VmRSS" in l)
        print(grown >> 20, (held.space("heap").live - after.space("heap").live) >> 20)
        # The peak may miss up to 64 KiB that a thread has not published.
        print(after.peak > held.live - (64 << 10) > before.live, abs(held.rss - before.rss) >> 20)
        print(abs(after.rss - resident) < 8 << 20, after.limit, after.headroom)
        print(after.space("heap").allocated - before.space("heap").allocated >> 20)
        print(after.space("cuda"), type(hash(after)).__name__)
        """
    )
    lines = run.stdout.splitlines()
    assert lines[0] == "64 64" and lines[1] == "True 64", str(run)
    assert lines[2].startswith("True ") and lines[3] == "64", str(run)
    assert lines[4].startswith("SpaceUsage(name='cuda', live=0,") and lines[4].endswith(" int")


def test_a_limit_is_set_changed_and_lifted(recorded):
    run = recorded(
        """
        import oomrec
        def ask():
            try:
                return len(bytearray(48 << 20)) >> 20
            except MemoryError:
                return "refused"
        for limit in ("32M", 40 << 20, "1G", None, "0.03125 GiB", 0):
            oomrec.set_limit(limit)
            print(ask(), oomrec.usage().limit_kind == "soft")
        for wrong in ("much", -1, True, 1.5, 1 << 64):
            try:
                oomrec.set_limit(wrong)
            except (TypeError, ValueError) as error:
                print(type(error).__name__, error)
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    assert run.stdout.splitlines() == [
        "refused True",
        "refused True",
        "48 True",
        "48 False",
        "refused True",
        "48 False",
        "ValueError 'much' is not a size: write 512M, 8G or a number of bytes",
        "ValueError -1 bytes is out of range: a limit is from 0 to 2**64 - 1",
        "TypeError True is not a size: write 512M, 8G or a number of bytes",
        "TypeError 1.5 is not a size: write 512M, 8G or a number of bytes",
        "ValueError 18446744073709551616 bytes is out of range: a limit is from 0 to 2**64 - 1",
    ], str(run)


LABELLED = """
    import asyncio, json, sys, threading, oomrec

    held = {}
    def hold(name, mib):
        held[name] = bytearray(mib << 20)

    @oomrec.context("generator")
    def generated():
        hold("in the generator", 3)
        given = yield "first"
        hold("in the generator again", 4)
        try:
            yield given
        except ValueError:
            hold("thrown into it", 5)
        return "end"

    @oomrec.context("task")
    async def task():
        hold("in the task", 6)
        await asyncio.sleep(0.01)
        hold("in the task again", 7)

    @oomrec.context("stream")
    async def stream():
        hold("in the stream", 8)
        try:
            given = yield 1
            hold("in the stream again", 9)
            yield given
        finally:
            hold("closing the stream", 10)

    def whole(generator):
        assert next(generator) == "first"
        hold("beside the generator", 11)
        assert generator.send("given") == "given"
        try:
            generator.throw(ValueError())
        except StopIteration as stop:
            assert stop.value == "end"

    async def main():
        running = asyncio.ensure_future(task())
        await asyncio.sleep(0)
        hold("beside the task", 12)
        await running
        items = stream()
        assert await items.asend(None) == 1
        hold("beside the stream", 13)
        assert await items.asend("given") == "given"
        await items.aclose()

    class Method:
        @oomrec.context("method")
        def call(self): hold("in a method", 14)
        @oomrec.context("static")
        @staticmethod
        def static(): hold("in a static method", 15)

    whole(generated())
    asyncio.run(main())
    Method().call()
    Method.static()
    with oomrec.context("outer"):
        with oomrec.context("inner"):
            hold("nested", 16)
        thread = threading.Thread(target=hold, args=("in a thread without labels", 17))
        thread.start()
        thread.join()
    oomrec.dump()
"""


def test_labels_apply_where_the_body_runs(recorded, oomrec):
    run = recorded(LABELLED, exits=0)
    shown = oomrec.json("show", run.only_bundle())
    expected = {
        3: "[generator]", 4: "[generator]", 5: "[generator]", 6: "[task]", 7: "[task]",
        8: "[stream]", 9: "[stream]", 10: "[stream]", 11: None, 12: None, 13: None,
        14: "[method]", 15: "[static]", 16: "[inner]", 17: "[outer]",
    }  # fmt: skip
    label = {}
    for holder in shown["holders"]:
        if any(frame["function"] == "hold" for frame in holder["stack"]):
            functions = [frame["function"] for frame in holder["stack"]]
            label[holder["bytes"] // MIB] = next(
                (name for name in functions if name and name[0] == "["), None
            )
    assert label == expected


def test_decorated_functions_keep_their_nature(recorded):
    """Names, kinds and arguments are kept. Decorating anything else raises."""
    run = recorded(
        """
        import asyncio, functools, inspect, oomrec
        async def co(a, b=2): "says"; return a + b
        def gen(a): yield a
        async def agen(a): yield a
        def plain(a, *, b): return a, b
        class Callable:
            async def __call__(self): return 7
        for make in (oomrec.capture_oom("x"), oomrec.context("x")):
            made = make(co)
            assert inspect.iscoroutinefunction(made) and made.__doc__ == "says"
            assert str(inspect.signature(made)) == "(a, b=2)" and asyncio.run(made(1)) == 3
            assert inspect.isgeneratorfunction(make(gen)) and list(make(gen)(4)) == [4]
            assert inspect.isasyncgenfunction(make(agen))
            assert make(plain)(1, b=2) == (1, 2) and make(plain).__wrapped__ is plain
            assert make(functools.partial(max, 3))(2) == 3
            assert asyncio.run(make(Callable())()) == 7
            try:
                make(int)
            except TypeError as error:
                print(error)
        try:
            oomrec.capture_oom(plain)
        except TypeError as error:
            print(error)
        """
    )
    said = "functions can be decorated, not <class 'int'>: decorate its methods\n"
    called = "capture_oom is called to decorate: write @oomrec.capture_oom()\n"
    assert run.stdout == said + said + called, str(run)


def test_labels_of_every_kind_of_text(recorded, oomrec):
    run = recorded(
        r"""
        import oomrec
        held = []
        for mib, label in enumerate(["", "é " * 5000, "\ud800", "a\0b", 7, None], 3):
            with oomrec.context(label):
                oomrec.mark(label)
                held.append(bytearray(mib << 20))
        print(oomrec.dump("\ud800\0 reason"))
        """
    )
    assert run.exit_code == 0 and run.stderr.count("Traceback") == 0, str(run)
    assert metadata(run.only_bundle())["context"] == "\\ud800\\0 reason"
    shown = oomrec.json("show", run.only_bundle())
    labels = {
        holder["bytes"] // MIB: holder["stack"][-1]["function"] for holder in shown["holders"]
    }
    assert labels[6] == "[a\\0b]" and labels[7] == "[7]"


def test_a_forked_child_has_a_recording_of_its_own(recorded):
    run = recorded(
        """
        import os, sys, oomrec
        with oomrec.context("parent"):
            child = os.fork()
            with oomrec.context("child" if child == 0 else "still parent"):
                held = bytearray(5 << 20)
                oomrec.dump("child" if child == 0 else "parent")
            path = oomrec.last_bundle()
            if child == 0:
                os._exit(0 if path else 3)
            assert os.waitpid(child, 0)[1] == 0
            assert path == oomrec.last_bundle()
        """
    )
    assert run.exit_code == 0, str(run)
    assert run.bundle_at("child") != run.bundle_at("parent")
    pids = [
        json.loads((run.bundle_at(who) / "manifest.json").read_text())["pid"]
        for who in ("child", "parent")
    ]
    assert pids[1] == run.pid != pids[0]


def test_a_full_disk(recorded):
    """No bundle and no exception: the program continues."""
    run = recorded(
        """
        import oomrec, resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, -1))
        print(oomrec.dump("where to"), oomrec.last_bundle())
        """
    )
    assert run.stdout == "None None\n" and run.exit_code == 0, str(run)
    assert run.bundles() == [] and "File too large" in run.stderr


def test_no_thread_without_a_callback(recorded):
    run = recorded(
        """
        import os, threading, oomrec
        def count(): return len(os.listdir("/proc/self/task")), len(threading.enumerate())
        watch = oomrec.watch_exceptions()
        with oomrec.capture_oom(), oomrec.context("a"):
            oomrec.mark("b"); oomrec.dump("c"); oomrec.usage(); oomrec.set_limit("8G")
        watch.cancel()
        print(*count())
        near = oomrec.on_near_limit(print)
        print(*count(), threading.enumerate()[-1].name, threading.enumerate()[-1].daemon)
        near.cancel()
        import time
        until = time.monotonic() + 30
        while count() != (1, 1) and time.monotonic() < until: time.sleep(0.001)
        print(*count())
        """
    )
    assert run.stdout == "1 1\n2 2 oomrec True\n1 1\n", str(run)


def test_importing_costs_little(unrecorded):
    """No session, no thread, no library, and none of the slow modules."""
    run = unrecorded(
        """
        import os, sys
        before = set(sys.modules)
        import oomrec
        later = {"inspect", "asyncio", "dataclasses", "ctypes", "torch", "numpy", "shutil"} - before
        print(sorted(later & set(sys.modules)), os.listdir(os.environ["OOMREC_SESSION_DIR"]))
        print("liboomrec" in open("/proc/self/maps").read())
        """
    )
    assert run.stdout == "[] []\nFalse\n", str(run)


def test_the_command_by_python_m(unrecorded, plain, build_dir):
    environment = {"PYTHONPATH": SOURCE / "tools" / "python"}
    version = plain(build_dir / "oomrec", "--version").stdout
    command = {**environment, "OOMREC_COMMAND": build_dir / "oomrec"}
    assert plain(sys.executable, "-m", "oomrec", "--version", env=command).stdout == version
    missing = plain(sys.executable, "-m", "oomrec", env={**environment, "PATH": "/nowhere"})
    assert missing.exit_code == 127 and "OOMREC_COMMAND" in missing.stderr


def test_a_subinterpreter(recorded, python):
    """Without ctypes nothing can be recorded, and nothing fails."""
    run = recorded(
        """
        import _xxsubinterpreters as interpreters, os
        text = '''
        import oomrec
        with oomrec.context("a"), oomrec.capture_oom("b"):
            oomrec.mark("c")
        print(type(oomrec.is_active().missing).__name__, oomrec.usage().rss > 0, flush=True)
        '''
        import textwrap
        one = interpreters.create()
        interpreters.run_string(one, textwrap.dedent(text))
        """,
        python=python("3.12"),
    )
    assert run.stdout == "str True\n" and run.exit_code == 0, str(run)


def test_the_pages_match_the_docstrings():
    checked = subprocess.run([sys.executable, SOURCE / "scripts" / "python-reference", "--check"])
    assert checked.returncode == 0


def test_the_pages_name_everything():
    import oomrec

    pages = "".join(page.read_text() for page in (SOURCE / "docs" / "python").glob("*.md"))
    for name in oomrec.__all__:
        assert f"### `{name}" in pages
        assert getattr(oomrec, name) is not None
    assert json.dumps(sorted(oomrec.__all__)) == json.dumps(sorted(set(oomrec.__all__)))
