"""Holds arrays in every kind of variable, prints `objects().to_json()`, and checks that nothing changed."""

import gc
import sys
import weakref

import numpy as np
import oomrec

gc.disable()  # what is unreachable stays until it has been looked at
MIB = 1 << 20


def array(mib):
    return np.ones(mib * MIB, np.uint8)


class Model:
    def __init__(self):
        self.weights = array(11)
        self.me = self  # a cycle


class Slotted:
    __slots__ = ("inner",)


class Cache:
    shared = array(12)


of_module = array(13)


def generate():
    waiting = array(14)
    yield
    print(waiting)


def enclosed():
    free = array(15)
    return lambda: free


def caught():
    at_failure = array(16)
    raise ValueError(at_failure.size)


def looked_with_locals():
    mine = 1
    names = locals()  # before Python 3.13 the frame's own dictionary
    found = oomrec.objects()
    return found, {"mine": names.get("mine", mine + 1)}


def looked_from_inside():
    local = array(2)
    oomrec.objects()
    return weakref.ref(local)


def main():
    local = array(17).reshape(17, 1024, 1024)
    view = local[3:5, ::2]
    items = [None, array(18)]
    nested = {"train": {("a", 1): array(19)}}
    model, slotted = Model(), Slotted()
    slotted.inner = array(20)
    generator, function = generate(), enclosed()
    next(generator)
    unreachable = [array(21)]
    unreachable.append(unreachable)
    lost = weakref.ref(unreachable[0])
    del unreachable
    backwards = array(9)[::-1]
    small = np.ones(MIB - 1, np.uint8)

    everything = [
        local,
        view,
        items[1],
        nested["train"],
        model.weights,
        slotted.inner,
        backwards,
        small,
    ]
    before = [sys.getrefcount(each) for each in everything]
    gone = weakref.ref(items[1])
    try:
        caught()
    except ValueError:
        found, kept = looked_with_locals()
    assert [sys.getrefcount(each) for each in everything] == before
    assert kept["mine"] == 1, "the program's own dictionary of its variables was emptied"
    del everything
    items[1] = None
    assert gone() is None, "the array is still alive"
    gc.collect()
    assert lost() is None
    assert len(oomrec.objects(limit=3)) == 3 and oomrec.objects(100 * MIB).count == 0
    print(found.to_json())
    del generator, function
    assert looked_from_inside()() is None, "a frame was kept"


main()
