"""watch_exceptions: exceptions that nothing catches, whichever hook gets them."""

from __future__ import annotations

import pytest
from python_programs import exception_of, limited_programs


@pytest.fixture
def recorded(preload, build_dir):
    return limited_programs(preload, build_dir)


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
