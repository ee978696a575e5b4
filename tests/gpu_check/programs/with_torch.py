"""with_torch.py WHAT: PyTorch's allocator on the device. Each function is one WHAT."""

import sys

import torch
from say import mark, say, skip

MIB = 1 << 20
GIB = 1 << 30


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def refused(size):
    try:
        tensor(size)
    except torch.cuda.OutOfMemoryError:
        return True
    return False


def figures():
    return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved()}


def fill():
    """Tensors until one fails, then frees all."""
    free = torch.cuda.mem_get_info()[0]
    held = []
    try:
        while len(held) * 256 * MIB <= free:
            held.append(tensor(256 * MIB))
    except torch.cuda.OutOfMemoryError:
        mark("full", **figures())
        say(held=torch.cuda.memory_allocated())
        return
    raise SystemExit("never refused")


def recover():
    """A request succeeds after PyTorch frees its cache."""
    free = torch.cuda.mem_get_info()[0]
    held = [tensor(GIB) for _ in range(int(free * 0.6) // GIB)]
    held.clear()
    held.append(tensor(int(free * 0.7)))
    mark("recovered", **figures())


def fragments():
    """Half of every segment is in use: more is free than requested, but in pieces."""
    free, total = torch.cuda.mem_get_info()
    if free < 4 * GIB:
        skip("too little is free")
    torch.cuda.set_per_process_memory_fraction(2 * GIB / total)
    # Of less than 10 MiB, so that two share a segment of 20 MiB.
    held = [tensor(9 * MIB) for _ in range(200)]
    del held[::2]
    say(refused=refused(500 * MIB), **figures())


def profile():
    with torch.profiler.profile(profile_memory=True) as profiler:
        held = [tensor(4 * MIB) for _ in range(8)]
        held.clear()
    say(events=sum(event.name == "[memory]" for event in profiler.events()))


def main():
    if not torch.cuda.is_available():
        skip("this PyTorch sees no GPU")
    globals()[sys.argv[1]]()


main()
