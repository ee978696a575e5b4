"""TensorFlowProfiler for whole trainings and inferences, and decorators with one profiler for the program."""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterator, TypeVar, overload

from ..gpumemprof._profiling import profiled
from ._tensorflow import tensorflow
from .profiler import ProfileResult, TFMemoryProfiler

if TYPE_CHECKING:
    from typing_extensions import ParamSpec  # at run time, Python 3.8 has none

    Parameters = ParamSpec("Parameters")

Result = TypeVar("Result")

_lock = threading.Lock()
_profiler: TFMemoryProfiler | None = None


def get_global_profiler() -> TFMemoryProfiler:
    """The program's profiler, made at the first call."""
    global _profiler
    with _lock:
        if _profiler is None:
            _profiler = TFMemoryProfiler()
        return _profiler


def set_global_profiler(profiler: TFMemoryProfiler | None) -> None:
    """Makes `profiler` the program's profiler; None: a new one at the next use."""
    global _profiler
    with _lock:
        _profiler = profiler


@overload
def profile_function(
    func: Callable[Parameters, Result],
    *,
    profiler: TFMemoryProfiler | None = None,
    name: str | None = None,
) -> Callable[Parameters, Result]: ...


@overload
def profile_function(
    func: None = None,
    *,
    profiler: TFMemoryProfiler | None = None,
    name: str | None = None,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]: ...


def profile_function(
    func: Callable[..., Any] | None = None,
    *,
    profiler: TFMemoryProfiler | None = None,
    name: str | None = None,
) -> Any:
    """Decorator: measures each call as a block. `@profile_function`, or with arguments.

    A generator or coroutine is measured from its first step to its end. For type checkers the function keeps
    its signature.

    Args:
        profiler: receives the measurement; by default the program's own
        name: of the block; by default the function's
    """

    def chosen() -> TFMemoryProfiler:
        return profiler or get_global_profiler()

    def by_profiler(function: Callable[..., Any], label: str) -> Callable[..., Any]:
        @functools.wraps(function, updated=())  # not a class's attributes, such as its __call__
        def labelled(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        labelled.__name__ = label

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return chosen().profile_function(labelled)(*args, **kwargs)

        return wrapper

    return profiled(func, name, "function", chosen, by_profiler)


@contextmanager
def profile_context(
    name: str = "context", profiler: TFMemoryProfiler | None = None
) -> Iterator[TFMemoryProfiler]:
    """Measures the block into the profiler, and yields that profiler."""
    with (profiler or get_global_profiler()).profile_context(name) as used:
        yield used


class TensorFlowProfiler:
    """Profiles training and inference, step by step.

    Args:
        device: "/GPU:0", "/CPU:0", None for what TensorFlow has

    Raises:
        ConfigurationError: (a RuntimeError) there is no such device
    """

    def __init__(self, device: str | None = None) -> None:
        self.profiler = TFMemoryProfiler(device=device)
        set_global_profiler(self.profiler)

    def profile_training(
        self, model: Any, dataset: Any, epochs: int = 1, steps_per_epoch: int | None = None
    ) -> None:
        """Trains on the batches of `dataset`, `steps_per_epoch` of them if given.

        A batch (x, y) goes to `model.train_on_batch`, else a batch to `model.train_step`, else to a
        step with the model's own loss and optimizer. Blocks: training, epoch_N, step_N.
        """
        with self.profiler.profile_context("training"):
            for epoch in range(epochs):
                with self.profiler.profile_context(f"epoch_{epoch}"):
                    for step, batch in enumerate(dataset):
                        if steps_per_epoch is not None and step >= steps_per_epoch:
                            break
                        with self.profiler.profile_context(f"step_{step}"):
                            _train(model, batch)

    def profile_inference(self, model: Any, data: Any, batch_size: int = 32) -> None:
        """Calls `model(batch, training=False)` for all of `data`, `batch_size` rows at a time.

        `data`: a tf.data.Dataset of rows, or an array or tensor. Blocks: inference, inference_batch_N.
        Raises ValueError for a batch size below 1.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size!r}")
        with self.profiler.profile_context("inference"):
            for number, batch in enumerate(_batches(data, batch_size)):
                with self.profiler.profile_context(f"inference_batch_{number}"):
                    model(batch, training=False)

    def profile_context(self, name: str) -> ContextManager[TFMemoryProfiler]:
        """Measures a block under `name`."""
        return self.profiler.profile_context(name)

    def get_results(self) -> ProfileResult:
        """All results since the start, or the last `reset`."""
        return self.profiler.get_results()

    def reset(self) -> None:
        """Deletes all results."""
        self.profiler.reset()


def _train(model: Any, batch: Any) -> None:
    is_pair = isinstance(batch, (tuple, list)) and len(batch) == 2
    if is_pair and hasattr(model, "train_on_batch"):
        model.train_on_batch(batch[0], batch[1])
        return
    if hasattr(model, "train_step"):
        model.train_step(batch)
        return
    inputs, target = batch if is_pair else (batch, batch)
    with tensorflow("profile_training").GradientTape() as tape:
        loss = model.compiled_loss(target, model(inputs, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))


def _batches(data: Any, batch_size: int) -> Iterator[Any]:
    if hasattr(data, "batch"):
        for batch in data.batch(batch_size):
            # In a dataset of (row, label) only the rows are the model's input.
            yield batch[0] if isinstance(batch, tuple) else batch
        return
    rows = len(data) if hasattr(data, "__len__") else int(data.shape[0])
    for start in range(0, rows, batch_size):
        yield data[start : start + batch_size]


__all__ = [
    "TensorFlowProfiler",
    "get_global_profiler",
    "profile_context",
    "profile_function",
    "set_global_profiler",
]
