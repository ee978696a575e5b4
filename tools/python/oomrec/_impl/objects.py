"""The largest living NumPy arrays and torch tensors: what they are, who allocated them, who holds them.

`objects()` finds them. `objects_json()` does so for a bundle, within a time limit. Results are plain data
without a reference to the program's objects.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .buffers import Buffer, Libraries
from .holders import Holder, Scan
from .library import library
from .paths import name_of

# A scan of a million containers takes about a second. This limit is for programs with far more.
_LONGEST_S = 30.0
_MOST_REFERRERS = 8  # of one object
_STACK_BYTES = 8192
_ALWAYS_NAMED = 5  # the largest objects get their holders and stacks even when the time is up


@dataclass(frozen=True)
class Referrer:
    """A direct reference to an object.

    Attributes:
        kind: "variable", "global", "attribute", "item" (of a list, tuple or set), "key" (of a
            dictionary), "closure", "graph" (autograd saved it for the backward pass), "other"
        name: as the program would write it, from the variable on: "trainer.history[3]"
        container: what has the reference: "list of 12", "frame", "train.Model"
        where: the variable's frame ("train.py:42 make_batch"), or "module train"; "" if no variable
            leads to it
        is_cycle: the container is part of a reference cycle, which only the garbage collector frees
    """

    kind: str
    name: str
    container: str
    where: str
    is_cycle: bool


@dataclass(frozen=True)
class LivingObject:
    """A buffer, and the largest array or tensor that is a view of it.

    Attributes:
        bytes: of the buffer, counted once for all its views
        type: "numpy.ndarray", "torch.Tensor", "torch.nn.parameter.Parameter"
        shape, dtype, device: of the largest view; the device is "cpu" or as torch writes it
        views: how many living objects share the buffer
        address: of the buffer's first byte
        stack: the stack that allocated it, innermost frame first; empty if it was not recorded
        grad_fn: the node of autograd's graph that made it and keeps the graph alive; or None
        referrers: at most 8
    """

    bytes: int
    type: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    views: int
    address: int
    stack: tuple[str, ...]
    grad_fn: str | None
    referrers: tuple[Referrer, ...]


@dataclass(frozen=True)
class LivingObjects:
    """The result of `objects()`, largest first. Has a length, and can be iterated and indexed.

    Attributes:
        objects: the largest
        total_bytes: of all buffers of `min_bytes` and more, including those not listed
        count: of those buffers
        complete: False if time or memory ran out before the search ended
        stacks: why there are no stacks; "" if there are
    """

    objects: tuple[LivingObject, ...]
    total_bytes: int
    count: int
    complete: bool
    stacks: str

    def __iter__(self) -> Iterator[LivingObject]:
        return iter(self.objects)

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, index: int) -> LivingObject:
        return self.objects[index]

    def to_json(self) -> str:
        """The text of a bundle's objects.json."""
        return json.dumps({"schema_version": 1, **dataclasses.asdict(self)}, ensure_ascii=False)


def objects(min_bytes: int = 2**20, limit: int = 50) -> LivingObjects:
    """Finds the largest living NumPy arrays and torch tensors.

    Takes a fraction of a second in a large program. It keeps no object alive and calls no method of the
    program's classes. It does not find arrays of extension modules that only C code refers to.

    Args:
        min_bytes: skip smaller buffers
        limit: return at most so many objects

    Returns:
        the objects, largest first; none if the program has imported neither NumPy nor torch
    """
    return _collect(min_bytes, limit, _LONGEST_S)


def objects_json(budget_s: float = 0.05) -> str | None:
    """The text of a bundle's objects.json: what a search of `budget_s` seconds of CPU time finds.

    None if the program has imported neither NumPy nor torch, or there is no memory for it. Never raises.
    """
    try:
        if not Libraries().any:
            return None
        return _collect(2**20, 50, budget_s).to_json()
    except Exception:  # must not replace the exception that is being handled
        return None


def _collect(min_bytes: int, limit: int, budget_s: float) -> LivingObjects:
    begin = time.thread_time()
    libraries = Libraries()
    # The other half of the time is for the names, and for releasing what was scanned.
    scan = Scan(libraries, begin + 0.5 * budget_s)
    found: dict[tuple[str, int], list[tuple[Buffer, Any]]] = {}
    largest: list[list[tuple[Buffer, Any]]] = []
    holders: list[Holder] = []
    living: list[LivingObject] = []
    is_short = False
    stacks = _Stacks()
    # Our own containers could trigger a garbage collection, which takes longer than the search and runs
    # finalizers.
    collects = gc.isenabled()
    gc.disable()
    try:
        try:
            if libraries.any:
                scan.run()
        except MemoryError:
            is_short = True
        _sort_into(found, libraries, scan, min_bytes)
        largest.extend(sorted(found.values(), key=_bytes_of, reverse=True)[: max(limit, 0)])
        for views in largest:
            for _, thing in views:
                holders.extend(_holders_of(scan, thing))
        scan.find_owners(holders)
        for views in largest:
            is_late = len(living) >= _ALWAYS_NAMED and time.thread_time() > begin + 0.95 * budget_s
            living.append(_described(libraries, scan, views, stacks, with_names=not is_late))
            is_short = is_short or is_late
    except MemoryError:
        is_short = True
    finally:
        total = sum(map(_bytes_of, found.values()))
        count = len(found)
        complete = scan.complete and not is_short
        # This function's frame was scanned, too, and may live on: drop its references.
        views, thing, holders = [], None, []
        for each in found.values():
            each.clear()
        found.clear()
        largest.clear()
        scan.close()
        if collects:
            gc.enable()
    return LivingObjects(tuple(living), total, count, complete, stacks.missing)


def _holders_of(scan: Scan, thing: Any) -> list[Holder]:
    return [holder for holder, _ in scan.edges.get(id(thing), ())]


def _bytes_of(views: list[tuple[Buffer, Any]]) -> int:
    return max(buffer.bytes for buffer, _ in views)


def _sort_into(
    found: dict[tuple[str, int], list[tuple[Buffer, Any]]],
    libraries: Libraries,
    scan: Scan,
    min_bytes: int,
) -> None:
    for thing in scan.arrays.values():
        buffer = libraries.buffer_of(thing)
        if buffer is not None and buffer.bytes >= max(min_bytes, 1):
            found.setdefault(buffer.key, []).append((buffer, thing))


def _described(
    libraries: Libraries,
    scan: Scan,
    views: list[tuple[Buffer, Any]],
    stacks: _Stacks,
    with_names: bool,
) -> LivingObject:
    shapes = [(libraries.shape_of(thing), thing) for _, thing in views]
    (shape, dtype, _), largest = max(shapes, key=lambda each: each[0][2])
    buffer = max((buffer for buffer, _ in views), key=lambda each: each.bytes)
    edges = [(thing, *edge) for _, thing in views for edge in scan.edges.get(id(thing), ())]
    names = [
        name_of(holder, thing, name)
        for thing, holder, name in edges[:_MOST_REFERRERS]
        if with_names
    ]
    cls = type(largest)
    grad_fn = getattr(largest, "grad_fn", None) if libraries.kind(cls) == "torch" else None
    return LivingObject(
        bytes=buffer.bytes,
        type=f"{cls.__module__}.{cls.__qualname__}",
        shape=shape,
        dtype=dtype,
        device=buffer.device,
        views=len(views),
        address=buffer.address,
        stack=stacks.of(buffer.address) if with_names else (),
        grad_fn=type(grad_fn).__name__ if grad_fn is not None else None,
        referrers=tuple(Referrer(*name) for name in names),
    )


class _Stacks:
    """Looks up the stack that allocated the block at an address, in the recording."""

    def __init__(self) -> None:
        self._library = library()
        active = bool(self._library.is_active())
        self.missing = "" if active else "the program does not run under the recorder"

    def of(self, address: int) -> tuple[str, ...]:
        if self.missing:
            return ()
        from . import c_api

        block = c_api.BlockStruct()
        block.size = c_api.size_of(block)
        if not self._library.block_of(address, c_api.reference(block)):
            return ()
        text = c_api.text_buffer(_STACK_BYTES)
        self._library.stack_text(block.node, text, _STACK_BYTES)
        return tuple(text.value.decode("utf-8", "replace").splitlines())
