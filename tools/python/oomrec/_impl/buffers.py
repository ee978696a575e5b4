"""The memory behind a NumPy array or a torch tensor: its buffer, which views share.

This module imports neither library: if the program has not, it has no arrays either. It calls no method of
a subclass, and computes, copies and allocates no tensor.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

NUMPY, TORCH = "numpy", "torch"


class Buffer(NamedTuple):
    """A block of memory. Two objects with the same `key` are views of one."""

    device: str  # "cpu", "cuda:0"
    address: int
    bytes: int

    @property
    def key(self) -> tuple[str, int]:
        return (self.device, self.address)


class Libraries:
    """NumPy and torch, if the program has imported them, and their types."""

    def __init__(self) -> None:
        self.numpy: Any = _loaded("numpy", "ndarray")
        self.torch: Any = _loaded("torch", "Tensor")
        self._kinds: dict[type, str | None] = {}

    @property
    def any(self) -> bool:
        return self.numpy is not None or self.torch is not None

    def kind(self, cls: type) -> str | None:
        """The library of an array or tensor class; None for every other class.

        Takes the class, not the object: `isinstance` would read the object's `__class__`, which lazy
        modules and proxies implement as a property.
        """
        try:
            return self._kinds[cls]
        except KeyError:
            kind = None
            bases = cls.__mro__
            if self.numpy is not None and self.numpy.ndarray in bases:
                kind = NUMPY
            elif self.torch is not None and self.torch.Tensor in bases:
                kind = TORCH
            self._kinds[cls] = kind
            return kind

    def buffer_of(self, thing: Any) -> Buffer | None:
        """The buffer of an array or tensor; None if it has no address: meta, fake and sparse tensors."""
        kind = self.kind(type(thing))
        try:
            return self._of_numpy(thing) if kind == NUMPY else self._of_torch(thing)
        except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
            return None

    def shape_of(self, thing: Any) -> tuple[tuple[int, ...], str, int]:
        """Shape, dtype, and the bytes of this view's own elements."""
        if self.kind(type(thing)) == NUMPY:
            ndarray = self.numpy.ndarray
            nbytes = ndarray.nbytes.__get__(thing)
            return tuple(ndarray.shape.__get__(thing)), str(ndarray.dtype.__get__(thing)), nbytes
        with self.torch._C.DisableTorchFunctionSubclass():
            shape = tuple(int(each) for each in thing.shape)
            nbytes = thing.element_size() * thing.numel()
            return shape, str(thing.dtype).replace("torch.", ""), nbytes

    def _of_numpy(self, array: Any) -> Buffer | None:
        ndarray = self.numpy.ndarray
        owner = array
        while self.kind(type(base := ndarray.base.__get__(owner))) == NUMPY:
            owner = base
        if base is not None and self.kind(type(base)) == TORCH:
            return self._of_torch(base)
        address = int(ndarray.__array_interface__.__get__(owner)["data"][0])
        low, high = 0, int(ndarray.itemsize.__get__(owner))
        for count, stride in zip(ndarray.shape.__get__(owner), ndarray.strides.__get__(owner)):
            if count == 0:
                return None
            low += min(0, (count - 1) * stride)
            high += max(0, (count - 1) * stride)
        return Buffer("cpu", address + low, high - low)

    def _of_torch(self, tensor: Any) -> Buffer | None:
        torch = self.torch
        with torch._C.DisableTorchFunctionSubclass():
            is_shared_until_written = getattr(torch._C, "_is_cow_tensor", None)
            if is_shared_until_written is not None and is_shared_until_written(tensor):
                return None  # reading its address would trigger the copy
            storage = torch.Tensor.untyped_storage(tensor)
            bytes_count = int(storage.nbytes())
            address = int(storage.data_ptr()) if bytes_count else 0
            return Buffer(str(storage.device), address, bytes_count) if address else None


def _loaded(name: str, needs: str) -> Any:
    """The module, if it is completely imported: one that is still being imported lacks `needs`."""
    module = sys.modules.get(name)
    found = getattr(module, "__dict__", {})
    return module if isinstance(found, dict) and needs in found else None
