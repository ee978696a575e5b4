"""capture_oom: adds an exception for lack of memory to the bundle of the allocation failure behind it."""

from __future__ import annotations

from types import ModuleType, TracebackType
from typing import Any, Mapping

from .captured import next_moment
from .decorate import Function, guarded
from .recorder import RECORDER

# What a failure needs, imported before one: there may be no memory for it then.
_imported: list[ModuleType] = []


class capture_oom:
    """Adds an exception for lack of memory that leaves the block to a bundle. It propagates unchanged.

    `classify_oom_exception` decides which exceptions count: MemoryError, those of NumPy, torch, CuPy,
    TensorFlow, JAX …, and exceptions raised from one of them.

    If an allocation failed in the block, the recorder wrote a bundle before Python raised, and `capture_oom`
    completes that one. This also works when the failure was in another thread, as with a thread pool's result
    or torch's backward pass. Otherwise it writes a new bundle, with trigger `exception`: `[0] * 2**61` never
    asks an allocator, or the program does not run under the recorder.

    metadata.json then has `exception_type`, `exception_module`, `exception_message`, `exception_traceback`,
    `context` and `custom_metadata`. Of nested captures the innermost writes. Each failure has one bundle.

        with oomrec.capture_oom("evaluate", {"batch": 64}) as capture:
            evaluate(model)

    As a decorator, `@oomrec.capture_oom("evaluate")`, it takes functions, coroutines, generators and
    asynchronous generators. It covers the latter three only while they run, not while they wait. A closed
    generator or a cancelled task is not a failure.

    Args:
        context: a few words for the bundle: what the program was doing
        metadata: stored as JSON under `custom_metadata`. Values without a JSON form are described (arrays by
            shape and type); cycles, NaN and very long values are replaced. Nothing in it can make the capture
            fail. It is read at the failure, so a dictionary that the program keeps up to date works
        objects: also write objects.json: the largest living arrays and tensors, what allocated them and who
            refers to them. Takes at most 50 ms

    Attributes:
        bundle: the bundle's path, once there is one; else None

    Use an object for one block at a time. Costs 0.3 µs when nothing fails.
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
        if not _imported:
            from . import exceptions

            _imported.append(exceptions)
        if objects:
            from . import objects as _  # noqa: F401  # for the same reason

    def __enter__(self) -> capture_oom:
        self._entered = next_moment()
        self._since = RECORDER.failures()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            from . import exceptions

            self.bundle = exceptions.capture(
                error,
                exceptions.Capture(
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
    """The guard of a decorated function's body. It is entered for each step, but counts from the first.

    A task that the body awaits may fail between two steps.
    """

    __slots__ = ("_has_begun",)

    def __init__(
        self, context: str | None, metadata: Mapping[Any, Any] | None, objects: bool
    ) -> None:
        super().__init__(context, metadata, objects)
        self._has_begun = False

    def __enter__(self) -> capture_oom:
        if not self._has_begun:
            self._has_begun = True
            super().__enter__()
        return self
