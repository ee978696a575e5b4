"""profile_function of gpumemprof and tfmemprof: functions of every kind keep it, their results and, for type
checkers, their signatures."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import SOURCE, written
from oomrec import gpumemprof, tfmemprof
from oomrec.gpumemprof import CPUMemoryProfiler

STEP_S = 0.02


class OfGpumemprof:
    """Decorates with gpumemprof's; `measured()` is the names and seconds that it measured."""

    def __init__(self):
        self.profiler = CPUMemoryProfiler()

    def decorate(self, function, **options):
        return gpumemprof.profile_function(profiler=self.profiler, **options)(function)

    def measured(self):
        return [(result.name, result.duration) for result in self.profiler.results]


class OfTfmemprof:
    """The same with tfmemprof's."""

    def __init__(self):
        self.profiler = tfmemprof.TFMemoryProfiler("/CPU:0", enable_tensor_tracking=False)

    def decorate(self, function, **options):
        return tfmemprof.profile_function(profiler=self.profiler, **options)(function)

    def measured(self):
        profiles = self.profiler.function_profiles.items()
        return [(name, profile["total_duration"]) for name, profile in profiles]


@pytest.fixture(params=[OfGpumemprof, OfTfmemprof])
def of(request):
    return request.param()


async def coroutine(value: int) -> int:
    await asyncio.sleep(STEP_S)
    return value + 1


def generator(value: int):
    time.sleep(STEP_S)
    got = yield value
    time.sleep(STEP_S)
    return got


async def async_generator(value: int):
    await asyncio.sleep(STEP_S)
    got = yield value
    yield got


def run(coroutine):
    """In a thread of its own: in this one the tests of pages keep a loop running (playwright's)."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, coroutine).result()


async def items(iterator):
    return [await iterator.asend(None), await iterator.asend("sent")]


def test_a_coroutine_is_measured_to_its_end(of):
    decorated = of.decorate(coroutine, name="named")
    assert inspect.iscoroutinefunction(decorated) and decorated.__name__ == "coroutine"
    made = decorated(1)
    assert of.measured() == []  # it did not run yet
    assert run(made) == 2
    [(name, seconds)] = of.measured()
    assert name == "named" and seconds >= STEP_S


def test_a_generator_is_measured_to_its_end(of):
    decorated = of.decorate(generator)
    assert inspect.isgeneratorfunction(decorated)
    steps = decorated(1)
    assert next(steps) == 1 and of.measured() == []
    with pytest.raises(StopIteration) as ended:
        steps.send("sent")
    assert ended.value.value == "sent"
    [(name, seconds)] = of.measured()
    assert name == "generator" and seconds >= 2 * STEP_S


def test_an_async_generator_is_measured_to_its_end(of):
    decorated = of.decorate(async_generator)
    assert inspect.isasyncgenfunction(decorated)

    async def take():
        steps = decorated(1)
        assert await items(steps) == [1, "sent"] and of.measured() == []
        await steps.aclose()

    run(take())
    assert [name for name, _ in of.measured()] == ["async_generator"]


def test_a_closed_generator_is_measured_and_one_that_never_ran_is_not(of):
    closed, unused = of.decorate(generator)(1), of.decorate(generator, name="unused")(1)
    next(closed)
    closed.close()
    unused.close()
    assert [name for name, _ in of.measured()] == ["generator"]


def test_an_exception_passes_through_and_is_measured(of):
    def fails():
        raise KeyError("mine")

    async def fails_later():
        fails()

    with pytest.raises(KeyError, match="mine"):
        of.decorate(fails)()
    with pytest.raises(KeyError, match="mine"):
        run(of.decorate(fails_later)())
    assert [name for name, _ in of.measured()] == ["fails", "fails_later"]


def test_methods_of_every_kind(of):
    class Model:
        def plain(self, value):
            return self, value

        plain = of.decorate(plain)
        static = of.decorate(staticmethod(lambda value: value), name="static")
        of_class = of.decorate(classmethod(lambda cls, value: (cls, value)), name="of_class")

    model = Model()
    assert model.plain(1) == (model, 1)
    assert model.static(2) == Model.static(2) == 2
    assert model.of_class(3) == (Model, 3)
    assert {name for name, _ in of.measured()} == {"plain", "static", "of_class"}


def test_a_class_is_measured_at_each_new_object(of):
    class Model:
        def __call__(self):
            yield  # which does not make Model() a generator

    made = of.decorate(Model)
    assert isinstance(made(), Model)
    assert [name for name, _ in of.measured()] == ["Model"]


def test_the_profilers_own_method_measures_a_call():
    """A program may pass a profiler that it has derived, or one that measures nothing."""
    calls = []

    class Own:
        def profile_function(self, function):
            calls.append(function.__name__)
            return function()

    @gpumemprof.profile_function(name="named", profiler=Own())
    def step():
        return "result"

    assert step() == "result" and calls == ["named"]

    class OwnTensorFlow:
        def profile_function(self, function):
            calls.append(function.__name__)
            return function

    @tfmemprof.profile_function(name="also", profiler=OwnTensorFlow())
    def other(value):
        return value

    assert other(4) == 4 and calls == ["named", "also"]


TYPED = """
from typing import AsyncIterator, Iterator
from oomrec.gpumemprof import MemoryTracker, profile_context, profile_function
from oomrec.tfmemprof import TFMemoryProfiler, profile_function as profile_tensorflow
import oomrec

tracker = MemoryTracker()

@profile_function
def plain(size: int, *, name: str = "x") -> list[int]:
    return [size]

@profile_function(name="step", device="cpu")
def named(size: int) -> str:
    return ""

@profile_function
async def coroutine(size: int) -> bytes:
    return b""

@profile_function(name="steps")
def generator(size: int) -> Iterator[float]:
    yield 0.0

@profile_tensorflow
async def async_generator(size: int) -> AsyncIterator[complex]:
    yield 0j

@profile_tensorflow(name="step")
def of_tensorflow(size: int) -> set[int]:
    return {size}

@TFMemoryProfiler().profile_function
def of_profiler(size: int) -> tuple[int]:
    return (size,)

@tracker.capture_oom("train")
def captured(size: int) -> dict[int, int]:
    return {}

@oomrec.context("label")
def labelled(size: int) -> frozenset[int]:
    return frozenset()

@profile_context("block")
def in_context(size: int) -> bool:
    return True

class Model:
    @profile_function
    def forward(self, size: int) -> "Model":
        return self

reveal_type(plain)
reveal_type(named)
reveal_type(coroutine)
reveal_type(generator)
reveal_type(async_generator)
reveal_type(of_tensorflow)
reveal_type(of_profiler)
reveal_type(captured)
reveal_type(labelled)
reveal_type(in_context)
reveal_type(Model().forward)
"""
REVEALED = """
def (size: int, *, name: str =) -> list[int]
def (size: int) -> str
def (size: int) -> Coroutine[Any, Any, bytes]
def (size: int) -> Iterator[float]
def (size: int) -> AsyncIterator[complex]
def (size: int) -> set[int]
def (size: int) -> tuple[int]
def (size: int) -> dict[int, int]
def (size: int) -> frozenset[int]
def (size: int) -> bool
def (size: int) -> Model
""".split("\n")[1:-1]
WRONG = {
    'plain("a")': "arg-type",
    "plain(1, name=2)": "arg-type",
    "plain(1, other=2)": "call-arg",
    "named()": "call-arg",
    "text: str = plain(1)": "assignment",
    "of_tensorflow(size='a')": "arg-type",
    "Model().forward()": "call-arg",
    "@profile_function(nonsense=1)\ndef other() -> None: ...": "call-overload",
}


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """mypy(text) is the lines that mypy --strict prints for a program, without the file's name."""
    directory = tmp_path_factory.mktemp("typed")

    def check(text: str) -> list[str]:
        written(directory / "program.py", text)
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "mypy",
                "--strict",
                "--no-pretty",
                "--config-file=",
                "program.py",
            ],
            cwd=directory,
            env={"MYPYPATH": str(SOURCE / "tools" / "python"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode in (0, 1), run.stderr
        lines = run.stdout.replace("builtins.", "").replace("typing.", "").splitlines()
        return [line.partition(":")[2] for line in lines if line.startswith("program.py:")]

    return check


@pytest.mark.needs_module("mypy")
def test_decorated_functions_keep_their_signatures(mypy):
    types = [line.split('"')[1] for line in mypy(TYPED) if "Revealed type" in line]
    types = [
        each.replace("program.", "").replace("tuple[int, fallback=tuple[int]]", "tuple[int]")
        for each in types
    ]
    assert types == REVEALED
    assert [line for line in mypy(TYPED) if ": error:" in line] == []


@pytest.mark.needs_module("mypy")
def test_a_wrong_call_of_a_decorated_function_is_an_error(mypy):
    """What an untyped decorator would hide."""
    found = [line for line in mypy(TYPED + "\n".join(WRONG)) if ": error:" in line]
    first = {
        line.partition(":")[0]: line.rpartition("[")[2].rstrip("]") for line in reversed(found)
    }
    assert list(reversed(first.values())) == list(WRONG.values())
