"""The structs of oomrec.h for ctypes, and its functions, bound as library.py lists them.

Only this module imports ctypes. Some interpreters lack it: a subinterpreter with a GIL of its own may not
be able to load it.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_char, c_char_p, c_int, c_int32, c_uint32, c_uint64
from typing import Any, Callable

from .library import Functions


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


# The words of the list of functions (`Functions` in library.py).
_TYPES: dict[str, Any] = {
    "None": None,
    "Int": c_int,
    "Int32": c_int32,
    "U32": c_uint32,
    "U64": c_uint64,
    "Text": c_char_p,
    "TextOrNull": c_char_p,
    "Buffer": c_char_p,
    "UsageStruct": ctypes.POINTER(UsageStruct),
    "ExceptionStruct": ctypes.POINTER(ExceptionStruct),
    "BlockStruct": ctypes.POINTER(BlockStruct),
}


def is_in_process() -> bool:
    """Whether the library was preloaded, or linked, into this process."""
    return hasattr(ctypes.CDLL(None), "oomrec_api_version")


def bind(path: str | None) -> dict[str, Callable[..., Any]]:
    """The functions of the library at `path`, or of the one that this process started with (None).

    Raises OSError if it cannot be loaded.
    """
    libraries = {"Slow": ctypes.CDLL(path), "Quick": ctypes.PyDLL(path)}
    bound: dict[str, Callable[..., Any]] = {}
    for name, signature in Functions.__annotations__.items():  # "Quick[[U32, Int], None]"
        kind, words = signature.split("[[")
        parameters, result = words[:-1].split("]")
        try:
            function = libraries[kind]["oomrec_" + name]
        except AttributeError:
            continue
        function.argtypes = [_TYPES[word] for word in parameters.split(", ") if word]
        function.restype = _TYPES[result[2:]]
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
