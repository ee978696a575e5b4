"""Decides which exceptions count as lack of memory for a flight recorder: those of `oomrec.classify`, and
RuntimeErrors whose message says so.

GPU Memory Profiler classifies by words in the message, and its programs simulate an OOM by raising a
RuntimeError with such words. They count here, too, but only if they are about memory: "seat allocation
failed for user 7" and "gRPC resource exhausted: quota" are not.
"""

from __future__ import annotations

import re

from ..classify import OOMExceptionClassification
from ..classify import classify_oom_exception as classify_by_table

_TENSORFLOW = "tensorflow.ResourceExhaustedError"

# For RuntimeErrors: the words in the reason, and the pattern that the message must contain.
_WORDS = (
    ("out of memory", re.compile(r"\bout of memory\b", re.IGNORECASE)),
    (
        "resource exhausted",
        re.compile(r"\bresource exhausted: .*\b(OOM|memory|allocat)", re.IGNORECASE),
    ),
    (
        "failed to allocate",
        re.compile(r"\bfailed to allocate .*(\bmemory\b|\bbytes\b|\d ?[KMGT]i?B\b)", re.IGNORECASE),
    ),
    (
        "allocation failed",
        re.compile(
            r"\b(memory|tensor|buffer|device|cuda|hip|gpu) allocation failed", re.IGNORECASE
        ),
    ),
)
_MOST_CHARACTERS = 65536


def classify_oom_exception(exc: BaseException) -> OOMExceptionClassification:
    """Decides whether an exception is for lack of memory, and names the rule that matched.

    As `oomrec.classify_oom_exception`, and also RuntimeErrors whose message says that memory
    ran out, and ResourceExhaustedError of any module, if its message names a tensor.
    """
    found = classify_by_table(exc)
    if found.is_oom:
        return found
    try:
        message = str(exc)[:_MOST_CHARACTERS]
    except Exception:  # raised by its own __str__
        return found
    if type(exc).__name__.endswith("ResourceExhaustedError") and "OOM" in message:
        return OOMExceptionClassification(True, _TENSORFLOW)
    if isinstance(exc, RuntimeError):
        for words, pattern in _WORDS:
            if pattern.search(message):
                return OOMExceptionClassification(True, f"message_pattern:{words}")
    return found
