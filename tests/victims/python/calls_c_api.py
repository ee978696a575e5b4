"""oomrec.h version 3 by ctypes: runs the function named by its argument, and prints its result as JSON."""

import ctypes
import json
import os
import signal
import sys
import threading
import time

library = ctypes.CDLL(os.environ.get("OOMREC_LATE"))  # None: the process itself

MIB = 1 << 20
TOO_MUCH = 1 << 46


u32, u64, c_text = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p


def fields(*rows):
    """Of (type, names), in order."""
    return [(name, kind) for kind, names in rows for name in names.split()]


def chars(count):
    return ctypes.c_char * count


class Space(ctypes.Structure):
    _fields_ = fields((chars(16), "name"), (u64, "live peak allocated count"))


class Device(ctypes.Structure):
    _fields_ = fields(
        (chars(8), "kind"), (ctypes.c_int32, "ordinal"), (u32, "reserved"),
        (chars(48), "uuid"), (chars(64), "name"), (u64, "total free used counted limit"),
    )  # fmt: skip


class Usage(ctypes.Structure):
    _fields_ = fields(
        (u32, "size space_count device_count reserved"),
        (u64, "live peak rss limit used_of_limit headroom"),
        (chars(16), "limit_kind"), (Space * 16, "spaces"), (Device * 16, "devices"),
    )  # fmt: skip


class Thrown(ctypes.Structure):
    _fields_ = fields(
        (u32, "size since"),
        (c_text, "type module message traceback context metadata objects backend"),
        (u32, "any_thread"),
    )


class Block(ctypes.Structure):
    _fields_ = fields((u32, "size node"), (u64, "address bytes birth"), (chars(16), "space"))


library.oomrec_set_limit.argtypes = [u64]
library.oomrec_block_of.argtypes = [u64, ctypes.c_void_p]
library.oomrec_missing.restype = c_text
library.oomrec_note_device.argtypes = [c_text, ctypes.c_int32, c_text, u64, u64, u64, u64]


def usage():
    asked = Usage(size=ctypes.sizeof(Usage))
    return asked if library.oomrec_usage(ctypes.byref(asked)) else None


def path_of_last_bundle():
    return path_by(library.oomrec_last_bundle)


def path_by(find):
    path = ctypes.create_string_buffer(4096)
    length = find(path, len(path))
    assert length == len(path.value)
    return path.value.decode()


def report(since=0, **texts):
    """oomrec_exception: what it returned, and the bundle."""
    path = ctypes.create_string_buffer(4096)
    thrown = Thrown(size=ctypes.sizeof(Thrown), since=since, **texts)
    result = library.oomrec_exception(ctypes.byref(thrown), path, len(path))
    return [result, path.value.decode()]


def refuse(size=TOO_MUCH):
    try:
        bytearray(size)
    except MemoryError:
        return library.oomrec_last_failure()
    return -1


WORDS = {
    "type": b"MemoryError",
    "module": b"builtins",
    "message": b"no more",
    "traceback": b"Traceback (most recent call last):\n",
    "metadata": b'{"epoch": 3, "outcome": "mine", "nested": {"repeats": [1, 2]}}',
}


def figures():
    before = usage()
    kept = bytearray(32 * MIB)
    library.oomrec_set_limit(256 * MIB)
    now = usage()
    library.oomrec_set_limit(0)
    spaces = {space.name.decode(): space.live for space in now.spaces[: now.space_count]}
    return {
        "grown": now.live - before.live,
        "size": len(kept),
        "spaces": spaces,
        "live": now.live,
        "peak": now.peak,
        "rss": now.rss,
        "limit": [now.limit_kind.decode(), now.limit, now.used_of_limit, now.headroom],
        "unlimited": before.limit_kind.decode(),
        "devices": now.device_count,
    }


def short_struct():
    asked = Usage(size=24, live=7, peak=7)
    known = library.oomrec_usage(ctypes.byref(asked))
    return [known, asked.size, asked.space_count > 0, asked.live != 7, asked.peak]


def last_bundle():
    before = path_of_last_bundle()
    library.oomrec_dump(b"first")
    first = path_of_last_bundle()
    number = refuse()
    small = ctypes.create_string_buffer(8)
    return {
        "before": before,
        "first": first,
        "there": os.path.exists(os.path.join(first, "manifest.json")),
        "refused": path_of_last_bundle(),
        "number": number,
        "next": refuse(),
        "no room": library.oomrec_last_bundle(small, 8),
    }


def exception():
    since = library.oomrec_last_failure()
    refuse()
    refused = path_of_last_bundle()
    reported = report(since, **WORDS, objects=b'[{"bytes": 1}]')
    again = report(since, **{**WORDS, "message": b"once more"})
    return {"refused": refused, "reported": reported, "again": again}


def exception_of_another_thread():
    def in_another_thread(work):
        found = []
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
        thread.join()
        return found[0]

    def refused_twice():
        for _ in range(2):  # the second only counts
            refuse()
        library.oomrec_dump(b"another")
        return path_by(library.oomrec_failure_bundle)

    since = library.oomrec_failures()
    bundle = in_another_thread(refused_twice)
    return {
        "refused": bundle,
        "counted": library.oomrec_failures() - since,
        "own": [library.oomrec_last_failure(), path_by(library.oomrec_failure_bundle)],
        "since": report(library.oomrec_failures(), any_thread=1, message=b"since"),
        "not asked": report(since, message=b"not asked"),
        "asked": report(since, any_thread=1, message=b"asked"),
        "again": report(since, any_thread=1, message=b"again"),
    }


def exception_without_refusal():
    library.oomrec_context_push(b"epoch 7")
    since = library.oomrec_last_failure()
    try:
        [0] * 2**61
    except MemoryError:
        return report(since, **WORDS)
    return None


def hostile_texts():
    everything = bytes(range(1, 256)) + b'"\\ </script> \xed\xa0\x80'
    long = b"x" * 200_000
    odd = report(
        0, type=everything, module=b"", message=everything, traceback=long, context=everything
    )
    bad = [
        report(0, metadata=text)
        for text in (b"", b"[1]", b"{", b'{"a": NaN}', b'{"a": "\xff"}', b"{}{}", b'{"a": 1e999}')
    ]
    deep = report(0, metadata=b'{"a":' + b"[" * 500 + b"]" * 500 + b"}")
    large = report(0, metadata=b'{"a": "' + b"x" * 70_000 + b'"}')
    surrogate = report(0, metadata=b'{"a": "\\ud800", "b": "\\ud83d\\ude00"}')
    return {
        "odd": odd,
        "bad": [bad[0], bad[-1]],
        "results": [result for result, _ in bad],
        "deep": deep,
        "large": large,
        "surrogate": surrogate,
    }


def repeated_refusals():
    """One stack, refused again and again, and each time an exception."""
    reported = []
    for number in range(3):
        since = library.oomrec_last_failure()
        refuse()
        reported.append(report(since, message=b"number %d" % number))
    return reported


def dump_with():
    path = ctypes.create_string_buffer(4096)
    result = library.oomrec_dump_with(b"by hand", b'{"step": 5}', path, len(path))
    return [result, path.value.decode()]


def labels():
    kept = []

    def unlabelled():
        kept.append(bytearray(9 * MIB + 1))

    library.oomrec_context_push(b"epoch 3")
    library.oomrec_context_push(b"batch 7")
    kept.append(bytearray(8 * MIB + 1))
    thread = threading.Thread(target=unlabelled, name="backward")
    thread.start()
    thread.join()
    library.oomrec_context_pop()
    kept.append(bytearray(7 * MIB + 1))
    refuse()
    library.oomrec_context_pop()
    library.oomrec_context_pop()
    kept.append(bytearray(6 * MIB + 1))
    thread = threading.Thread(target=lambda: kept.append(bytearray(5 * MIB + 1)), name="later")
    thread.start()
    thread.join()
    library.oomrec_dump(b"labelled")
    return path_of_last_bundle()


def many_labels():
    kept = []
    for number in range(4100):
        library.oomrec_context_push(b"label %d" % number)
        if number in (0, 4095, 4099):
            kept.append(bytearray(MIB * (20 + len(kept)) + 1))
        library.oomrec_context_pop()
    library.oomrec_dump(b"many")
    return path_of_last_bundle()


def forked_labels():
    library.oomrec_context_push(b"outer")
    library.oomrec_context_push(b"inner")
    child = os.fork()
    if child == 0:
        library.oomrec_context_push(b"of the child")
        kept = bytearray(4 * MIB + 1)
        library.oomrec_context_pop()
        more = bytearray(3 * MIB + 1)
        library.oomrec_dump(b"of the child")
        os._exit(0 if kept and more else 1)
    os.waitpid(child, 0)
    return None


def push_cost():
    rounds = 100_000
    clock = time.thread_time  # another process may have the processor
    push, pop = library.oomrec_context_push, library.oomrec_context_pop
    began = clock()
    for _ in range(rounds):
        library.oomrec_api_version()
        library.oomrec_api_version()
    calls = clock() - began
    began = clock()
    for _ in range(rounds):
        push(b"step")
        pop()
    return (clock() - began - calls) / rounds * 1e9


def news():
    """Whether an event wakes a thread that waits for it."""
    woken = {}

    def wait(seen, name):
        woken[name] = library.oomrec_wait(seen, 50_000)

    def measure(name, act):
        seen = library.oomrec_wait(0, 0)
        waiter = threading.Thread(target=wait, args=(seen, name))
        waiter.start()
        time.sleep(0.05)
        kept = act()
        waiter.join()
        return [woken[name] > seen, kept is not None]

    results = {"refusal": measure("refusal", lambda: refuse(MIB << 40))}
    results["bundle"] = measure("bundle", lambda: library.oomrec_dump(b"for news"))
    used = usage().live
    library.oomrec_set_limit(used + 100 * MIB)
    results["asked"] = library.oomrec_notify_at(80, 1)
    seen = library.oomrec_wait(0, 0)
    results["far"] = library.oomrec_wait(seen, 150) == seen
    blocks = []

    def grow():
        blocks.extend(bytearray(MIB) for _ in range(95))
        return blocks

    results["passed"] = measure("passed", grow)
    seen = library.oomrec_wait(0, 0)
    blocks.append(bytearray(MIB))
    results["once"] = library.oomrec_wait(seen, 250) == seen
    results["room"] = [library.oomrec_notify_at(percent, 1) for percent in range(1, 10)]
    results["back"] = [library.oomrec_notify_at(percent, 0) for percent in (1, 99)]
    results["senseless"] = [library.oomrec_notify_at(percent, 1) for percent in (0, 101)]
    return results


def blocks():
    block = Block(size=ctypes.sizeof(Block))

    def make_batch():
        return ctypes.create_string_buffer(3 * MIB)

    kept = make_batch()
    address = ctypes.addressof(kept)
    text = ctypes.create_string_buffer(4096)
    found = {}
    for name, where in {"begins": address, "inside": address + MIB + 5}.items():
        if library.oomrec_block_of(where, ctypes.byref(block)):
            library.oomrec_stack_text(block.node, text, len(text))
            found[name] = [
                block.address <= where < block.address + block.bytes,
                block.bytes,
                block.space.decode(),
                abs(block.birth / 1e9 - time.time()) < 10,
                text.value.decode(),
            ]
    found["nowhere"] = library.oomrec_block_of(16, ctypes.byref(block))
    length = library.oomrec_stack_text(block.node, text, 40)
    found["short"] = [length, len(text.value)]
    return found


def loaded_later():
    results = {"before": [library.oomrec_is_active(), library.oomrec_missing().decode()]}
    for module in sys.argv[2:]:
        __import__(module)
    results["started"] = library.oomrec_start()
    results["active"] = library.oomrec_is_active()
    results["missing"] = library.oomrec_missing().decode()
    kept = bytearray(64 * MIB)
    for _ in range(4):
        library.oomrec_note_device(b"cuda", 0, b"Fake", 8 << 30, 6 << 30, 1 << 30, 2 << 30)
        library.oomrec_tick()
        time.sleep(0.11)
    library.oomrec_mark(b"half way")
    now = usage()
    device = now.devices[0]
    results["rss"] = now.rss
    results["device"] = [device.kind.decode(), device.name.decode(), device.total, device.free]
    results["torch"] = {s.name.decode(): s.live for s in now.spaces[: now.space_count]}
    results["reported"] = report(0, **WORDS)
    if os.environ.get("OOMREC_TEST_KILL"):
        print(json.dumps(results), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    results["kept"] = len(kept)
    return results


print(json.dumps(globals()[sys.argv[1]]()))
