"""capture_oom: the exception that says that memory ran out goes into the bundle of that moment."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Mapping

from ._resumes import Function, guarded
from ._seen import next_moment
from ._session import at_fork, recorder


def _first_failures() -> int:
    """Stands for the C function until there is a recording.

    What a failure needs is imported now: then there may be no memory to do it.
    """
    global _failures
    from . import _exceptions  # noqa: F401

    _failures = recorder().failures
    return _failures()


def _forget() -> None:
    global _failures
    _failures = _first_failures


_failures = _first_failures
at_fork(_forget)


class capture_oom:
    """Puts an exception for lack of memory that leaves the block into a bundle, and lets it pass.

    The exception is one of those that `classify_oom_exception` knows: MemoryError, those of NumPy,
    torch, CuPy, TensorFlow, JAX …, and those that were raised from one. It goes on unchanged. If an
    allocation was refused in the block, the recorder has written the bundle before Python raised:
    that bundle is completed; also where another thread was refused whose exception is raised again
    here, as a thread pool's result and torch's backward pass do. Else (`[0] * 2**61` never asks an allocator; or the program was not
    started under the recorder) one is written, with trigger `exception`. In metadata.json are then
    `exception_type`, `exception_module`, `exception_message`, `exception_traceback`, `context` and
    `custom_metadata`. Of nested captures the innermost writes; there is one bundle for a failure.

        with oomrec.capture_oom("evaluate", {"batch": 64}) as capture:
            evaluate(model)

    As a decorator, `@oomrec.capture_oom("evaluate")`, it takes functions, coroutines, generators and
    asynchronous generators; of the latter three only what happens while they run, not while they wait.
    A generator that is closed, or a task that is cancelled, is no failure.

    Args:
        context: a few words for the bundle: what was being done
        metadata: what else is to stand there, under `custom_metadata`, as JSON. Values that JSON
            lacks are described (arrays by shape and type), cycles, NaN and what is very long are
            replaced; nothing in it can make the capture fail. Read when it happens: a dictionary
            that the program keeps up to date is right
        objects: also write objects.json: the largest arrays and tensors that are alive, what
            allocated them and who refers to them. Takes at most 50 ms

    Attributes:
        bundle: the path of the bundle, once there is one; else None

    An object is for one block at a time. Costs 0.3 µs when nothing happens.
    """

    __slots__ = ("bundle", "_context", "_entered", "_metadata", "_objects", "_since")

    bundle: str | None

    def __init__(
        self,
        context: str | None = None,
        metadata: Mapping[Any, Any] | None = None,
        objects: bool = False,
    ) -> None:
        if callable(context):
            raise TypeError("capture_oom is called to decorate: write @oomrec.capture_oom()")
        self.bundle = None
        self._context = context
        self._metadata = metadata
        self._objects = objects
        if objects:
            from . import _objects  # noqa: F401  # now: there may be no memory for it later

    def __enter__(self) -> capture_oom:
        self._entered = next_moment()
        self._since = _failures()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            from . import _exceptions

            self.bundle = _exceptions.capture(
                error,
                _exceptions.Capture(
                    since=self._since,
                    entered=self._entered,
                    any_thread=True,
                    context=self._context,
                    metadata=self._metadata,
                    objects=self._objects,
                ),
            )

    def __call__(self, function: Function) -> Function:
        return guarded(function, lambda: _Body(self._context, self._metadata, self._objects))


class _Body(capture_oom):
    """Of a decorated function: it is entered for each piece that runs, but begins with the first.

    What fails in a task that the body waits for fails between the pieces.
    """

    __slots__ = ("_is_begun",)

    def __init__(
        self, context: str | None, metadata: Mapping[Any, Any] | None, objects: bool
    ) -> None:
        super().__init__(context, metadata, objects)
        self._is_begun = False

    def __enter__(self) -> capture_oom:
        if not self._is_begun:
            self._is_begun = True
            super().__enter__()
        return self
