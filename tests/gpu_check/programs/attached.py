"""attached.py CLIENT: uses the device, and allocates more when it is told, as a program that
`oomrec attach` comes to."""

import sys

from say import say, skip

MIB = 1 << 20


def torch_array():
    import torch

    if not torch.cuda.is_available():
        skip("this PyTorch sees no GPU")
    torch.cuda.set_per_process_memory_fraction(0.9)
    return lambda size: torch.empty(size, dtype=torch.uint8, device="cuda")


def jax_array():
    import jax
    import jax.numpy as jnp

    if jax.devices()[0].platform != "gpu":
        skip("this JAX sees no GPU")
    return lambda size: jnp.zeros(size, dtype=jnp.uint8).block_until_ready()


def cupy_array():
    import cupy

    return lambda size: cupy.empty(size, dtype=cupy.uint8)


def bindings_array():
    from cuda.bindings import driver

    def checked(answer):
        error, *values = answer
        if error != driver.CUresult.CUDA_SUCCESS:
            raise MemoryError(error.name)
        return values[0] if values else None

    class Array:
        def __init__(self, size):
            self.address = checked(driver.cuMemAlloc(size))

        def __del__(self):
            checked(driver.cuMemFree(self.address))

    checked(driver.cuInit(0))
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(0))))
    return Array


CLIENTS = {
    "torch": torch_array,
    "jax": jax_array,
    "cupy": cupy_array,
    "cuda.bindings.driver": bindings_array,
}


def fill(array, held):
    held.extend(array(256 * MIB) for _ in range(4))


def main():
    array = CLIENTS[sys.argv[1]]()
    held = [array(128 * MIB)]
    say(ready=True)
    for line in sys.stdin:
        if line.strip() == "fill":
            fill(array, held)
        elif line.strip() == "free":
            del held[0]
        say(held=len(held))


main()
