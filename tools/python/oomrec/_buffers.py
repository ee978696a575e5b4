"""What memory a NumPy array or a torch tensor stands for: the buffer, which views share.

Neither library is imported: where the program has not, none of its objects are there. No method of
a subclass is called, and nothing is computed, copied to another device or brought into being.
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
    """NumPy and torch as the program has loaded them, and which types are theirs."""

    def __init__(self) -> None:
        self.numpy: Any = _loaded("numpy", "ndarray")
        self.torch: Any = _loaded("torch", "Tensor")
        self._kinds: dict[type, str | None] = {}

    @property
    def any(self) -> bool:
        return self.numpy is not None or self.torch is not None

    def kind(self, cls: type) -> str | None:
        """Whose array or tensor an object of this class is; None for every other class.

        The class is asked, never the object: `isinstance` would read its `__class__`, which is a
        property of a lazy module or of a proxy.
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
        """None for what has no memory of its own to speak of: meta and fake tensors, sparse ones."""
        kind = self.kind(type(thing))
        try:
            return self._of_numpy(thing) if kind == NUMPY else self._of_torch(thing)
        except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
            return None

    def shape_of(self, thing: Any) -> tuple[tuple[int, ...], str, int]:
        """Shape, dtype, and bytes of the elements that this one view has."""
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
                return None  # asking for its address would make the copy
            storage = torch.Tensor.untyped_storage(tensor)
            bytes_count = int(storage.nbytes())
            address = int(storage.data_ptr()) if bytes_count else 0
            return Buffer(str(storage.device), address, bytes_count) if address else None


def _loaded(name: str, needs: str) -> Any:
    """A module that is imported whole; one that is being imported lacks what it is needed for."""
    module = sys.modules.get(name)
    found = getattr(module, "__dict__", {})
    return module if isinstance(found, dict) and needs in found else None
