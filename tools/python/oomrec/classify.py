"""Decides whether an exception is for lack of memory: `classify_oom_exception`.

It imports no library: types are identified by the names of their bases, which also works for an exception
from another process. The libraries' exceptions are in a table (_impl/oom_table.py). A worker's death proves
nothing by itself, so its own recording decides (_impl/oom_children.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ._impl import oom_children, oom_table

# Compiled at import: there may be no memory for it later.
_TEXTS = tuple((row, re.compile(row.pattern)) for row in oom_table.TEXTS)
_NOT_MEMORY = tuple(re.compile(pattern) for pattern in oom_table.NOT_MEMORY)
# Texts can be long (XLA appends its buffers). The patterns match at the beginning or in the last line.
_TEXT_CHARACTERS = 65536
# A longer chain of causes is a data structure of the program, not a history of errors.
_MOST_EXCEPTIONS = 1000


@dataclass(frozen=True)
class OOMExceptionClassification:
    """The result of `classify_oom_exception`.

    Attributes:
        is_oom: whether the exception is for lack of memory
        reason: the rule that matched ("MemoryError", "errno:ENOMEM", "message_pattern:…"); None if none did
    """

    is_oom: bool
    reason: str | None


def classify_oom_exception(exc: BaseException) -> OOMExceptionClassification:
    """Decides whether an exception is for lack of memory, of the host or of a device.

    It also searches causes, contexts (unless `raise … from` hid them) and the members of exception groups.
    Type names and result codes take precedence over message texts.

    Some exceptions say only that a child process died (BrokenProcessPool, exit status -9). They count if the
    child's recording shows that it died for lack of memory. For these the command `oomrec` runs, which takes
    some milliseconds.

    Args:
        exc: the exception; it is not changed, and no reference to it is kept

    Returns:
        whether it is, and the reason

    Never raises because of the exception: one whose `__str__` fails counts as having no text.
    """
    for each in _with_its_causes(exc):
        reason = _reason_of(each)
        if reason is not None:
            return OOMExceptionClassification(True, reason)
    return OOMExceptionClassification(False, None)


def _with_its_causes(exc: BaseException) -> Iterator[BaseException]:
    waiting = [exc]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_EXCEPTIONS:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting.extend(_members(each))
        if isinstance(each.__cause__, BaseException):
            waiting.append(each.__cause__)
        if not each.__suppress_context__ and isinstance(each.__context__, BaseException):
            waiting.append(each.__context__)


def _members(exc: BaseException) -> list[BaseException]:
    """The members of an exception group: Python's own, or the package exceptiongroup's."""
    names = {
        ((base.__module__ or "").split(".", 1)[0], base.__name__) for base in type(exc).__mro__
    }
    groups = {("builtins", "BaseExceptionGroup"), ("exceptiongroup", "BaseExceptionGroup")}
    if not names & groups:
        return []
    members = getattr(exc, "exceptions", ())
    return [each for each in members if isinstance(each, BaseException)]


def _reason_of(exc: BaseException) -> str | None:
    bases = [(base.__module__ or "", base.__name__) for base in type(exc).__mro__]
    text = _text_of(exc)
    return (
        _by_type(bases, text)
        or _by_code(exc, bases)
        or _by_text([name for _, name in bases], text)
        or _by_traceback(text)
        or oom_children.reason_of(exc, text)
    )


def _text_of(exc: BaseException) -> str:
    try:
        return str(exc)[:_TEXT_CHARACTERS]
    except Exception:  # raised by its own __str__, or no memory for the text
        return ""


def _is_about_something_else(text: str) -> bool:
    return any(pattern.match(text) for pattern in _NOT_MEMORY)


def _by_type(bases: list[tuple[str, str]], text: str) -> str | None:
    for module, name in bases:
        package = module.split(".", 1)[0]
        for row in oom_table.TYPES:
            if row.package == package and name in row.names:
                return None if _is_about_something_else(text) else row.reason
    return None


def _by_code(exc: BaseException, bases: list[tuple[str, str]]) -> str | None:
    names = {(module.split(".", 1)[0], name) for module, name in bases}
    for row in oom_table.CODES:
        if (row.package, row.name) in names:
            try:
                code = int(getattr(exc, row.attribute))
            except (AttributeError, TypeError, ValueError):
                continue
            if code in row.codes:
                return row.reason
    return None


def _by_text(names: list[str], text: str) -> str | None:
    if not text or _is_about_something_else(text):
        return None
    for row, pattern in _TEXTS:
        if any(name in row.types for name in names) and pattern.match(text):
            return row.reason
    return None


# The line that a printed traceback ends with: "torch.OutOfMemoryError: CUDA out of memory. …"
_LAST_LINE = re.compile(r"^((?:\w+\.)*)(\w+)(?:: (.*))?$", re.M)


def _by_traceback(text: str) -> str | None:
    """The reason of another process' or thread's exception, which arrived as a printed traceback.

    multiprocessing and PyTorch's workers ("Caught RuntimeError in DataLoader worker process 0.") raise an
    exception with that text. Its lines after the frames are classified like the original exception.
    """
    _, found, traceback = text.rpartition("raceback (most recent call last):\n")
    if not found:
        return None
    for line in _LAST_LINE.finditer(traceback):
        module, name, message = line.group(1).rstrip("."), line.group(2), line.group(3) or ""
        bases = [(module or "builtins", name)]
        reason = _by_type(bases, message) or _by_text([name], message) or _errno_of(name, message)
        if reason is not None:
            return reason
    return None


def _errno_of(name: str, message: str) -> str | None:
    if name in ("OSError", "IOError") and message.startswith("[Errno 12]"):
        return "errno:ENOMEM"
    return None
