"""Compares the recorder's Python stack with the interpreter's own in many situations
(sys._getframe: file, function, line, whole stack). Prints its counts as JSON.

    python frames_truth.py PROBE_LIBRARY SESSION_DIRECTORY
"""

import asyncio
import contextlib
import ctypes
import functools
import gc
import json
import re
import sys
import threading
import weakref

KEPT = 512  # frames, as in session/layout.h
SIZE = 1 << 20
UNQUALIFIED = sys.version_info < (3, 11)

with_gil = ctypes.PyDLL(sys.argv[1])
without_gil = ctypes.CDLL(sys.argv[1])
problem = with_gil.probe_start(sys.argv[2].encode())
if problem:
    sys.exit(f"probe_start: {problem}")
checked, wrong, seen = 0, [], set()
local = threading.local()
counting = threading.Lock()


def truth_of(frame):
    stack = []
    while frame is not None:
        code = frame.f_code
        name = code.co_name if UNQUALIFIED else code.co_qualname
        line = frame.f_lineno if frame.f_lineno is not None else code.co_firstlineno
        stack.append((line, name, code.co_filename))
        frame = frame.f_back
    return stack


def parsed(text):
    rows = text.decode("utf-8", "surrogateescape").split("\n")[:-1]
    return [(int(line), name, file) for line, name, file in (row.split("\t", 2) for row in rows)]


def compare(situation, count, text, truth):
    global checked
    stack = parsed(text)
    with counting:
        checked += 1
        seen.add(situation)
        if len(truth) > KEPT:
            right = count == -KEPT and stack == truth[:KEPT]
        else:
            right = count == len(truth) and stack == truth
        if not right:
            at = next((i for i, (a, b) in enumerate(zip(stack, truth)) if a != b), None)
            wrong.append([situation, count, len(truth), stack[:9], truth[:9], at])


def compare_merged(situation, text, truth):
    """Checks that the merged chain has the same Python frames, instead of the eval loop's."""
    global checked
    rows = text.decode("utf-8", "surrogateescape").split("\n")[:-1]
    stack = parsed(
        "".join(row + "\n" for row in rows if "\t" in row).encode("utf-8", "surrogateescape")
    )
    cut = "special" in rows
    left_over = "native _PyEval_EvalFrameDefault" in rows and "__del__" not in situation
    with counting:
        checked += 1
        right = stack == truth[: len(stack)] and (cut and len(stack) > 100 or stack == truth)
        if not right or (left_over and not cut):
            wrong.append([situation, "merged", len(truth), stack[:9], truth[:9], rows[:20]])


def buffer():
    if not hasattr(local, "buffer"):
        local.buffer = ctypes.create_string_buffer(SIZE)
    return local.buffer


def check(situation):
    """Captures with the GIL held and released, and the interpreter's stack on the same line."""
    out = buffer()
    count, truth = with_gil.probe_frames(out, SIZE), truth_of(sys._getframe())
    compare(situation, count, out.value, truth)
    count, truth = without_gil.probe_frames(out, SIZE), truth_of(sys._getframe())
    compare(situation + ", GIL released", count, out.value, truth)
    _, truth = with_gil.probe_stack(out, SIZE), truth_of(sys._getframe())
    compare_merged(situation, out.value, truth)


def nested(depth, situation="nested"):
    if depth == 0:
        return check(situation)
    return nested(depth - 1, situation)


def generator(n):
    for i in range(n):
        check("generator")
        yield i
    check("end of a generator")


def delegating():
    yield from generator(2)


class Methods:
    check("class body")

    class Inner:
        check("inner class body")

    def __init__(self):
        check("__init__")

    def __getattr__(self, name):
        check("__getattr__")
        return 1

    def __getitem__(self, key):
        check("__getitem__")
        return key

    def __eq__(self, other):
        check("__eq__")
        return True

    def __hash__(self):
        check("__hash__")
        return 1

    def __len__(self):
        check("__len__")
        return 3

    def __call__(self, *_):
        check("__call__")
        return 0

    def __enter__(self):
        check("__enter__")
        return self

    def __exit__(self, *_):
        check("__exit__")
        return True

    def __del__(self):
        check("__del__")

    def __iter__(self):
        check("__iter__")
        yield 1

    def __add__(self, other):
        check("__add__")
        return self

    def __str__(self):
        check("__str__")
        return ""

    @property
    def a_property(self):
        check("property")
        return 1

    @staticmethod
    def a_static():
        check("staticmethod")

    @classmethod
    def a_class(cls):
        check("classmethod")


class Meta(type):
    def __new__(cls, *args):
        check("metaclass")
        return super().__new__(cls, *args)

    def __call__(cls, *args):
        check("metaclass call")
        return super().__call__(*args)


def methods():
    m = Methods()
    m.unknown, m[1], m == m, hash(m), len(m), m(), m + m, str(m), m.a_property
    m.a_static()
    m.a_class()
    list(m)
    with m:
        raise ValueError

    class Made(metaclass=Meta):
        pass

    Made()
    dropped = Methods()
    dropped = None
    return dropped


def deleted_at_return():
    kept = Methods()
    len(kept)


def comprehensions():
    [check("list comprehension") for _ in range(2)]
    {check("set comprehension") for _ in range(2)}
    {i: check("dict comprehension") for i in range(2)}
    [check("generator expression") for _ in range(2)]
    [[check("inner comprehension") for _ in range(1)] for _ in range(2)]
    (lambda: check("lambda"))()


def called_from_c():
    sorted([3, 1, 2], key=lambda x: check("sort key") or x)
    sorted([3, 1], key=functools.cmp_to_key(lambda a, b: check("cmp_to_key") or a - b))
    functools.partial(nested, 2, "partial")()
    [check("map") for x in [1]]
    functools.reduce(lambda a, b: check("reduce"), [1, 2])
    functools.lru_cache(None)(lambda: check("lru_cache"))()
    re.sub("a", lambda found: check("re.sub") or "b", "a")
    max([1, 2], key=lambda x: check("max key") or x)
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    compare_items = callback(lambda a, b: check("ctypes callback") or 0)
    array = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(array, 3, ctypes.sizeof(ctypes.c_int), compare_items)
    cell = Methods()
    weakref.finalize(cell, lambda: check("weakref.finalize"))
    del cell
    gc.callbacks.append(lambda phase, info: check("gc callback"))
    gc.collect()
    gc.callbacks.clear()
    with contextlib.ExitStack() as exits:
        exits.callback(lambda: check("ExitStack"))


def exceptions():
    try:
        raise KeyError
    except KeyError:
        check("except")
    finally:
        check("finally")
    g = generator(3)
    next(g)
    g.close()

    def thrown_into():
        try:
            yield 1
        except ValueError:
            check("generator.throw")
            yield 2

    g = thrown_into()
    next(g)
    g.throw(ValueError())


def names():
    for name in ("naïve_ÿ", "имя_Ω", "𝒻𝓊𝓃𝒸", "名前"):
        scope = {"check": check}
        source = f"def {name}():\n    check('name')\n{name}()\n"
        exec(compile(source, f"/tmp/{name}/файл_𝒻.py", "exec"), scope)
    exec(
        compile("check('undecodable file name')", "/tmp/\udcff\udc80.py", "exec"), {"check": check}
    )
    exec(compile("\n" * 70000 + "check('far line')", "far.py", "exec"), {"check": check})
    eval("check('eval')")


def made_and_dropped():
    """Code objects created and freed at the same addresses, equal except for one number or line."""
    for i in range(3000):
        scope = {"check": check if i % 7 == 0 else (lambda _: None)}
        before, between, name = "\n" * (i % 5), "\n" * (i % 3), f"f{i % 13}"
        source = f"{before}def {name}():\n{between}  check('made code')\n{name}()\n"
        exec(compile(source, f"made{i % 11}", "exec"), scope)


def traced():
    def tracer(frame, event, argument):
        if frame.f_code.co_name == "watched" and event == "line":
            check("settrace")
        return tracer

    def profiler(frame, event, argument):
        if frame.f_code.co_name == "watched":
            check("setprofile")

    def watched():
        a = 1
        return a + 1

    sys.settrace(tracer)
    watched()
    sys.settrace(None)
    sys.setprofile(profiler)
    watched()
    sys.setprofile(None)


async def asynchronous():
    async def waiting(n):
        await asyncio.sleep(0)
        check("coroutine")
        if n:
            await waiting(n - 1)

    async def produced():
        for _ in range(2):
            yield check("asynchronous generator")

    await asyncio.gather(waiting(3), waiting(2))
    async for _ in produced():
        check("async for")
    [x async for x in produced()]


def threads():
    def work():
        for _ in range(100):
            nested(5, "thread")
            list(delegating())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def main():
    sys.setrecursionlimit(3000)
    check("module level")
    for depth in (1, 10, 180, 500, *range(507, 513), 520, 700):
        nested(depth, f"recursion of {depth}")
    list(delegating())
    methods()
    deleted_at_return()
    comprehensions()
    called_from_c()
    exceptions()
    names()
    made_and_dropped()
    traced()
    asyncio.run(asynchronous())
    threads()
    print(
        json.dumps(
            {
                "checked": checked,
                "situations": len(seen),
                "wrong": len(wrong),
                "examples": wrong[:5],
                "codes": with_gil.probe_codes(),
            }
        )
    )


main()
