"""Labels of what a thread does, and marks on the timeline.

Each is one call of a C function of a fraction of a microsecond, so what can be prepared is.
"""

from __future__ import annotations

import sys
from types import TracebackType

from .decorate import Function, guarded
from .recorder import RECORDER
from .texts import c_text

_MOST_PREPARED = 4096  # the capacity of a recording
_prepared: dict[str, bytes] = {}


def _prepare(label: str) -> bytes:
    text = c_text(label)
    if len(_prepared) < _MOST_PREPARED and isinstance(label, str):
        _prepared[label] = text
    return text


_modules = sys.modules


def _is_traced_by_torch() -> bool:
    """Whether torch.compile is tracing this call. A call of a C function would then break its graph.

    A compiled function has no labels: torch runs its graph, not this code. Once torch is imported, this
    function replaces itself by torch's own.
    """
    global _is_traced
    if "torch" not in _modules:
        return False
    check = getattr(getattr(_modules.get("torch"), "compiler", None), "is_dynamo_compiling", None)
    if check is None:
        return False
    if check():  # a constant while it is traced
        return True
    _is_traced = check
    return False


_is_traced = _is_traced_by_torch


class context:
    """Labels what this thread does, such as a step or a request: `with oomrec.context("epoch 3"):`.

    Failures, bundles, events, checkpoints and blocks of 64 KiB and more carry the label. Labels nest, and the
    innermost counts. A thread without a label of its own, such as one of PyTorch's backward threads, has the
    most recent label of any thread. Up to 32,768 different labels may be in use at a time; a label that no
    memory and no recent event has any more makes room for another. While all are in use, further ones become
    `other`.

    As a decorator, `@oomrec.context("load")` labels the function's body. Use this form for a coroutine or
    generator: while the body waits, the thread's other work does not get the label.

    An object may be entered more than once, also by several threads at a time. Costs 0.5 µs. Inside a function
    compiled by torch.compile it does nothing and breaks no graph: put it around the call.
    """

    __slots__ = ("_text",)

    def __init__(self, label: str) -> None:
        if _is_traced():
            self._text = b""
            return
        text = _prepared.get(label)
        self._text = _prepare(label) if text is None else text

    def __enter__(self) -> context:
        if not _is_traced():
            RECORDER.context_push(self._text)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not _is_traced():
            RECORDER.context_pop()

    def __call__(self, function: Function) -> Function:
        # A new object for each call: torch.compile cannot enter one that was made outside.
        label = self._text.decode("utf-8", "replace")
        return guarded(function, lambda: context(label))


def mark(text: str) -> None:
    """Marks this moment on the timeline, such as the end of an epoch.

    The text is cut to 256 bytes. A recording keeps the latest 2,048 marks, and of the older ones as many, an
    even number of marks apart. Inside a function compiled by torch.compile it does nothing.
    """
    if not _is_traced():
        RECORDER.mark(c_text(text))
