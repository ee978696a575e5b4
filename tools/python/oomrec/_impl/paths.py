"""Names the reference to an array as the program would write it: `history[3]`, `self.cache['x']`."""

from __future__ import annotations

import gc
import types
from collections import deque
from typing import Any, NamedTuple

from .holders import EXCLUDED_TYPES, Holder, Variables, variables_of

_LONGEST_KEY = 40
_MOST_ELEMENTS = 100_000  # compared in one container
_MOST_STEPS = 500  # in the search for a cycle
_OWNERS = 3  # owners tested for a cycle, from the container outwards
_PLAIN = (str, bytes, int, float, bool, type(None))
# The attributes in which functions, cells, partials and the like keep their references.
_ATTRIBUTES = (
    *("__self__", "__closure__", "cell_contents", "__defaults__", "__kwdefaults__", "__dict__"),
    *("func", "args", "keywords", "__wrapped__"),
)
_RUNNING = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}


class Name(NamedTuple):
    kind: str  # variable, global, attribute, item, key, closure, graph, other
    path: str  # as the program would write it, starting at the variable
    container: str  # the direct holder: "list of 12"
    where: str  # "train.py:42 make_batch", "module train"; "" if no variable leads to it
    is_cycle: bool


def name_of(holder: Holder, array: Any, given: str) -> Name:
    """The program's name for `array`, as `holder` refers to it; `given`: its last part, "" if unknown."""
    kind, last = ("attribute", given) if given else _step(holder, array)
    parts = ["." + last if holder.is_graph else last]
    outermost = holder
    while outermost.parent is not None:
        if outermost.is_graph:
            parts.append(f" → {type(outermost.thing).__name__}")
        else:
            parts.append(_step(outermost.parent, outermost.thing)[1])
        outermost = outermost.parent
    return Name(
        "graph" if holder.is_graph else kind,
        "".join(reversed(parts)),
        _container_text(holder.thing),
        outermost.where,
        _is_in_cycle(holder),
    )


def _container_text(thing: Any) -> str:
    cls = type(thing)
    if cls is Variables:
        return "frame"
    name = (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )
    return f"{name} of {len(thing)}" if cls in (list, tuple, dict, set, frozenset) else name


def _step(holder: Holder, thing: Any) -> tuple[str, str]:
    """How `holder` refers to `thing`: the kind, and the text to append to the holder's own name."""
    container = holder.thing
    cls = type(container)
    if cls is Variables or (cls is dict and holder.where):
        name = _key_of(container, thing)
        return (
            "variable" if cls is Variables else "global",
            name if isinstance(name, str) else "?",
        )
    if issubclass(cls, dict):
        return _step_of_dict(holder, thing)
    if issubclass(cls, (list, tuple, deque)):
        for index, each in enumerate(container):
            if each is thing:
                return "item", f"[{index}]"
            if index == _MOST_ELEMENTS:
                break
        return "item", "[…]"
    if cls in (set, frozenset):
        return "item", "{…}"
    if cls in _RUNNING or cls is types.FrameType:
        return _step_of_frame(container, thing)
    return _step_of_instance(container, thing)


def _step_of_dict(holder: Holder, thing: Any) -> tuple[str, str]:
    owner = holder.parent.thing if holder.parent is not None else None
    key = _key_of(holder.thing, thing)
    is_attribute = isinstance(owner, type) or _instance_dict(owner) is holder.thing
    if is_attribute and isinstance(key, str):
        return "attribute", "." + key
    if key is _ABSENT:
        return "key", ".keys()"
    return "key", f"[{_key_text(key)}]"


def _step_of_frame(container: Any, thing: Any) -> tuple[str, str]:
    attribute = _RUNNING.get(type(container))
    frame = getattr(container, attribute) if attribute else container
    if thing is frame:
        return "attribute", f".{attribute}"
    names = variables_of(frame) if frame is not None else None
    name = _key_of(names or {}, thing)
    text = f".{attribute}.f_locals" if attribute else ".f_locals"
    return "variable", f"{text}[{_key_text(name)}]" if isinstance(name, str) else text


def _step_of_instance(container: Any, thing: Any) -> tuple[str, str]:
    if isinstance(container, type):
        return "attribute", container.__qualname__  # its dictionary
    names = _instance_dict(container)
    if names is thing:
        return "attribute", ""  # the next step is the attribute
    name = _key_of(names or {}, thing)
    if isinstance(name, str):
        return "attribute", "." + name
    for base in type(container).__mro__:
        for name, member in vars(base).items():
            if type(member) is types.MemberDescriptorType:
                try:
                    if member.__get__(container) is thing:
                        return ("closure" if name == "cell_contents" else "attribute"), "." + name
                except AttributeError:  # an empty slot
                    continue
    if type(container).__module__ in ("builtins", "functools"):
        for name in _ATTRIBUTES:
            try:
                if getattr(container, name, None) is thing:
                    return ("closure" if name == "cell_contents" else "attribute"), "." + name
            except ValueError:  # an empty cell
                continue
    return "other", f" → {type(thing).__name__}"


_ABSENT = object()


def _key_of(names: dict[Any, Any], thing: Any) -> Any:
    try:
        for count, (key, value) in enumerate(dict.items(names)):
            if value is thing:
                return key
            if count == _MOST_ELEMENTS:
                break
    except RuntimeError:  # another thread changed it meanwhile
        pass
    return _ABSENT


def _instance_dict(thing: Any) -> dict[str, Any] | None:
    try:
        names = object.__getattribute__(thing, "__dict__")
    except (AttributeError, TypeError):
        return None
    return names if isinstance(names, dict) else None


def _key_text(key: Any) -> str:
    """A key's repr; only the type if the repr would run the program's code."""
    plain = type(key) in _PLAIN or (
        type(key) is tuple and all(type(each) in _PLAIN for each in key)
    )
    if not plain:
        return f"<{type(key).__qualname__}>"
    if isinstance(key, (str, bytes)) and len(key) > _LONGEST_KEY:
        return repr(key[:_LONGEST_KEY]) + "…"
    text = repr(key)
    return text if len(text) <= _LONGEST_KEY else text[:_LONGEST_KEY] + "…"


def _is_in_cycle(holder: Holder) -> bool:
    """Whether the container or one of its owners is in a reference cycle."""
    each: Holder | None = holder
    for _ in range(_OWNERS):
        if each is None or each.where:
            return False
        if _refers_to_itself(each.thing):
            return True
        each = each.parent
    return False


def _refers_to_itself(start: Any) -> bool:
    """Whether references lead from `start` back to it."""
    waiting, seen = [start], {id(start)}
    for thing in waiting:
        for referent in gc.get_referents(thing):
            if referent is start:
                return True
            cls = type(referent)
            if id(referent) in seen or cls in EXCLUDED_TYPES or cls is types.FunctionType:
                continue
            if not gc.is_tracked(referent) or type in cls.__mro__:
                continue
            if len(seen) >= _MOST_STEPS:
                return False
            seen.add(id(referent))
            waiting.append(referent)
    return False
