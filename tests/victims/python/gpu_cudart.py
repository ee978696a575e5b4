"""Asks CUDA's own runtime for memory: gpu_cudart.py LIBCUDART. It looks all of the driver's functions
up, and refuses to start on one that is none."""

import ctypes
import sys

runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaGetErrorName.restype = ctypes.c_char_p
block = ctypes.c_void_p()
result = runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20))
print(runtime.cudaGetErrorName(result).decode())
dump = getattr(ctypes.CDLL(None), "oomrec_dump", None)
if dump is not None:
    dump(b"looked up")
sys.exit(result != 0)
