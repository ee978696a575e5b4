"""Decorates a function of any kind so that its body runs inside a guard, and stays a function of that kind.

A generator or coroutine runs step by step, and its thread does other work in between. A label that stayed
until the end would cover that work, too, so the guard of a label is entered anew for each step. A measurement
is of the whole run: its guard is entered once. Values, exceptions, GeneratorExit and the return value pass
through unchanged.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any, AsyncGenerator, Callable, ContextManager, Generator, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
NewGuard = Callable[[], ContextManager[Any]]  # called once for each call


def guarded(function: Function, new_guard: NewGuard) -> Function:
    """A function of the same kind, with each step of its body in a guard.

    Raises TypeError for a class: decorated, it would no longer be a class.
    """
    if isinstance(function, (staticmethod, classmethod)):
        inner = guarded(function.__func__, new_guard)
        return cast(Function, type(function)(inner))
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"functions can be decorated, not {function!r}: decorate its methods")
    return cast(Function, _wrapper_for(function)(function, new_guard, nullcontext))


def measured(function: Function, new_guard: NewGuard) -> Function:
    """A function of the same kind, with each whole run of it in a guard. Of a class: each new object."""
    if isinstance(function, (staticmethod, classmethod)):
        inner = measured(function.__func__, new_guard)
        return cast(Function, type(function)(inner))
    return cast(Function, _wrapper_for(function)(function, nullcontext, new_guard))


def runs_in_steps(function: Callable[..., Any]) -> bool:
    """Whether a call only makes a generator or a coroutine, which runs later."""
    return _wrapper_for(function) is not _plain_function


def _wrapper_for(function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    if isinstance(function, type):
        return _plain_function
    import inspect  # imported here: takes 5 ms, and most programs decorate nothing

    # A callable object is of the kind of its __call__.
    bodies = (function, getattr(function, "__call__", None))  # noqa: B004
    for is_kind, wrapper in (
        (inspect.iscoroutinefunction, _coroutine_function),
        (inspect.isasyncgenfunction, _async_generator_function),
        (inspect.isgeneratorfunction, _generator_function),
    ):
        if any(is_kind(body) for body in bodies):
            return wrapper
    return _plain_function


def _plain_function(
    function: Callable[..., Any], new_guard: NewGuard, new_whole: NewGuard
) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with new_whole(), new_guard():
            return function(*args, **kwargs)

    return call


def _generator_function(
    function: Callable[..., Any], new_guard: NewGuard, new_whole: NewGuard
) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with new_whole():
            return (yield from _steps(function(*args, **kwargs), new_guard()))

    return call


def _coroutine_function(
    function: Callable[..., Any], new_guard: NewGuard, new_whole: NewGuard
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with new_whole():
            return await _Steps(function(*args, **kwargs), new_guard())

    return call


def _async_generator_function(
    function: Callable[..., Any], new_guard: NewGuard, new_whole: NewGuard
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with new_whole():
            generator, guard = function(*args, **kwargs), new_guard()
            resume: Callable[[Any], Any] = generator.asend
            given: list[Any] = [None]
            while True:
                try:
                    item = await _Steps(resume(given.pop()), guard)
                except StopAsyncIteration:
                    return
                try:
                    given.append((yield item))
                    resume = generator.asend
                except BaseException as error:  # thrown in, or GeneratorExit: the body's to handle
                    given.append(error)
                    resume = generator.athrow

    return call


def _steps(generator: Any, guard: Any) -> Generator[Any, Any, Any]:
    """Runs a generator or an awaitable to its end, each step in the guard.

    A value for the body is passed in a list that is emptied at once. If this frame kept an exception whose
    traceback contains the frame, the cycle would keep both alive, with everything they refer to.
    """
    resume: Callable[[Any], Any] = generator.send
    given: list[Any] = [None]
    while True:
        try:
            with guard:
                item = resume(given.pop())
        except StopIteration as end:
            return end.value
        try:
            given.append((yield item))
            resume = generator.send
        except BaseException as error:  # thrown in, or GeneratorExit: the body's to handle
            given.append(error)
            resume = generator.throw


class _Steps:
    """`_steps` for `await`."""

    __slots__ = ("_body", "_guard")

    def __init__(self, body: Any, guard: Any) -> None:
        self._body = body
        self._guard = guard

    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self._body, self._guard)
