"""Who holds an array: the living Python objects, looked through from the program's variables on.

In this order, since the time may be limited: local variables of all threads and of the exception
that is being handled, globals of the program's own modules, what these lead to, and then everything
that the garbage collector knows. NumPy arrays are not among the latter, so they are looked for in
what the containers refer to.

All references are dropped by `close()`. Looking at a frame's variables leaves a dictionary with
references to all of them in the frame (before Python 3.13): it is emptied, unless the program holds
that dictionary itself.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any, Dict

from ._buffers import TORCH, Libraries

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: local variables live in slots, f_locals is a copy
# Containers looked at between two looks at the clock, and at once where only their types count.
_STEPS, _CHUNK = 64, 1000
# To ask the garbage collector for everything cannot be interrupted: 40 to 60 ns for each object that
# it tracks, which are up to half of all. In seconds for each block of Python's allocator:
_WHOLE_HEAP_S = 50e-9

# These lead out of the program's data: into code, and into all that is imported.
PASSED_BY = frozenset(
    [
        *(type, types.ModuleType, types.CodeType, types.BuiltinFunctionType),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
        *(types.MethodDescriptorType, types.TracebackType),
    ]
)

# The garbage collector does not track those that hold nothing that it tracks, as NumPy's arrays.
_UNTRACKED = (dict, tuple)


class Holder:
    """Something that refers to an array, or to something that does."""

    __slots__ = ("is_graph", "parent", "thing", "where")

    def __init__(self, thing: Any, parent: Holder | None, where: str = "", is_graph: bool = False):
        self.thing = thing
        self.parent = parent
        self.where = where  # of variables: the frame; of globals: the module
        self.is_graph = is_graph  # a node of autograd's graph


class Variables(Dict[str, Any]):
    """A copy of a frame's local variables."""


class Scan:
    """One look through the program's objects, until `deadline` (time.thread_time)."""

    def __init__(self, libraries: Libraries, deadline: float):
        self.complete = True
        self.arrays: dict[int, Any] = {}  # by id
        # id of an array → who refers to it, and by what name if that is not to be looked up
        self.edges: dict[int, list[tuple[Holder, str]]] = {}
        self._libraries = libraries
        self._deadline = deadline
        self._seen: set[int] = {id(self), id(self.arrays), id(self.edges)}
        self._waiting: list[Holder] = []
        self._frames: set[int] = set()
        self._modules: list[Holder] = []  # globals of installed packages

    def run(self) -> None:
        self._roots()
        if self._from_roots():
            self._rest()

    def close(self) -> None:
        for holder in self._waiting:
            if type(holder.thing) is Variables:
                holder.thing.clear()
        self.arrays.clear()
        self.edges.clear()
        self._waiting.clear()
        self._modules.clear()

    def is_late(self) -> bool:
        if time.thread_time() < self._deadline:
            return False
        self.complete = False
        return True

    def find_owners(self, holders: list[Holder]) -> None:
        """Looks up what refers to those that no variable led to: the instance or class of a dict."""
        lost = {id(each.thing): each for each in holders if each.parent is None and not each.where}
        if not lost or not self._has_time_for_all():
            return
        for owner in gc.get_referrers(*(each.thing for each in lost.values())):
            if isinstance(owner, type):
                where = f"class {owner.__module__}.{owner.__qualname__}"
            elif type(owner) in (Holder, types.FrameType) or id(owner) in self._own_things():
                continue
            else:
                where = ""
            for thing in gc.get_referents(owner):
                holder = lost.get(id(thing))
                if holder is not None and holder.parent is None:
                    holder.parent = Holder(owner, None, where)

    def _own_things(self) -> set[int]:
        return {id(each) for each in (self.arrays, self.edges, self._waiting, self._modules)}

    def _has_time_for_all(self) -> bool:
        return time.thread_time() + _WHOLE_HEAP_S * sys.getallocatedblocks() < self._deadline

    def _roots(self) -> None:
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
                which = self._waiting if _is_own(name, names) else self._modules
                which.append(Holder(names, None, f"module {name}"))

    def _from_roots(self) -> bool:
        """Breadth first: what is near to a variable is found first. Whether all was seen."""
        done = 0
        while done < len(self._waiting):
            if done % _STEPS == 0 and self.is_late():
                return False
            self._look_into(self._waiting[done], True)
            done += 1
        return True

    def _look_into(self, holder: Holder, follows: bool) -> None:
        kind_of, seen = self._libraries.kind, self._seen
        for count, thing in enumerate(gc.get_referents(holder.thing)):
            if count % _CHUNK == _CHUNK - 1 and self.is_late():
                return
            cls = type(thing)
            kind = kind_of(cls)
            if kind is not None:
                self._found(thing, kind, holder, "")
            if not follows or cls in PASSED_BY or id(thing) in seen:
                continue
            if not gc.is_tracked(thing) and cls not in _UNTRACKED:
                continue
            if type in cls.__mro__:  # a class with a metaclass
                continue
            if cls is types.FrameType and (id(thing) in self._frames or _is_ours(thing)):
                continue  # running; before Python 3.11 a generator refers to its frame
            seen.add(id(thing))
            self._waiting.append(Holder(thing, holder))

    def _found(self, array: Any, kind: str, holder: Holder, name: str) -> None:
        is_new = id(array) not in self.arrays
        self.arrays[id(array)] = array
        edges = self.edges.setdefault(id(array), [])
        if not any(known.thing is holder.thing for known, _ in edges):
            edges.append((holder, name))
        if is_new and kind == TORCH:
            self._beside(array, Holder(array, holder))

    def _beside(self, tensor: Any, holder: Holder) -> None:
        """What a tensor keeps alive that its Python object does not refer to: gradient, graph."""
        torch = self._libraries.torch
        try:
            with torch._C.DisableTorchFunctionSubclass():
                gradient = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
                node = tensor.grad_fn
        except (AttributeError, NotImplementedError, RuntimeError):
            return
        if gradient is not None:
            self._found(gradient, TORCH, holder, ".grad")
        if node is not None:
            for function, saved, name in _saved_in_graph(node, self._seen, self.is_late):
                self._found(saved, TORCH, Holder(function, holder, is_graph=True), name)

    def _rest(self) -> None:
        """Everything else that the garbage collector tracks: types first, then who it is."""
        if not self._has_time_for_all():
            self.complete = False
            return
        for holder in self._modules:
            self._look_into(holder, False)
        kind_of = self._libraries.kind
        tracked = gc.get_objects()
        for begin in range(0, len(tracked), _CHUNK):
            if self.is_late():
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
                        self._look_into(Holder(thing, None), False)
            for thing in chunk:
                kind = kind_of(type(thing))
                if kind is not None and id(thing) not in self.arrays:
                    self.arrays[id(thing)] = thing  # held by code in C++, or by an unreachable ring
                    self.edges.setdefault(id(thing), [])


def _frames() -> list[tuple[types.FrameType, str]]:
    """Of every thread, the innermost first, and of the exception that is being handled.

    No variable of ours may refer to a frame of ours when it returns: that would be a cycle, in which
    the program's frames would stay.
    """
    here = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: list[tuple[types.FrameType, str]] = []
    told: set[int] = set()

    def add(frame: types.FrameType, words: str) -> None:
        if id(frame) not in told and not _is_ours(frame):
            told.add(id(frame))
            found.append((frame, words))

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
    """A copy of the local variables; None where they are the globals, which are looked at anyway."""
    if not frame.f_code.co_flags & _OPTIMIZED and frame.f_locals is frame.f_globals:
        return None
    names = frame.f_locals
    copy = Variables(names)
    # Three references: the frame's, this function's, and getrefcount's argument. One more is the
    # program's own, which called locals().
    if type(names) is dict and frame.f_code.co_flags & _OPTIMIZED and sys.getrefcount(names) <= 3:
        names.clear()
    return copy


def _is_own(name: str, names: dict[str, Any]) -> bool:
    """Whether a module is the program's: neither Python's nor an installed package's, nor ours."""
    if name == "__main__":
        return True
    file = names.get("__file__")
    if not isinstance(file, str):
        return False
    return not (
        file.startswith((_HERE, _STANDARD_LIBRARY)) or any(part in file for part in _INSTALLED)
    )


def _saved_in_graph(node: Any, seen: set[int], is_late: Any) -> Iterator[tuple[Any, Any, str]]:
    """Tensors that autograd saved for the backward pass: (function, tensor, name).

    One that was saved through hooks (checkpointing, offloading) is not unpacked: that may compute it
    again. Versions of torch that do not tell are not asked.
    """
    waiting = [node]
    steps = 0
    while waiting:
        function = waiting.pop()
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        steps += 1
        if steps % _STEPS == 0 and is_late():
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
