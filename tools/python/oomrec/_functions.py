"""The functions and structs of oomrec.h for ctypes, from one table.

Only this module imports ctypes. Some interpreters lack it: a subinterpreter with a GIL of its own may not
be able to load it.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_char, c_char_p, c_int, c_int32, c_uint32, c_uint64
from typing import Any, Callable


class SpaceUsageStruct(ctypes.Structure):
    """struct oomrec_space_usage"""

    _fields_ = [
        ("name", c_char * 16),
        ("live_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("allocated_bytes", c_uint64),
        ("live_count", c_uint64),
    ]


class DeviceUsageStruct(ctypes.Structure):
    """struct oomrec_device_usage"""

    _fields_ = [
        ("kind", c_char * 8),
        ("ordinal", c_int32),
        ("reserved", c_uint32),
        ("uuid", c_char * 48),
        ("name", c_char * 64),
        ("total_bytes", c_uint64),
        ("free_bytes", c_uint64),
        ("used_bytes", c_uint64),
        ("counted_bytes", c_uint64),
        ("limit_bytes", c_uint64),
    ]


class UsageStruct(ctypes.Structure):
    """struct oomrec_usage_info"""

    _fields_ = [
        ("size", c_uint32),
        ("space_count", c_uint32),
        ("device_count", c_uint32),
        ("reserved", c_uint32),
        ("live_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("rss_bytes", c_uint64),
        ("limit_bytes", c_uint64),
        ("used_of_limit_bytes", c_uint64),
        ("headroom_bytes", c_uint64),
        ("limit_kind", c_char * 16),
        ("spaces", SpaceUsageStruct * 16),
        ("devices", DeviceUsageStruct * 16),
    ]


class ExceptionStruct(ctypes.Structure):
    """struct oomrec_exception_info"""

    _fields_ = [
        ("size", c_uint32),
        ("since", c_uint32),
        ("type", c_char_p),
        ("module", c_char_p),
        ("message", c_char_p),
        ("traceback", c_char_p),
        ("context", c_char_p),
        ("metadata_json", c_char_p),
        ("objects_json", c_char_p),
        ("backend", c_char_p),
        ("any_thread", c_uint32),
    ]


class BlockStruct(ctypes.Structure):
    """struct oomrec_block"""

    _fields_ = [
        ("size", c_uint32),
        ("node", c_uint32),
        ("address", c_uint64),
        ("bytes", c_uint64),
        ("birth_realtime_ns", c_uint64),
        ("space", c_char * 16),
    ]


# Name without "oomrec_", result, parameters, and whether a call may take more than a few microseconds.
# Such a call releases the GIL, which costs 0.1 µs.
FUNCTIONS: tuple[tuple[str, Any, tuple[Any, ...], bool], ...] = (
    ("api_version", c_int, (), False),
    ("is_active", c_int, (), False),
    ("dump", c_int, (c_char_p,), True),
    ("set_limit", None, (c_uint64,), False),
    ("set_dumps", c_int, (c_char_p, c_uint32, c_uint64), False),
    ("context_push", None, (c_char_p,), False),
    ("context_pop", None, (), False),
    ("mark", None, (c_char_p,), False),
    ("usage", c_int, (ctypes.POINTER(UsageStruct),), True),
    ("last_bundle", c_uint32, (c_char_p, c_uint32), False),
    ("last_failure", c_uint32, (), False),
    ("failures", c_uint32, (), False),
    ("failure_bundle", c_uint32, (c_char_p, c_uint32), False),
    ("exception", c_int, (ctypes.POINTER(ExceptionStruct), c_char_p, c_uint32), True),
    ("dump_with", c_int, (c_char_p, c_char_p, c_char_p, c_uint32), True),
    ("notify_at", c_int, (c_uint32, c_int), False),
    ("wait", c_uint32, (c_uint32, c_uint32), True),
    ("wake", None, (), False),
    ("block_of", c_int, (c_uint64, ctypes.POINTER(BlockStruct)), False),
    ("stack_text", c_uint32, (c_uint32, c_char_p, c_uint32), False),
    ("start", c_int, (), True),
    ("missing", c_char_p, (), False),
    ("tick", None, (), True),
    ("watermark_begin", None, (), False),
    ("watermark", c_uint64, (c_int,), False),
    (
        "note_device",
        None,
        (c_char_p, c_int32, c_char_p, c_uint64, c_uint64, c_uint64, c_uint64),
        False,
    ),
)


def is_in_process() -> bool:
    """Whether the library was preloaded, or linked, into this process."""
    return hasattr(ctypes.CDLL(None), "oomrec_api_version")


def bind(path: str | None) -> dict[str, Callable[..., Any]]:
    """The functions of the library at `path`, or of the one that this process started with (None).

    Raises OSError if it cannot be loaded.
    """
    slow, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
    bound: dict[str, Callable[..., Any]] = {}
    for name, result, parameters, is_slow in FUNCTIONS:
        library = slow if is_slow else quick
        try:
            function = library["oomrec_" + name]
        except AttributeError:
            continue
        function.restype = result
        function.argtypes = parameters
        bound[name] = function
    return bound


@functools.lru_cache(maxsize=None)
def _buffer_type(bytes_count: int) -> Any:
    return ctypes.c_char * bytes_count


def text_buffer(bytes_count: int) -> Any:
    """A buffer for a C function to write text into; `.value` is the text."""
    return _buffer_type(bytes_count)()


def size_of(struct: ctypes.Structure) -> int:
    return ctypes.sizeof(struct)


def reference(struct: ctypes.Structure) -> Any:
    return ctypes.byref(struct)
