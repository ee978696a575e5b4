"""To which failure an exception belongs: captures in each other, and threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import metadata
from python_programs import TOLD, exception_of, limited_programs

MIB = 1 << 20


@pytest.fixture
def recorded(preload, build_dir):
    return limited_programs(preload, build_dir)


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
    assert [exception[key] for key in TOLD] == ["MemoryError", "main", "soft_limit"]
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
    assert [exception[key] for key in TOLD] == ["RuntimeError", "step", "soft_limit"]
    assert "DefaultCPUAllocator" in exception["message"]


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
