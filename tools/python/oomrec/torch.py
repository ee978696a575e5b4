"""Adds PyTorch's snapshot of device memory to bundles, and labels its DataLoader workers."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import os
import pickle
import sys
import threading
import time
from typing import Any, Callable

from ._impl.bundles import dump, failure_bundle
from ._impl.foreign_files import open_in, replaced_in
from ._impl.labels import context
from ._impl.recorder import RECORDER

SNAPSHOT_NAME = "torch_snapshot.pickle"

__all__ = ["Attachment", "attach"]


class Attachment:
    """The result of `attach`.

    Attributes:
        history: whether torch records its allocations and frees
        observer: whether torch calls oomrec before it raises OutOfMemoryError
        workers: whether DataLoader workers are labelled
        missing: what is not available, and why; "" if nothing is missing
    """

    def __init__(self) -> None:
        self.history = False
        self.observer = False
        self.workers = False
        self.missing = ""
        self._number = next(_numbers)

    def detach(self) -> None:
        """Drops the history. torch keeps its observer, which does nothing once every attachment is detached."""
        if self.history:
            _quietly(lambda: _torch().cuda.memory._record_memory_history(None))
        self.history = self.observer = self.workers = False
        _observing.discard(self._number)
        _labelling.discard(self._number)

    def __repr__(self) -> str:
        on = [name for name in ("history", "observer", "workers") if getattr(self, name)]
        text = f"<oomrec.torch.Attachment: {', '.join(on) or 'nothing'}"
        return f"{text}; missing: {self.missing}>" if self.missing else text + ">"


# The active attachments, by number: one that the program has dropped is active, too. torch cannot remove an
# observer, so there is only one, which checks these.
_numbers = itertools.count()
_observing: set[int] = set()
_labelling: set[int] = set()
_is_observer_installed = False


def attach(history: int = 100_000) -> Attachment:
    """Makes torch record its device memory, and puts a snapshot of it into the bundle of each failure.

    The snapshot, torch_snapshot.pickle, is written before torch raises OutOfMemoryError, while everything is
    still allocated. `oomrec show`, `report` and the other reading commands read it, and so do torch's own
    tools. Workers of a DataLoader that starts after this call are labelled `DataLoader worker N`.

    Call it before the first tensor is made on a device: torch's history begins here. It costs torch about 2 µs
    for each allocation, and some KB for each event that it keeps.

    Args:
        history: how many of the latest allocations and frees torch keeps; 0: none, and a snapshot then has
            the blocks without their stacks

    Returns:
        what is on, and what is missing. A torch built without CUDA or HIP has neither history nor observer,
        which is not an error

    Raises:
        ImportError: torch is not installed
        ValueError: `history` is negative
    """
    if history < 0:
        raise ValueError(f"history is a number of events, at least 0, not {history}")
    torch = _torch()
    attachment = Attachment()
    missing = []
    reason = _why_no_devices(torch)
    if reason:
        missing.append(f"memory history and observer: {reason}")
    else:
        if history:
            problem = _quietly(
                lambda: torch.cuda.memory._record_memory_history(max_entries=history)
            )
            attachment.history = not problem
            if problem:
                missing.append(f"memory history: {problem}")
        problem = _observe(torch)
        attachment.observer = not problem
        if problem:
            missing.append(f"observer: {problem}")
        else:
            _observing.add(attachment._number)
    problem = _quietly(_label_workers)
    attachment.workers = not problem
    if problem:
        missing.append(f"labels of DataLoader workers: {problem}")
    else:
        _labelling.add(attachment._number)
    attachment.missing = "; ".join(missing)
    return attachment


def _torch() -> Any:
    return importlib.import_module("torch")


def _quietly(call: Callable[[], Any]) -> str:
    """Calls, and returns the exception as text; "" if there was none."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _why_no_devices(torch: Any) -> str:
    """Why torch's history and observer cannot work; "" if they can."""
    version = getattr(torch, "version", None)
    if getattr(version, "cuda", None) is None and getattr(version, "hip", None) is None:
        return "this torch was built without CUDA and HIP"
    for owner, name in (
        (getattr(torch, "_C", None), "_cuda_attach_out_of_memory_observer"),
        (getattr(getattr(torch, "cuda", None), "memory", None), "_record_memory_history"),
    ):
        if not hasattr(owner, name):
            return f"this torch has no {name}: it is older than 2.0"
    if not torch.cuda.is_available():
        return "torch finds no device"
    return ""


def _observe(torch: Any) -> str:
    global _is_observer_installed
    if _is_observer_installed:
        return ""
    problem = _quietly(lambda: torch._C._cuda_attach_out_of_memory_observer(_on_out_of_memory))
    _is_observer_installed = not problem
    return problem


def _on_out_of_memory(device: int, alloc: int, device_alloc: int, device_free: int) -> None:
    """torch calls this in the failing thread, before it raises. Must not raise itself.

    `alloc`: bytes requested; `device_alloc`: this process' bytes on the device; `device_free`: bytes free
    there. Convolutions try several algorithms, so this may be called often in a program that goes on. A
    bundle keeps its first snapshot.
    """
    if not _observing:
        return
    try:
        if _has_recorded_failure():
            bundle = failure_bundle()
        else:
            bundle = _dump_if_due(
                f"torch: {alloc} bytes refused on device {device}, {device_free} bytes free"
            )
        if bundle is not None:
            _write_snapshot(bundle)
    except Exception as error:
        print(f"oomrec: no {SNAPSHOT_NAME}: {type(error).__name__}: {error}", file=sys.stderr)


_latest = threading.local()  # .failure: the thread's last_failure() at torch's previous call
_next_dump_s = 0.0
_BETWEEN_DUMPS_S = 60.0


def _has_recorded_failure() -> bool:
    """Whether the recorder saw a driver's failure behind torch's. It does not see a limit of torch's own."""
    failure = RECORDER.last_failure()
    is_new = failure != getattr(_latest, "failure", 0)
    _latest.failure = failure
    return is_new


def _dump_if_due(reason: str) -> str | None:
    global _next_dump_s
    now = time.monotonic()
    if now < _next_dump_s:
        return None
    _next_dump_s = now + _BETWEEN_DUMPS_S
    return dump(reason)


def _write_snapshot(bundle: str) -> None:
    path = os.path.join(bundle, SNAPSHOT_NAME)
    if os.path.lexists(path):
        return
    unfinished = f"{path}.{os.getpid()}.part"
    try:
        with open(unfinished, "xb", opener=_private) as file:
            pickle.dump(_torch().cuda.memory._snapshot(), file)
        os.rename(unfinished, path)
    except BaseException:
        _quietly(lambda: os.unlink(unfinished))
        raise
    _list_in_manifest(bundle)


def _list_in_manifest(bundle: str) -> None:
    with open_in(bundle, "manifest.json") as file:
        manifest = json.load(file)
    if SNAPSHOT_NAME not in manifest["files"]:
        manifest["files"].append(SNAPSHOT_NAME)
        with replaced_in(bundle, "manifest.json") as file:
            json.dump(manifest, file, ensure_ascii=False)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


_worker_loop: Callable[..., Any] | None = None
_worker_id_index = -1


def _label_workers() -> None:
    """Replaces torch's worker loop, which DataLoader looks up by name, by `_labelled_worker_loop`."""
    global _worker_id_index, _worker_loop
    worker: Any = importlib.import_module("torch.utils.data._utils.worker")
    if worker._worker_loop is not _labelled_worker_loop:
        names = list(inspect.signature(worker._worker_loop).parameters)
        _worker_id_index = names.index("worker_id")
        _worker_loop = worker._worker_loop
        worker._worker_loop = _labelled_worker_loop


def _labelled_worker_loop(*arguments: Any) -> Any:
    """Runs a worker under its label. A spawned worker imports this module to find the function."""
    if _worker_loop is None:
        _label_workers()
        _labelling.add(0)  # only a process with an active attachment starts workers with this loop
    assert _worker_loop is not None
    if not _labelling:
        return _worker_loop(*arguments)
    with context(f"DataLoader worker {arguments[_worker_id_index]}"):
        return _worker_loop(*arguments)
