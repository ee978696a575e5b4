"""Messages from a program to its check: lines of JSON on stdout.

`mark` also asks the recorder, if there is one, for a bundle named so: the check compares it with
the bytes that the program knows it holds. `device`, `host`, `address`: bytes in the spaces of the
driver (cuda, cuda_host, cuda_va; hip, …).
"""

import ctypes
import json
import sys


def say(**facts):
    print(json.dumps(facts), flush=True)


def mark(name, **held):
    dump = getattr(ctypes.CDLL(None), "oomrec_dump", None)
    if dump is not None:
        dump(name.encode())
    say(mark=name, **held)


def skip(reason):
    """The check cannot run here, for this reason."""
    say(skip=reason)
    sys.exit(0)
