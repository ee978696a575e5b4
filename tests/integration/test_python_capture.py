"""capture_oom and watch_exceptions: the exception is in the bundle of its failure, and passes unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import schemas
from conftest import PACKAGE_PYTHON_VERSIONS, metadata
from python_programs import programs

MIB = 1 << 20


@pytest.fixture
def recorded(preload, build_dir):
    """Programs under the recorder, with a soft limit of 128 MiB."""
    run = programs(preload, build_dir)
    return lambda text, *args, env=None, **options: run(
        text, *args, env={"OOMREC_LIMIT": "128M", **(env or {})}, **options
    )


@pytest.fixture
def unrecorded(plain, build_dir):
    return programs(plain, build_dir)


def exception_of(bundle) -> dict:
    written = metadata(bundle)
    return {
        name.replace("exception_", ""): written[name]
        for name in (
            "exception_type",
            "exception_module",
            "exception_message",
            "exception_traceback",
            "context",
            "custom_metadata",
            "reason",
        )
    }


REFUSED = """
    import sys, traceback, oomrec
    def ask():
        return bytearray(200 << 20)
    before = MemoryError
    with oomrec.capture_oom("not here"):
        pass
    try:
        with oomrec.capture_oom("evaluate", {"batch": 64}) as capture:
            ask()
    except MemoryError as error:
        entries = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
        print(entries, vars(error), error.args, error.__cause__, error.__context__)
        print(capture.bundle)
"""


@pytest.mark.parametrize("version", PACKAGE_PYTHON_VERSIONS)
def test_a_failure_and_its_exception_share_a_bundle(recorded, python, version):
    run = recorded(REFUSED, python=python(version))
    entries, bundle = run.stdout.splitlines()
    assert entries == "['<module>', 'ask'] {} () None None", str(run)
    assert bundle == str(run.only_bundle())
    exception = exception_of(run.only_bundle())
    text = exception.pop("traceback")
    assert exception == {
        "type": "MemoryError",
        "module": "builtins",
        "message": "",
        "context": "evaluate",
        "custom_metadata": {"batch": 64},
        "reason": "soft_limit",
    }
    assert text.startswith("Traceback (most recent call last):\n")
    assert "return bytearray(200 << 20)" in text and text.rstrip().endswith("MemoryError")


def test_stderr_has_no_terminal_escapes(recorded):
    run = recorded('import oomrec; oomrec.dump("odd \\x1b[31m\\nwords\\x7f")')
    assert "bundle requested: odd ?[31m" in run.stderr and "\x1b" not in run.stderr, str(run)


def test_show_prints_the_programs_metadata(recorded, oomrec):
    bundle = recorded(REFUSED).only_bundle()
    shown = oomrec.json("show", bundle)
    schemas.check("show", shown)
    assert shown["custom_metadata"] == {"batch": 64}
    assert (shown["exception"]["type"], shown["exception"]["module"]) == ("MemoryError", "builtins")
    page = oomrec("show", bundle).stdout.partition("\nwhat the program reported\n")[2]
    assert page.startswith("  MemoryError\n  context: evaluate\n  batch: 64\n\n"), page
    assert "return bytearray(200 << 20)" in oomrec("show", "--full", bundle).stdout
    redacted = oomrec("redact", bundle, "-o", "redacted")
    assert redacted.exit_code == 0, str(redacted)
    kept = oomrec.json("show", "redacted")
    assert kept["custom_metadata"] == {} and kept["context"] is None
    assert kept["exception"] == {**shown["exception"], "message": None, "traceback": None}


def test_an_exception_without_an_allocation(recorded, oomrec):
    run = recorded(
        """
        import oomrec
        for number in range(3):
            try:
                with oomrec.capture_oom(f"list {number}") as capture:
                    [0] * 2**61
            except MemoryError:
                print(capture.bundle)
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    assert run.stdout.splitlines() == list(map(str, run.bundles())) and len(run.bundles()) == 3
    exceptions = [exception_of(bundle) for bundle in run.bundles()]
    assert [each["context"] for each in exceptions] == ["list 0", "list 1", "list 2"]
    assert {each["reason"] for each in exceptions} == {"exception"}
    assert "[0] * 2**61" in exceptions[0]["traceback"]
    assert oomrec.json("show", run.bundles()[0])["trigger"] == "exception"


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_without_the_recorder(unrecorded, python, version):
    """A program that starts unrecorded: the exception is captured, but not the failed call."""
    run = unrecorded(
        """
        import oomrec
        try:
            with oomrec.capture_oom("alone", {"a": 1}) as capture:
                bytearray(1 << 60)
        except MemoryError:
            print(capture.bundle)
        """,
        python=python(version),
    )
    assert run.stdout == f"{run.only_bundle()}\n", str(run)
    recorded = exception_of(run.only_bundle())
    assert (recorded["type"], recorded["context"], recorded["reason"]) == (
        "MemoryError",
        "alone",
        "exception",
    )
    assert recorded["custom_metadata"] == {"a": 1} and "bytearray(1 << 60)" in recorded["traceback"]


@pytest.mark.needs_numpy
def test_numpys_request_is_recorded(recorded):
    run = recorded(
        """
        import numpy, oomrec
        with oomrec.capture_oom("grow", {"shape": numpy.ones((3, 4)), "loss": numpy.float32(2.5), "step": numpy.int64(7)}):
            numpy.ones((200, 1 << 20), dtype="uint8")
        """
    )
    assert run.exit_code == 1
    exception = exception_of(run.only_bundle())
    assert exception["type"] == "_ArrayMemoryError" and exception["module"].startswith("numpy.")
    assert exception["message"].startswith("Unable to allocate 200. MiB for an array with shape")
    assert exception["custom_metadata"] == {
        "shape": "<numpy.ndarray (3, 4) float64>",
        "loss": 2.5,
        "step": 7,
    }
    assert exception["reason"] == "soft_limit"


NESTED = """
    import sys, oomrec

    def refused(): bytearray(200 << 20)
    def never_asked(): [0] * 2**61

    def passes(ask):
        with oomrec.capture_oom("outer"), oomrec.capture_oom("inner"):
            ask()

    def raised_from(ask):
        with oomrec.capture_oom("outer"):
            try:
                with oomrec.capture_oom("inner"):
                    ask()
            except MemoryError as error:
                raise RuntimeError("training failed") from error

    def in_the_handler(ask):
        with oomrec.capture_oom("outer"):
            try:
                with oomrec.capture_oom("inner"):
                    ask()
            except MemoryError:
                with oomrec.capture_oom("cleaning"):
                    pass
                raise ValueError("no batch")

    def decorated(ask):
        @oomrec.capture_oom("outer")
        def outer():
            @oomrec.capture_oom("inner")
            def inner(): ask()
            inner()
        outer()

    def in_a_generator(ask):
        @oomrec.capture_oom("inner")
        def generated():
            yield 1
            ask()
        with oomrec.capture_oom("outer"):
            for _ in generated(): pass

    def in_a_task(ask):
        import asyncio
        @oomrec.capture_oom("inner")
        async def task():
            await asyncio.sleep(0)
            ask()
        @oomrec.capture_oom("outer")
        async def main():
            await asyncio.gather(task(), asyncio.sleep(0.01))
        asyncio.run(main())

    def in_a_group(ask):
        with oomrec.capture_oom("outer"):
            caught = []
            try:
                with oomrec.capture_oom("inner"):
                    ask()
            except MemoryError as error:
                caught.append(error)
            raise ExceptionGroup("two", [ValueError(), *caught])

    def in_a_pool(ask):
        from concurrent.futures import ThreadPoolExecutor
        with oomrec.capture_oom("outer"), ThreadPoolExecutor() as pool:
            pool.submit(oomrec.capture_oom("inner")(ask)).result()

    try:
        globals()[sys.argv[1]](globals()[sys.argv[2]])
    except BaseException as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize("ask", ["refused", "never_asked"])
@pytest.mark.parametrize(
    ("nested", "raised"),
    [
        ("passes", "MemoryError"),
        ("raised_from", "RuntimeError"),
        ("in_the_handler", "ValueError"),
        ("decorated", "MemoryError"),
        ("in_a_generator", "MemoryError"),
        ("in_a_task", "MemoryError"),
        ("in_a_group", "ExceptionGroup"),
        ("in_a_pool", "MemoryError"),
    ],
)
def test_nested_captures_share_a_bundle(recorded, python, nested, raised, ask):
    run = recorded(NESTED, nested, ask, python=python())
    assert run.stdout == f"{raised}\n" and run.exit_code == 0, str(run)
    exception = exception_of(run.only_bundle())
    assert (exception["type"], exception["context"]) == ("MemoryError", "inner")


def test_two_failures_are_two_bundles(recorded):
    """The second exception and its frames most likely reuse the first one's addresses."""
    run = recorded(
        """
        import oomrec
        def ask(): [0] * 2**61
        for step in range(4):
            with oomrec.capture_oom("all steps"):
                try:
                    with oomrec.capture_oom(f"step {step}"):
                        ask()
                except MemoryError as error:
                    print(id(error))
        try:
            with oomrec.capture_oom("the outer alone"):
                try:
                    with oomrec.capture_oom("swallowed"):
                        ask()
                except MemoryError:
                    pass
                ask()
        except MemoryError:
            pass
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    contexts = [exception_of(bundle)["context"] for bundle in run.bundles()]
    assert contexts == ["step 0", "step 1", "step 2", "step 3", "swallowed", "the outer alone"]


def test_a_failure_gets_only_one_exception(recorded):
    run = recorded(
        """
        import oomrec
        try:
            with oomrec.capture_oom("outer"):
                try:
                    with oomrec.capture_oom("inner"):
                        bytearray(200 << 20)
                except MemoryError:
                    pass
                [0] * 2**61
        except MemoryError:
            pass
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    exceptions = [exception_of(bundle) for bundle in run.bundles()]
    assert [(each["context"], each["reason"]) for each in exceptions] == [
        ("inner", "soft_limit"),
        ("outer", "exception"),
    ]
    assert "bytearray(200 << 20)" in exceptions[0]["traceback"]


RAISED_AGAIN = """
    import sys, time, threading, oomrec
    from concurrent.futures import ThreadPoolExecutor

    def refused(): return bytearray(200 << 20)
    def never_asked(): [0] * 2**61

    def in_another_thread(ask):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    def swallowed(guard=oomrec.context):
        try:
            with guard("the worker's"):
                refused()
        except MemoryError:
            pass

    pool = ThreadPoolExecutor(1)
    if sys.argv[1] == "before":
        in_another_thread(swallowed)
    try:
        with oomrec.capture_oom("main") as capture:
            if sys.argv[1] == "pool":
                pool.submit(refused).result()
            elif sys.argv[1] == "again":
                try:
                    with oomrec.capture_oom("once"):
                        pool.submit(refused).result()
                except MemoryError:
                    pass
            elif sys.argv[1] == "named":
                in_another_thread(lambda: swallowed(oomrec.capture_oom))
            elif sys.argv[1] == "long ago":
                in_another_thread(swallowed)
                time.sleep(10.2)
            never_asked()
    except MemoryError:
        print(capture.bundle)
"""


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_another_threads_failure_and_its_exception_here(recorded, python, version):
    run = recorded(RAISED_AGAIN, "pool", python=python(version))
    assert run.stdout == f"{run.only_bundle()}\n", str(run)
    exception = exception_of(run.only_bundle())
    assert (exception["type"], exception["context"], exception["reason"]) == (
        "MemoryError",
        "main",
        "soft_limit",
    )
    assert "return bytearray(200 << 20)" in exception["traceback"]
    assert ".result()" in exception["traceback"]
    assert metadata(run.only_bundle())["request"]["size"] // MIB == 200


@pytest.mark.parametrize(
    ("when", "context"),
    [("before", None), ("again", "once"), ("named", "the worker's"), ("long ago", None)],
)
def test_an_unrelated_failure_of_another_thread(recorded, when, context):
    run = recorded(RAISED_AGAIN, when, env={"OOMREC_MAX_DUMPS": 0})
    refused, own = [exception_of(bundle) for bundle in run.bundles()]
    assert (refused["reason"], own["reason"]) == ("soft_limit", "exception"), str(run)
    assert (refused["type"] is None) == (context is None)
    if context is not None:
        assert refused["context"] == context
    assert own["context"] == "main" and "never_asked" in own["traceback"]


@pytest.mark.needs_torch
def test_a_failed_tensor_of_a_worker_thread(recorded):
    run = recorded(
        """
        import oomrec, torch
        from concurrent.futures import ThreadPoolExecutor
        weights = torch.ones(1000, requires_grad=True)
        def backward():
            # The gradient's buffers do not fit.
            weights.expand(200_000, 1000).exp().sum().backward()
        try:
            with oomrec.capture_oom("step") as capture, ThreadPoolExecutor(1) as pool:
                pool.submit(backward).result()
        except RuntimeError as error:
            print(capture.bundle)
        """,
        env={"OOMREC_LIMIT": "1G"},
    )
    assert run.stdout == f"{run.only_bundle()}\n", str(run)
    exception = exception_of(run.only_bundle())
    assert (exception["type"], exception["context"], exception["reason"]) == (
        "RuntimeError",
        "step",
        "soft_limit",
    )
    assert "DefaultCPUAllocator" in exception["message"]


def test_exceptions_that_are_not_failures(recorded):
    """Other exceptions, closed generators, cancelled tasks, also while a failure is handled."""
    run = recorded(
        """
        import asyncio, oomrec
        @oomrec.capture_oom()
        def closed():
            try:
                [0] * 2**61
            except MemoryError:
                yield 1
        generator = closed()
        next(generator)
        generator.close()

        @oomrec.capture_oom()
        async def cancelled():
            try:
                [0] * 2**61
            except MemoryError:
                await asyncio.sleep(60)
        async def main():
            task = asyncio.ensure_future(cancelled())
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")
        asyncio.run(main())

        for error in (ValueError("seat allocation failed for user 7"), KeyboardInterrupt(), SystemExit()):
            try:
                with oomrec.capture_oom() as capture:
                    raise error
            except BaseException as caught:
                print(caught is error, capture.bundle)
        """
    )
    assert run.stdout == "cancelled\n" + 3 * "True None\n" and run.bundles() == [], str(run)


HOSTILE = """
    import decimal, oomrec

    class Hostile:
        def __repr__(self): raise SystemExit("never")
    class HostileKey(str):
        def __hash__(self): return 1
    class Text(str):
        def __str__(self): raise ValueError
        __repr__ = __str__
    class Map(dict):
        def __iter__(self): raise RuntimeError("no")
    class Array:
        dtype = "bfloat16"
        shape = (2, 3)
        def __repr__(self): raise AssertionError("its contents are not to be read")

    ring = {"name": "ring"}
    ring["itself"] = ring
    deep = []
    for _ in range(10_000):
        deep = [deep]
    made = {
        "nan": float("nan"), "inf": [float("-inf")], "bytes": b"\\x00\\xff", "hostile": Hostile(),
        7: "a number", None: "none", (1, 2): "a tuple", HostileKey("key"): 1, "set": {3},
        "ring": ring, "deep": deep, "huge": 10 ** 6000, "long": "x" * 10_000_000, "text": Text("t"),
        "surrogate": "\\ud800", "nul": "a\\0b", "array": Array(), "decimal": decimal.Decimal("1.5"),
        "exception_type": "mine", "reason": "mine", "truth": True, "type": int,
    }
    for number, metadata in enumerate([made, {"many": list(range(1_000_000))}, {"map": Map(a=1)}, [1], "text"]):
        try:
            with oomrec.capture_oom(str(number), metadata):
                [0] * 2**61
        except MemoryError:
            print("passed")
"""


def test_metadata_of_every_kind(recorded):
    run = recorded(HOSTILE, env={"OOMREC_MAX_DUMPS": 0, "OOMREC_LIMIT": "1G"})
    assert run.stdout == 5 * "passed\n" and run.exit_code == 0, str(run)
    first, many, unreadable, listed, text = [exception_of(bundle) for bundle in run.bundles()]
    assert (first["type"], first["reason"]) == (
        "MemoryError",
        "exception",
    )  # our own keys are not overwritten
    given = first["custom_metadata"]
    assert (given["exception_type"], given["reason"]) == ("mine", "mine")
    assert (given["nan"], given["inf"], given["set"]) == ("nan", ["-inf"], [3])
    assert given["bytes"] == "b'\\x00\\xff'" and given["surrogate"] == "\\ud800"
    assert given["hostile"] == "<Hostile: its repr raised SystemExit>"
    assert given["ring"] == {"name": "ring", "itself": "<contains itself>"}
    assert "<too deep>" in json.dumps(given["deep"])
    assert given["array"].endswith(".Array (2, 3) bfloat16>")
    assert (given["7"], given["None"], given["(1, 2)"], given["key"]) == (
        "a number",
        "none",
        "a tuple",
        1,
    )
    assert given["huge"].startswith("0x") and len(given["long"]) < 20_000
    assert given["decimal"] == "Decimal('1.5')" and given["truth"] is True
    assert many["custom_metadata"]["many"][-1] == "999000 more"
    assert unreadable["custom_metadata"] == {"not_recorded": "RuntimeError"}
    assert listed["custom_metadata"] == {"value": [1]} and text["custom_metadata"] == {
        "value": "text"
    }


def test_exceptions_of_every_kind(recorded):
    run = recorded(
        """
        import dataclasses, oomrec
        @dataclasses.dataclass(frozen=True)
        class Frozen(MemoryError):
            text: str
        class Silent(MemoryError):
            def __str__(self): raise SystemExit
        class Long(MemoryError):
            pass
        def deep(depth): return deep(depth - 1) if depth else [0] * 2**61
        for make in (lambda: Frozen("x"), Silent, lambda: Long("long " * 100_000)):
            try:
                with oomrec.capture_oom():
                    raise make()
            except MemoryError as error:
                print(type(error).__name__)
        try:
            with oomrec.capture_oom():
                deep(900)
        except MemoryError:
            print("deep")
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    assert run.stdout == "Frozen\nSilent\nLong\ndeep\n" and run.exit_code == 0, str(run)
    exceptions = [exception_of(bundle) for bundle in run.bundles()]
    assert [each["type"] for each in exceptions] == ["Frozen", "Silent", "Long", "MemoryError"]
    assert exceptions[1]["message"] is None
    assert len(exceptions[2]["message"]) < 20_000 and "left out" in exceptions[2]["message"]
    assert exceptions[3]["traceback"].rstrip().endswith("MemoryError")


def test_a_full_disk_lets_the_exception_pass(recorded):
    run = recorded(
        """
        import oomrec, resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, -1))
        for size in (200 << 20, 1 << 60):
            try:
                with oomrec.capture_oom("full") as capture:
                    bytearray(size)
            except MemoryError as error:
                print("passed", capture.bundle)
        """
    )
    assert run.stdout == 2 * "passed None\n" and run.exit_code == 0, str(run)
    assert run.bundles() == []


def test_no_memory_for_the_exception_texts(recorded):
    """No byte is left: the failure's bundle exists, and gets the texts that fit into the reserve."""
    run = recorded(
        """
        import resource, oomrec
        held = []
        def fill():
            size = 1 << 20
            while size >= 16:
                try:
                    while True:
                        held.append(bytearray(size))
                except MemoryError:
                    size //= 2
            held.append(bytearray(1 << 20))
        with oomrec.capture_oom("warm"):
            pass
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, -1))
        try:
            with oomrec.capture_oom("filled") as capture:
                fill()
        except MemoryError:
            held.clear()
            print(capture.bundle is not None)
        """,
        env={"OOMREC_LIMIT": None},
    )
    assert run.stdout == "True\n" and run.exit_code == 0, str(run)
    [exception] = [each for each in map(exception_of, run.bundles()) if each["context"] == "filled"]
    assert exception["type"] == "MemoryError" and "in fill" in exception["traceback"]


def test_threads_capture_independently(recorded):
    run = recorded(
        """
        import threading, oomrec
        asks = [
            lambda: bytearray(200 << 20),
            lambda: bytearray(201 << 20),
            lambda: bytearray(202 << 20),
            lambda: bytearray(203 << 20),
        ]
        begin = threading.Barrier(4)
        paths = {}
        def work(number):
            begin.wait()
            try:
                with oomrec.capture_oom(f"thread {number}") as capture:
                    asks[number]()
            except MemoryError:
                paths[number] = capture.bundle
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(*(paths[number] for number in range(4)), sep="\\n")
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    paths = run.stdout.splitlines()
    assert sorted(paths) == sorted(map(str, run.bundles())) and len(set(paths)) == 4, str(run)
    for number, path in enumerate(paths):
        bundle_metadata = metadata(Path(path))
        assert bundle_metadata["context"] == f"thread {number}"
        assert bundle_metadata["request"]["size"] // MIB == 200 + number
        assert f"bytearray({200 + number} << 20)" in bundle_metadata["exception_traceback"]


WATCHED = """
    import sys, threading, oomrec

    def hook(kind, error, traceback): print("main's hook", kind.__name__)
    def thread_hook(args): print("threads' hook", args.exc_type.__name__)
    def unraisable_hook(args): print("unraisable's hook", args.exc_type.__name__)
    sys.excepthook, threading.excepthook = hook, thread_hook
    sys.unraisablehook = unraisable_hook
    watch = oomrec.watch_exceptions({"watched": True})

    class Dropped:
        def __del__(self): [0] * 2**61

    def in_a_task():
        import asyncio
        async def fails(): [0] * 2**60
        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda loop, context: print("loop's", type(context["exception"]).__name__))
            task = asyncio.ensure_future(fails())
            await asyncio.sleep(0)
            del task
        asyncio.run(main())

    if sys.argv[1] == "undone":
        watch.cancel()
        assert (sys.excepthook, threading.excepthook) == (hook, thread_hook)
        assert sys.unraisablehook is unraisable_hook
    elif sys.argv[1] == "thread":
        thread = threading.Thread(target=lambda: bytearray(200 << 20))
        thread.start()
        thread.join()
        sys.exit(0)
    elif sys.argv[1] == "unraisable":
        Dropped()
        sys.exit(0)
    elif sys.argv[1] == "task":
        in_a_task()
        sys.exit(0)
    elif sys.argv[1] == "captured":
        with oomrec.capture_oom("captured"):
            [0] * 2**61
    elif sys.argv[1] == "other":
        raise ValueError
    bytearray(200 << 20)
"""


@pytest.mark.parametrize(
    ("where", "said", "line"),
    [
        ("main", "main's hook MemoryError", "bytearray(200 << 20)"),
        ("thread", "threads' hook MemoryError", "bytearray(200 << 20)"),
        ("unraisable", "unraisable's hook MemoryError", "[0] * 2**61"),
        ("task", "loop's MemoryError", "[0] * 2**60"),
        ("captured", "main's hook MemoryError", "[0] * 2**61"),
    ],
)
def test_uncaught_exceptions(recorded, where, said, line):
    run = recorded(WATCHED, where)
    assert run.stdout == f"{said}\n" and run.stderr.count("Traceback") == 0, str(run)
    exception = exception_of(run.only_bundle())
    assert exception["type"] == "MemoryError" and line in exception["traceback"]
    if where == "captured":
        assert exception["context"] == "captured" and exception["custom_metadata"] == {}
    else:
        assert exception["custom_metadata"] == {"watched": True}


def test_each_unawaited_task_is_a_separate_failure(recorded):
    """All exceptions most likely have the same address."""
    run = recorded(
        """
        import asyncio, oomrec
        oomrec.watch_exceptions()
        async def fails(): [0] * 2**61
        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda loop, context: print(oomrec.last_bundle()))
            for _ in range(3):
                task = asyncio.ensure_future(fails())
                await asyncio.sleep(0)
                del task
        asyncio.run(main())
        """,
        env={"OOMREC_MAX_DUMPS": 0},
    )
    assert run.stdout.splitlines() == list(map(str, run.bundles())) and len(run.bundles()) == 3


def test_removed_hooks_and_hooks_without_a_failure(recorded):
    undone = recorded(WATCHED, "undone")
    assert undone.stdout == "main's hook MemoryError\n"
    assert exception_of(undone.only_bundle())["type"] is None  # only the failure's bundle
    other = recorded(WATCHED, "other")
    assert other.stdout == "main's hook ValueError\n" and len(other.bundles()) == 1
