"""A stand-in for a torch with CUDA, as far as oomrec.torch goes, which runs out of memory. Words: HOW.

`unseen`: no driver that the recorder knows has refused anything. `seen`: this thread was refused
before (by the host, which stands for a driver), so there is a bundle. `seen late`: and something
else had been refused three times before that. `twice`: several refusals, as
of a convolution that tries algorithms; the observer is called each time. `off`: detached before;
`half off`: one of two attachments.
`broken`: torch has no snapshot to give.
"""

import contextlib
import json
import sys
import types

how = sys.argv[1]
calls = []
observers = []


class OutOfMemoryError(RuntimeError):
    pass


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize):
    calls.append(["history", enabled, max_entries])


def _snapshot(device=None):
    calls.append(["snapshot"])
    if how == "broken":
        raise RuntimeError("no snapshot today")
    frames = [{"filename": "/srv/train.py", "line": 12, "name": "load_batch"}]
    block = {
        "address": 0x7F4000000000,
        "size": 96 << 20,
        "requested_size": 96 << 20,
        "state": "active_allocated",
        "frames": frames,
    }
    segment = {
        "device": 0,
        "address": block["address"],
        "total_size": 96 << 20,
        "allocated_size": 96 << 20,
        "active_size": 96 << 20,
        "requested_size": 96 << 20,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block],
    }
    return {"segments": [segment], "device_traces": [], "allocator_settings": {}}


def _worker_loop(kind, dataset, worker_id):
    return dataset


def module(name, **contents):
    made = types.ModuleType(name)
    made.__dict__.update(contents)
    sys.modules[name] = made
    return made


memory = module(
    "torch.cuda.memory", _record_memory_history=_record_memory_history, _snapshot=_snapshot
)
cuda = module("torch.cuda", memory=memory, is_available=lambda: True)
worker = module("torch.utils.data._utils.worker", _worker_loop=_worker_loop)
for package in ("torch.utils", "torch.utils.data", "torch.utils.data._utils"):
    module(package)
_C = module("torch._C", _cuda_attach_out_of_memory_observer=observers.append)
module(
    "torch",
    cuda=cuda,
    _C=_C,
    version=module("torch.version", cuda="12.6", hip=None),
    OutOfMemoryError=OutOfMemoryError,
)

import oomrec  # noqa: E402
import oomrec.torch  # noqa: E402


def refuse(asked):
    """Like c10's allocator: calls the observers, then throws."""
    for observer in observers:
        observer(0, asked, 96 << 20, 3 << 20)
    raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {asked >> 20}.00 MiB.")


attachment = oomrec.torch.attach(history=1234)
again = oomrec.torch.attach(history=1234)
assert len(observers) == 1, "one observer, however often it is attached"
if how == "half off":
    del again  # it stays active
if how in ("off", "half off"):
    attachment.detach()
    oomrec.torch.attach(history=0).detach()
if how == "off":
    again.detach()
if how == "seen late":
    for _ in range(3):
        with contextlib.suppress(MemoryError):
            bytearray(1 << 41)
if how in ("seen", "seen late"):
    # Unlike an impossible request, this one fails because memory is short: it is no after-shock.
    with contextlib.suppress(MemoryError):
        bytearray(2 << 30)
for _ in range(3 if how == "twice" else 1):
    try:
        refuse(1 << 30)
    except OutOfMemoryError as error:
        assert oomrec.classify_oom_exception(error).reason == "message_pattern:CUDA out of memory"
print(json.dumps({"attachment": repr(attachment), "calls": calls, "bundle": oomrec.last_bundle()}))
