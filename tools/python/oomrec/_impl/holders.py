"""Finds who holds an array, by a scan of the living Python objects that starts at the program's variables.

The time may be limited, so the scan follows this order: local variables of all threads and of the exception
being handled, globals of the program's own modules, everything reachable from these, and last everything
that the garbage collector tracks. The collector does not track NumPy arrays, so the scan finds them as
referents of their containers.

`close()` drops all references. Before Python 3.13, reading a frame's variables leaves a dictionary in the
frame that refers to all of them. The scan empties it, unless the program holds that dictionary itself.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, Dict

from .buffers import TORCH, Libraries

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of the package
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: local variables live in slots, f_locals is a copy
# Containers scanned between two reads of the clock, and containers compared by type in one batch.
_STEPS, _CHUNK = 64, 1000
# Listing every tracked object cannot be interrupted. It takes 40 to 60 ns for each, and up to half of all
# objects are tracked. Seconds per block of Python's allocator:
_WHOLE_HEAP_S = 50e-9

# Not followed: these lead out of the program's data, into code and everything imported.
EXCLUDED_TYPES = frozenset(
    [
        *(type, types.ModuleType, types.CodeType, types.BuiltinFunctionType),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
        *(types.MethodDescriptorType, types.TracebackType),
    ]
)

# The garbage collector does not track these if they hold only untracked objects, such as NumPy arrays.
_UNTRACKED = (dict, tuple)


class Holder:
    """Something that refers to an array, or to something that does."""

    __slots__ = ("is_graph", "parent", "thing", "where")

    def __init__(self, thing: Any, parent: Holder | None, where: str = "", is_graph: bool = False):
        self.thing = thing
        self.parent = parent
        self.where = where  # variables: their frame; globals: their module
        self.is_graph = is_graph  # a node of autograd's graph


class Variables(Dict[str, Any]):
    """A copy of a frame's local variables."""


class Scan:
    """One scan of the program's objects, until `deadline` (time.thread_time)."""

    def __init__(self, libraries: Libraries, deadline: float):
        self.complete = True
        self.arrays: dict[int, Any] = {}  # by id
        # id of an array → its holders, each with the reference's name where that is already certain
        self.edges: dict[int, list[tuple[Holder, str]]] = {}
        self._libraries = libraries
        self._deadline = deadline
        self._seen: set[int] = {id(self), id(self.arrays), id(self.edges)}
        self._waiting: list[Holder] = []
        self._frames: set[int] = set()
        self._modules: list[Holder] = []  # globals of installed packages

    def run(self) -> None:
        self._add_roots()
        if self._scan_from_roots():
            self._scan_heap()

    def close(self) -> None:
        for holder in self._waiting:
            if type(holder.thing) is Variables:
                holder.thing.clear()
        self.arrays.clear()
        self.edges.clear()
        self._waiting.clear()
        self._modules.clear()

    def is_out_of_time(self) -> bool:
        if time.thread_time() < self._deadline:
            return False
        self.complete = False
        return True

    def find_owners(self, holders: list[Holder]) -> None:
        """Finds the parents of holders that no variable led to: the instance or class of a dict."""
        orphans = {
            id(each.thing): each for each in holders if each.parent is None and not each.where
        }
        if not orphans or not self._has_time_for_heap():
            return
        for owner in gc.get_referrers(*(each.thing for each in orphans.values())):
            if isinstance(owner, type):
                where = f"class {owner.__module__}.{owner.__qualname__}"
            elif type(owner) in (Holder, types.FrameType) or id(owner) in self._own_things():
                continue
            else:
                where = ""
            for thing in gc.get_referents(owner):
                holder = orphans.get(id(thing))
                if holder is not None and holder.parent is None:
                    holder.parent = Holder(owner, None, where)

    def _own_things(self) -> set[int]:
        return {id(each) for each in (self.arrays, self.edges, self._waiting, self._modules)}

    def _has_time_for_heap(self) -> bool:
        return time.thread_time() + _WHOLE_HEAP_S * sys.getallocatedblocks() < self._deadline

    def _add_roots(self) -> None:
        modules = [
            (name, module)
            for name, module in list(sys.modules.items())
            if type(module) is types.ModuleType
        ]
        frames = _frames()
        for frame, _ in frames:
            self._frames.add(id(frame))
        while frames:
            frame, thread = frames.pop(0)
            code = frame.f_code
            where = f"{code.co_filename}:{frame.f_lineno} {code.co_name}{thread}"
            variables = variables_of(frame)
            if variables is not None:
                self._waiting.append(Holder(variables, None, where))
            del frame, variables
        for name, module in modules:
            names = vars(module)
            if id(names) not in self._seen:
                self._seen.add(id(names))
                which = self._waiting if _is_program_module(name, names) else self._modules
                which.append(Holder(names, None, f"module {name}"))

    def _scan_from_roots(self) -> bool:
        """Breadth first, so that what is close to a variable is found first. False if time ran out."""
        done = 0
        while done < len(self._waiting):
            if done % _STEPS == 0 and self.is_out_of_time():
                return False
            self._scan_container(self._waiting[done], True)
            done += 1
        return True

    def _scan_container(self, holder: Holder, follows: bool) -> None:
        """Records the arrays that `holder` refers to. `follows`: also queues its other referents."""
        kind_of, seen = self._libraries.kind, self._seen
        for count, thing in enumerate(gc.get_referents(holder.thing)):
            if count % _CHUNK == _CHUNK - 1 and self.is_out_of_time():
                return
            cls = type(thing)
            kind = kind_of(cls)
            if kind is not None:
                self._add_edge(thing, kind, holder, "")
            if not follows or cls in EXCLUDED_TYPES or id(thing) in seen:
                continue
            if not gc.is_tracked(thing) and cls not in _UNTRACKED:
                continue
            if type in cls.__mro__:  # a class with a metaclass
                continue
            if cls is types.FrameType and (id(thing) in self._frames or _is_ours(thing)):
                continue  # its variables are roots; before Python 3.11 a generator refers to its frame
            seen.add(id(thing))
            self._waiting.append(Holder(thing, holder))

    def _add_edge(self, array: Any, kind: str, holder: Holder, name: str) -> None:
        is_new = id(array) not in self.arrays
        self.arrays[id(array)] = array
        edges = self.edges.setdefault(id(array), [])
        if not any(each.thing is holder.thing for each, _ in edges):
            edges.append((holder, name))
        if is_new and kind == TORCH:
            self._add_gradient_and_graph(array, Holder(array, holder))

    def _add_gradient_and_graph(self, tensor: Any, holder: Holder) -> None:
        """Adds what a tensor keeps alive in C++, where the garbage collector does not see it."""
        torch = self._libraries.torch
        try:
            with torch._C.DisableTorchFunctionSubclass():
                gradient = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
                node = tensor.grad_fn
        except (AttributeError, NotImplementedError, RuntimeError):
            return
        if gradient is not None:
            self._add_edge(gradient, TORCH, holder, ".grad")
        if node is not None:
            for function, saved, name in _saved_in_graph(node, self._seen, self.is_out_of_time):
                self._add_edge(saved, TORCH, Holder(function, holder, is_graph=True), name)

    def _scan_heap(self) -> None:
        """Scans everything else that the garbage collector tracks.

        Compares the types of a whole batch first, and scans its containers only if an array is among them.
        """
        if not self._has_time_for_heap():
            self.complete = False
            return
        for holder in self._modules:
            self._scan_container(holder, False)
        kind_of = self._libraries.kind
        tracked = gc.get_objects()
        for begin in range(0, len(tracked), _CHUNK):
            if self.is_out_of_time():
                break
            chunk = tracked[begin : begin + _CHUNK]
            referents = gc.get_referents(*chunk)
            untracked = [
                thing
                for thing in referents
                if type(thing) in _UNTRACKED and not gc.is_tracked(thing)
            ]
            types_within = set(map(type, referents)) | set(map(type, gc.get_referents(*untracked)))
            if any(kind_of(cls) is not None for cls in types_within):
                for thing in (*chunk, *untracked):
                    if id(thing) not in self._seen and type(thing) not in (Holder, types.FrameType):
                        self._scan_container(Holder(thing, None), False)
            for thing in chunk:
                kind = kind_of(type(thing))
                if kind is not None and id(thing) not in self.arrays:
                    self.arrays[id(thing)] = thing  # held by C++ code, or by an unreachable cycle
                    self.edges.setdefault(id(thing), [])


def _frames() -> list[tuple[types.FrameType, str]]:
    """The frames of every thread, innermost first, and those of the exception being handled.

    None of our variables may refer to one of our frames on return: that cycle would keep the program's
    frames alive.
    """
    here = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: list[tuple[types.FrameType, str]] = []
    added: set[int] = set()

    def add(frame: types.FrameType, suffix: str) -> None:
        if id(frame) not in added and not _is_ours(frame):
            added.add(id(frame))
            found.append((frame, suffix))

    innermost = sys._current_frames()
    frame: types.FrameType | None
    while innermost:
        ident, frame = innermost.popitem()
        thread = "" if ident == here else f", thread {names.get(ident, ident)}"
        while frame is not None:
            add(frame, thread)
            frame = frame.f_back
    handled = sys.exc_info()[1]
    seen: set[int] = set()
    while handled is not None and id(handled) not in seen:
        seen.add(id(handled))
        traceback = handled.__traceback__
        while traceback is not None:
            add(traceback.tb_frame, ", in the traceback")
            traceback = traceback.tb_next
        handled = handled.__cause__ or handled.__context__
    return found


def _is_ours(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_HERE)


def variables_of(frame: types.FrameType) -> Variables | None:
    """A copy of the local variables; None where they are the globals, which are scanned separately."""
    if not frame.f_code.co_flags & _OPTIMIZED and frame.f_locals is frame.f_globals:
        return None
    names = frame.f_locals
    copy = Variables(names)
    # Three references: the frame's, this function's, and getrefcount's argument. A fourth means that
    # the program called locals() and keeps the result.
    if type(names) is dict and frame.f_code.co_flags & _OPTIMIZED and sys.getrefcount(names) <= 3:
        names.clear()
    return copy


def _is_program_module(name: str, names: dict[str, Any]) -> bool:
    """Whether a module is the program's own: not the standard library's, an installed package's or ours."""
    if name == "__main__":
        return True
    file = names.get("__file__")
    if not isinstance(file, str):
        return False
    return not (
        file.startswith((_HERE, _STANDARD_LIBRARY)) or any(part in file for part in _INSTALLED)
    )


def _saved_in_graph(
    node: Any, seen: set[int], is_out_of_time: Callable[[], bool]
) -> Iterator[tuple[Any, Any, str]]:
    """Tensors that autograd saved for the backward pass: (function, tensor, name).

    Skips tensors saved through hooks (checkpointing, offloading): unpacking may recompute them. Also skips
    versions of torch that do not say whether there is a hook.
    """
    waiting = [node]
    steps = 0
    while waiting:
        function = waiting.pop()
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        steps += 1
        if steps % _STEPS == 0 and is_out_of_time():
            return
        for attribute in dir(type(function)):
            if not attribute.startswith("_raw_saved_"):
                continue
            try:
                packed = getattr(function, attribute)
                for each in packed if isinstance(packed, tuple) else (packed,):
                    if each.unpack_hook is None and each.data is not None:
                        yield function, each.data, attribute.replace("_raw", "", 1)
            except (AttributeError, RuntimeError):
                continue
        waiting.extend(following for following, _ in function.next_functions)
