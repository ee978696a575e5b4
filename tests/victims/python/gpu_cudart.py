"""Allocates by CUDA's own runtime: gpu_cudart.py LIBCUDART. The runtime resolves all of the driver's
functions, and fails to start on the fake one."""

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
