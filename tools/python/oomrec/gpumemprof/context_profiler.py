"""profile_function and profile_context: measure into one profiler for the whole program, made at first use."""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypeVar, overload

from ._devices import parse_device
from ._profiling import profiled
from .profiler import GPUMemoryProfiler, ProfileResult

if TYPE_CHECKING:
    from typing_extensions import ParamSpec  # at run time, Python 3.8 has none

    Parameters = ParamSpec("Parameters")

Result = TypeVar("Result")

_lock = threading.Lock()
# By the requested device; None: no device was named.
_profilers: dict[Any, GPUMemoryProfiler] = {}


def get_global_profiler(device: Any = None) -> GPUMemoryProfiler:
    """The program's profiler of a device, made at the first call. Raises ConfigurationError as
    GPUMemoryProfiler does."""
    key = None if device is None else parse_device(device)
    with _lock:
        if key not in _profilers:
            made = GPUMemoryProfiler(device=device)
            # One profiler for each device, under all its names, so that its summary is complete.
            same = (each for each in _profilers.values() if _device(each) == _device(made))
            _profilers[key] = next(same, made)
        return _profilers[key]


def _device(profiler: GPUMemoryProfiler) -> str:
    return str(getattr(profiler, "device", None))  # a CPUMemoryProfiler has no device


def _all_profilers() -> list[GPUMemoryProfiler]:
    return list(dict.fromkeys(_profilers.values()))


def set_global_profiler(profiler: GPUMemoryProfiler) -> None:
    """Makes `profiler` the program's profiler for calls without a device."""
    with _lock:
        _profilers[None] = profiler


@overload
def profile_function(
    func: Callable[Parameters, Result],
    *,
    name: str | None = None,
    device: Any = None,
    profiler: GPUMemoryProfiler | None = None,
) -> Callable[Parameters, Result]: ...


@overload
def profile_function(
    func: None = None,
    *,
    name: str | None = None,
    device: Any = None,
    profiler: GPUMemoryProfiler | None = None,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]: ...


def profile_function(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    device: Any = None,
    profiler: GPUMemoryProfiler | None = None,
) -> Any:
    """Decorator: measures each call. `@profile_function`, or with arguments.

    A generator or coroutine is measured from its first step to its end. For type checkers the function keeps
    its signature.

    Args:
        name: of the results; by default the function's
        device: as for GPUMemoryProfiler
        profiler: receives the results; by default the program's own
    """

    def chosen() -> GPUMemoryProfiler:
        return profiler or get_global_profiler(device)

    def by_profiler(function: Callable[..., Any], label: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            returned: list[Any] = []

            def run() -> None:
                returned.append(function(*args, **kwargs))

            run.__name__ = label
            chosen().profile_function(run)
            return returned[0]

        return wrapper

    return profiled(func, name, "unknown_function", chosen, by_profiler)


@contextmanager
def profile_context(
    name: str = "context", device: Any = None, profiler: GPUMemoryProfiler | None = None
) -> Iterator[GPUMemoryProfiler]:
    """Measures the block as a result of the profiler, and yields that profiler."""
    with (profiler or get_global_profiler(device)).profile_context(name) as used:
        yield used


def get_summary() -> dict[str, Any]:
    """The summary of the program's profiler: where no device was named, else the first that was."""
    profilers = _all_profilers()
    used = profilers[0] if profilers and None not in _profilers else get_global_profiler()
    return used.get_summary()


def clear_results() -> None:
    """Deletes the results of the program's profilers."""
    for profiler in _all_profilers():
        profiler.clear_results()


def get_profile_results(limit: int | None = None) -> list[ProfileResult]:
    """The latest `limit` results of the program's profilers, the oldest first; None: all."""
    profilers = _all_profilers()
    results = [result for each in profilers for result in each.results]
    if len(profilers) > 1:
        results.sort(key=lambda result: result.memory_after.timestamp)
    return results if limit is None else results[max(len(results) - limit, 0) :]


def start_monitoring(interval: float | None = None, device: Any = None) -> None:
    """Starts the monitoring of the program's profiler of a device."""
    get_global_profiler(device).start_monitoring(interval)


def stop_monitoring() -> None:
    """Stops the monitoring of all of the program's profilers."""
    for profiler in _all_profilers():
        profiler.stop_monitoring()


__all__ = [
    "clear_results",
    "get_global_profiler",
    "get_profile_results",
    "get_summary",
    "profile_context",
    "profile_function",
    "set_global_profiler",
    "start_monitoring",
    "stop_monitoring",
]
