"""What profilers share: they measure functions and blocks, and monitor."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Generic, Iterator, Protocol, TypeVar

from .._impl.decorate import measured, runs_in_steps
from ._periodic import PeriodicCall

Snapshot = TypeVar("Snapshot")
Result = TypeVar("Result")
Self = TypeVar("Self", bound="Profiler[Any, Any]")


class Profiler(Generic[Snapshot, Result]):
    """Keeps results of blocks, and snapshots while it monitors. As a context manager it stops its monitoring."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.snapshots: list[Snapshot] = []
        self._monitoring = PeriodicCall()

    def _take_snapshot(self, operation: str | None = None) -> Snapshot:
        raise NotImplementedError

    def _block(self, name: str) -> ContextManager[list[Result]]:
        """Measures the block; the yielded list gets the result when the block ends."""
        raise NotImplementedError

    def profile_function(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Result:
        """Calls `func(*args, **kwargs)` and returns the measurement, not its result.

        Its exceptions pass through; `results` still gets an entry.
        """
        with self._block(getattr(func, "__name__", str(func))) as ended:
            func(*args, **kwargs)
        return ended[0]

    @contextmanager
    def profile_context(self: Self, name: str = "context") -> Iterator[Self]:
        """Measures the block; the result is in `results` when it ends."""
        with self._block(name):
            yield self

    def start_monitoring(self, interval: float | None = None) -> None:
        """Starts taking a snapshot every `interval` seconds (None: 0.1). No effect if already running."""
        if not self._monitoring.is_running:
            self._monitoring.start(self._monitor, 0.1 if interval is None else interval)
            self._monitor()

    def _monitor(self) -> None:
        self.snapshots.append(self._take_snapshot("monitor"))

    def stop_monitoring(self) -> None:
        """Stops taking snapshots, and keeps those taken."""
        self._monitoring.stop()

    def clear_results(self) -> None:
        """Deletes results and snapshots; current memory becomes the baseline."""
        self.results.clear()
        self.snapshots.clear()
        self._baseline = self._take_snapshot("baseline")

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_monitoring()


class MeasuresBlocks(Protocol):
    """A profiler, as a decorator uses it: a Profiler, TensorFlow's, or a program's own."""

    def profile_context(self, name: str) -> ContextManager[Any]: ...


def profiled(
    func: Callable[..., Any] | None,
    name: str | None,
    unnamed: str,
    chosen: Callable[[], MeasuresBlocks],
    by_profiler: Callable[[Callable[..., Any], str], Callable[..., Any]],
) -> Any:
    """A framework's decorator `profile_function`, or the function that it decorates.

    A generator or coroutine is measured from its first step to its end.

    Args:
        func: the function; None: the decorator was called with arguments
        name: of the results; by default the function's, or `unnamed`
        chosen: the profiler, asked at each call
        by_profiler: decorates a plain function, for its name, by the profiler's own `profile_function`,
            which a program may have replaced
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, (staticmethod, classmethod)):
            return type(function)(decorated(function.__func__))
        label = name or str(getattr(function, "__name__", unnamed))
        if runs_in_steps(function):
            wrapper = measured(function, lambda: chosen().profile_context(label))
        else:
            wrapper = by_profiler(function, label)
        wrapper._is_profiled = True  # type: ignore[attr-defined]
        wrapper._profile_name = label  # type: ignore[attr-defined]
        return wrapper

    return decorated if func is None else decorated(func)


OWN_FILES = (__file__, contextmanager.__code__.co_filename)
