"""Prints the time of empty blocks of the Python package as JSON, in nanoseconds.

Wall time of a loop, the loop itself included (some 20 ns): the median of many short ones, which are not
interrupted as a long one is.
"""

import json
import sys
import timeit
from statistics import median

import oomrec


class Empty:
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass


empty = Empty()
STATEMENTS = {
    "empty": "with empty: pass",
    "context": "with context('epoch 3'): pass",
    "capture_oom": "with capture_oom('evaluate'): pass",
    "mark": "mark('end of an epoch')",
    "usage": "usage()",
}
names = {"empty": empty, **vars(oomrec)}
loops = int(sys.argv[1])
took = {}
for name, statement in STATEMENTS.items():
    count = max(1, loops // 10) if name in ("usage", "mark") else loops
    took[name] = (
        median(timeit.repeat(statement, globals=names, number=count, repeat=200)) / count * 1e9
    )
print(json.dumps(took))
