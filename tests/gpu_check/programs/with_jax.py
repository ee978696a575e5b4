"""with_jax.py: JAX's arrays on the device until one fails, then frees all."""

import jax
import jax.numpy as jnp
from say import mark, say, skip

MIB = 1 << 20


def fill():
    device = jax.devices()[0]
    if device.platform != "gpu":
        skip("this JAX sees no GPU")
    bound = (device.memory_stats() or {}).get("bytes_limit", 1 << 40)
    held = []
    try:
        while len(held) * 512 * MIB <= bound:
            held.append(jnp.zeros(512 * MIB, dtype=jnp.uint8).block_until_ready())
    except Exception as error:  # its class depends on the version
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        mark("full")
        say(held=len(held) * 512 * MIB)
        return
    raise SystemExit("never refused")


fill()
