"""capture_oom: the exception is in the bundle of its failure, and passes unchanged."""

from __future__ import annotations

import json

import pytest
import schemas
from conftest import distinct_versions
from python_programs import TOLD, exception_of, limited_programs, programs
from pythons import PACKAGE_PYTHON_VERSIONS


@pytest.fixture
def recorded(preload, build_dir):
    return limited_programs(preload, build_dir)


@pytest.fixture
def unrecorded(plain, build_dir):
    return programs(plain, build_dir)


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


@pytest.mark.parametrize("version", distinct_versions(PACKAGE_PYTHON_VERSIONS))
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
    oomrec("redact", bundle, "-o", "redacted", exits=0)
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
    assert [recorded[key] for key in TOLD] == ["MemoryError", "alone", "exception"]
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
