"""A C++ library in a C program: its new fails and is caught there, and Python continues."""

import ctypes
import sys

plugin = ctypes.CDLL(sys.argv[1])  # RTLD_LOCAL, as every extension module is
size = ctypes.c_size_t(int(sys.argv[2]))


def ask(function):
    return function(size)


print("plain", ask(plugin.refused_new), flush=True)
print("nothrow", ask(plugin.refused_nothrow_new), flush=True)
print("aligned", ask(plugin.refused_aligned_new), flush=True)


def go_on():
    return bytearray(7 << 20)


kept = go_on()
dump = getattr(ctypes.CDLL(None), "oomrec_dump", None)
if dump:
    dump(b"afterwards")
