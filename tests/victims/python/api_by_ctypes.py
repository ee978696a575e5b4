"""The C API from Python without the package: found by ctypes if a recorder is active."""

import ctypes

program = ctypes.CDLL(None)
if hasattr(program, "oomrec_dump"):
    program.oomrec_set_limit.argtypes = [ctypes.c_uint64]
    program.oomrec_context_push(b"epoch 4")
    kept = bytearray(6 << 20)
    program.oomrec_context_pop()
    print("dumped", program.oomrec_dump(b"asked in Python"))
    program.oomrec_set_limit(48 << 20)
    try:
        bytearray(48 << 20)
    except MemoryError:
        print("refused")
    program.oomrec_set_limit(0)
    print("given", len(bytearray(48 << 20)) >> 20)
else:
    print("alone")
