"""Keeps blocks allocated on rapidly changing stacks, and prints the interpreter's view of
them: [[[function, line, file], …], bytes], each stack innermost first. Then requests
too much."""

import asyncio
import ctypes
import functools
import json
import random
import sys
import threading

own_malloc = ctypes.CDLL(None).malloc  # ctypes releases the GIL around it
own_malloc.argtypes, own_malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
UNQUALIFIED = sys.version_info < (3, 11)
kept, truth, guard = [], {}, threading.Lock()


def keep(size=1000):
    block = bytes(size)
    note(sys._getframe(), sys.getsizeof(block))
    kept.append(block)


def keep_without_gil(size=3000):
    own_malloc(size)
    note(sys._getframe(), size)


def note(frame, size):
    stack, line = [], frame.f_code.co_firstlineno + 1
    while frame is not None:
        code = frame.f_code
        name = code.co_name if UNQUALIFIED else code.co_qualname
        stack.append((name, line or frame.f_lineno, code.co_filename))
        frame, line = frame.f_back, None
    with guard:
        truth[tuple(stack)] = truth.get(tuple(stack), 0) + size


# --- Ways to get further in. Each ends in wander() or in keep().


def first(depth, chance):
    wander(depth, chance)
    keep()
    return wander(depth, chance)


def second(depth, chance):
    keep()
    if chance.random() < 0.5:
        return wander(depth, chance)
    return wander(depth - 1, chance)


def recursive(depth, chance, left=5):
    if left:
        return recursive(depth, chance, left - 1)
    return wander(depth, chance)


def generator(depth, chance):
    def produce():
        for _ in range(2):
            keep()
            yield wander(depth, chance)

    for _ in produce():
        keep()


def exceptional(depth, chance):
    try:
        wander(depth, chance)
        raise KeyError
    except KeyError:
        keep()
        wander(depth, chance)
    finally:
        keep()


def called_from_c(depth, chance):
    sorted([2, 1], key=lambda x: wander(depth - 1, chance) or keep() or x)
    functools.reduce(lambda a, b: keep(), [1, 2])
    [wander(depth - 1, chance) for _ in range(1)]


def awaited(depth, chance):
    async def inner():
        keep()
        await asyncio.sleep(0)
        wander(depth, chance)

    async def outer():
        await asyncio.gather(inner(), inner())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(outer())


def made(depth, chance):
    """Functions alike but for a line or their name, one after the other at the same address."""
    for _ in range(3):
        before, between = "\n" * chance.randrange(3), "\n" * chance.randrange(3)
        name = "made_" + chance.choice("abc")
        source = f"{before}def {name}(go, keep):\n{between}  keep()\n  go()\n{name}(go, keep)\n"
        scope = {"go": functools.partial(wander, depth - 1, chance), "keep": keep}
        exec(compile(source, chance.choice(["made one", "made two"]), "exec"), scope)


def released(depth, chance):
    keep_without_gil()
    wander(depth, chance)
    keep_without_gil()


class Dropped:
    def __init__(self):
        keep()

    def __del__(self):
        keep()


def dropping(depth, chance):
    dropped = Dropped()
    wander(depth, chance)
    return dropped and None


WAYS = [first, second, recursive, generator, exceptional, called_from_c, awaited, made, released,
        dropping]  # fmt: skip


def wander(depth, chance):
    if depth > 0:
        return chance.choice(WAYS)(depth - chance.choice([1, 2]), chance)
    return keep()


def work(seed):
    chance = random.Random(seed)
    for _ in range(12):
        wander(4, chance)


threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for thread in threads:
    thread.start()
work(3)
for thread in threads:
    thread.join()
print(json.dumps([[stack, size] for stack, size in truth.items()]), flush=True)
bytes(1 << 30)
