"""A program of a fake PyTorch: the allocator of tests/fake_torch on the driver of tests/fake_gpu.

argv: VERSION of the reporters, SCENARIO. Prints what it knows as JSON.
"""

import ctypes
import json
import sys

MIB = 1 << 20
# As python loads PyTorch's libraries: apart from all others.
torch = ctypes.CDLL("libc10_cuda.so")
c10 = ctypes.CDLL("libc10.so")
torch.torch_allocate.restype = ctypes.c_uint64
torch.torch_allocate.argtypes = torch.torch_reserve_at_most.argtypes = [ctypes.c_size_t]
torch.torch_free.argtypes = [ctypes.c_uint64]
torch.torch_free.restype = torch.torch_reserve_at_most.restype = None
for figure in (
    torch.torch_allocated,
    torch.torch_reserved,
    c10.c10_memory_reports,
    c10.c10_failure_reports,
):
    figure.restype = ctypes.c_size_t


def make_batch(mib):
    return torch.torch_allocate(mib * MIB)


def make_weights(mib):
    return torch.torch_allocate(mib * MIB)


def totals():
    """Many blocks, some of which are freed again."""
    blocks = [make_batch(n % 7 + 1) for n in range(40)] + [torch.torch_allocate(700)]
    for block in blocks[::3]:
        torch.torch_free(block)
    if hasattr(ctypes.CDLL(None), "oomrec_dump"):
        ctypes.CDLL(None).oomrec_dump(b"totals")
    return 0


def fill(device_mib):
    """Batches of 30 MiB until no more would fit."""
    return [make_batch(30) for _ in range(device_mib // 30)]


def recovered():
    """What is cached is in the way; given back, there is room."""
    for block in fill(256):
        torch.torch_free(block)
    return 0 if make_weights(200) else 1


def refused():
    """Memory is in use: nothing can be given back."""
    fill(256)
    return 1 if make_weights(200) == 0 else 0


def both():
    """One that does no harm, then one that does, of the same line."""
    for wanted, in_the_way in ((200, 256), (400, 0)):
        for block in fill(in_the_way):
            torch.torch_free(block)
        block = make_weights(wanted)
        if block == 0:
            return 1
        torch.torch_free(block)
    return 0


def fragmented():
    """Every segment has a block in it, and no piece is large enough."""
    held = []
    for _ in range(8):
        held.append((make_batch(8), make_batch(12)))
    for first, _ in held:
        torch.torch_free(first)
    return 1 if make_weights(60) == 0 else 0


def fraction():
    """PyTorch's own limit: the driver is not asked."""
    make_batch(50)
    torch.torch_reserve_at_most(100 * MIB)
    return 1 if make_weights(80) == 0 else 0


torch.torch_start(int(sys.argv[1]))
status = globals()[sys.argv[2]]()
print(
    json.dumps(
        {
            "allocated": torch.torch_allocated(),
            "reserved": torch.torch_reserved(),
            "memory_reports": c10.c10_memory_reports(),
            "failure_reports": c10.c10_failure_reports(),
        }
    )
)
sys.exit(status)
