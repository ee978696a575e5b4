"""The table of exceptions for lack of memory, behind `classify_oom_exception`.

There are three kinds of row, tried in this order: a type name, a result code in an attribute, a text. Types
are identified by package and name, so no library is imported. A text is matched from its beginning, or from
the beginning of a traceback's last line, and only for the types that its library raises: "out of memory"
somewhere in a sentence proves nothing. Every row has a real example, which the tests classify and
docs/oom-exceptions.md shows.
"""

from __future__ import annotations

from typing import NamedTuple


class TypeRow(NamedTuple):
    """Exception types that always mean lack of memory."""

    package: str  # the first word of the class's module
    names: tuple[str, ...]
    reason: str
    example: str
    source: str


class CodeRow(NamedTuple):
    """Exception types with a result code in an attribute."""

    package: str
    name: str
    attribute: str
    codes: tuple[int, ...]
    reason: str
    example: str
    source: str


class TextRow(NamedTuple):
    """Exceptions that only their text identifies."""

    types: tuple[str, ...]  # class names, one of which is among the exception's bases
    pattern: str  # a regular expression for the beginning of the text
    reason: str
    example: str
    source: str


TYPES = (
    TypeRow("builtins", ("MemoryError",), "MemoryError", "", "CPython, Objects/exceptions.c"),
    TypeRow(
        "numpy",
        (
            "MemoryError",
            "_ArrayMemoryError",
        ),  # its __name__ is its base's name; tracebacks print its own
        "numpy.ArrayMemoryError",
        "Unable to allocate 2.00 EiB for an array with shape (288230376151711744,) and data type float64",
        "NumPy, numpy/_core/_exceptions.py",
    ),
    TypeRow(
        "torch",
        ("OutOfMemoryError",),
        "torch.cuda.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 146.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free.",
        "PyTorch, c10/cuda/CUDACachingAllocator.cpp",
    ),
    TypeRow(
        "tensorflow",
        ("ResourceExhaustedError",),
        "tensorflow.ResourceExhaustedError",
        "OOM when allocating tensor with shape[32,1024,64,64] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        "TensorFlow, tensorflow/python/framework/errors_impl.py",
    ),
    TypeRow(
        "cupy",
        ("OutOfMemoryError",),
        "cupy.OutOfMemoryError",
        "Out of memory allocating 10,834,217,984 bytes (allocated so far: 15,031,810,048 bytes).",
        "CuPy, cupy/cuda/memory.pyx",
    ),
    TypeRow(
        "pyarrow",
        ("ArrowMemoryError",),
        "pyarrow.ArrowMemoryError",
        "malloc of size 267317312 failed",
        "Apache Arrow, cpp/src/arrow/memory_pool.cc",
    ),
    TypeRow(
        "pycuda",
        ("MemoryError",),
        "pycuda.MemoryError",
        "cuMemAlloc failed: out of memory",
        "PyCUDA, src/wrapper/wrap_cudadrv.cpp",
    ),
    TypeRow(
        "pyopencl",
        ("MemoryError",),
        "pyopencl.MemoryError",
        "clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE",
        "PyOpenCL, src/wrap_cl.hpp",
    ),
    TypeRow(
        "ray",
        ("OutOfMemoryError",),
        "ray.OutOfMemoryError",
        "Task was killed due to the node running low on memory.",
        "Ray, python/ray/exceptions.py",
    ),
    TypeRow(
        "duckdb",
        ("OutOfMemoryException",),
        "duckdb.OutOfMemoryException",
        "Out of Memory Error: could not allocate block of size 256.0 KiB (190.5 MiB/190.7 MiB used)",
        "DuckDB 1.2.2, which has its exceptions in duckdb.duckdb",
    ),
    TypeRow(
        "_duckdb",
        ("OutOfMemoryException",),
        "duckdb.OutOfMemoryException",
        "Out of Memory Error: could not allocate block of size 256.0 KiB (190.5 MiB/190.7 MiB used)",
        "DuckDB 2.0.1, which has them in _duckdb",
    ),
)

CUDA_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation, hipErrorOutOfMemory

CODES = (
    CodeRow(
        "builtins",
        "OSError",
        "errno",
        (12,),
        "errno:ENOMEM",
        "[Errno 12] Cannot allocate memory",
        "Linux, include/uapi/asm-generic/errno-base.h",
    ),
    CodeRow(
        "torch",
        "AcceleratorError",
        "error_code",
        (CUDA_OUT_OF_MEMORY,),
        "result_code:cudaErrorMemoryAllocation",
        "CUDA error: out of memory",
        "PyTorch, torch/csrc/Exceptions.h",
    ),
    CodeRow(
        "numba",
        "CudaAPIError",
        "code",
        (CUDA_OUT_OF_MEMORY,),
        "result_code:CUDA_ERROR_OUT_OF_MEMORY",
        "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "Numba, numba/cuda/cudadrv/driver.py",
    ),
    CodeRow(
        "cupy_backends",
        "CUDARuntimeError",
        "status",
        (CUDA_OUT_OF_MEMORY,),
        "result_code:cudaErrorMemoryAllocation",
        "cudaErrorMemoryAllocation: out of memory",
        "CuPy, cupy_backends/cuda/api/runtime.pyx",
    ),
    CodeRow(
        "cupy_backends",
        "CUDADriverError",
        "status",
        (CUDA_OUT_OF_MEMORY,),
        "result_code:CUDA_ERROR_OUT_OF_MEMORY",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "CuPy, cupy_backends/cuda/api/driver.pyx",
    ),
    CodeRow(
        "cupy_backends",
        "CUBLASError",
        "status",
        (3,),
        "result_code:CUBLAS_STATUS_ALLOC_FAILED",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CuPy, cupy_backends/cuda/libs/cublas.pyx",
    ),
    CodeRow(
        "cv2",
        "error",
        "code",
        (-4,),
        "result_code:cv::Error::StsNoMem",
        "OpenCV(4.2.0) ../modules/core/src/alloc.cpp:73: error: (-4:Insufficient memory) Failed to allocate 32732725429824 bytes in function 'OutOfMemoryError'",
        "OpenCV, modules/core/src/alloc.cpp",
    ),
)

# Bindings raise RuntimeError for C++ exceptions: std::bad_alloc, and thrust's with the runtime's error.
_RUNTIME = ("RuntimeError",)
# Exceptions of bindings whose base is not RuntimeError: XGBoostError and LightGBMError are Exceptions.
_NATIVE = ("RuntimeError", "XGBoostError", "LightGBMError")
# JAX's exceptions begin with a status code. Theirs is always about memory.
_JAX = ("XlaRuntimeError", "JaxRuntimeError")

TEXTS = (
    TextRow(
        _RUNTIME,
        r"(?:\[enforce fail at [^\]]*\] ?(?:err == 0|data|\. )?\.? ?)?DefaultCPUAllocator: (?:can't allocate|not enough) memory: you tried to allocate \d+ bytes",
        "message_pattern:DefaultCPUAllocator",
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 2359296 bytes. Error code 12 (Cannot allocate memory)",
        "PyTorch, c10/core/impl/alloc_cpu.cpp",
    ),
    TextRow(
        _RUNTIME,
        r"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate ",
        "message_pattern:CUDA out of memory",
        "HIP out of memory. Tried to allocate 978.00 MiB. GPU 0 has a total capacity of 15.98 GiB of which 630.00 MiB is free.",
        "PyTorch, c10/cuda/CUDACachingAllocator.cpp (RuntimeError before 1.13)",
    ),
    TextRow(
        _RUNTIME,
        r"(?:CUDA|HIP) error: out of memory\b",
        "message_pattern:CUDA error: out of memory",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
        "PyTorch, c10/cuda/CUDAException.cpp",
    ),
    TextRow(
        _RUNTIME,
        r"(?:CUDA|HIP) error: (?:CUBLAS|HIPBLAS)_STATUS_ALLOC_FAILED when calling ",
        "message_pattern:CUBLAS_STATUS_ALLOC_FAILED",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "PyTorch, aten/src/ATen/cuda/Exceptions.h",
    ),
    TextRow(
        _RUNTIME,
        r"(?:cuDNN error: CUDNN_STATUS|cuFFT error: CUFFT|cusolver error: CUSOLVER_STATUS)_ALLOC_FAILED\b",
        "message_pattern:ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "PyTorch, aten/src/ATen/cudnn/Exceptions.h, aten/src/ATen/native/cuda/CuFFTUtils.h",
    ),
    TextRow(
        _NATIVE,
        r"(?:\S+ failed: )?(?:cudaErrorMemoryAllocation|hipErrorOutOfMemory|CUDA_ERROR_OUT_OF_MEMORY)\b",
        "message_pattern:cudaErrorMemoryAllocation",
        "cudaErrorMemoryAllocation: out of memory",
        "NVIDIA CCCL, thrust/system/cuda/error.h; the driver's names in cuda.h",
    ),
    TextRow(
        ("RuntimeError", "CudaAPIError"),
        r"(?:\[2\] )?Call to \w+ results in (?:UNKNOWN_)?CUDA_ERROR_OUT_OF_MEMORY\b",
        "message_pattern:CUDA_ERROR_OUT_OF_MEMORY",
        "Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "Numba, numba/cuda/cudadrv/driver.py",
    ),
    TextRow(
        _RUNTIME,
        r"(?s)NCCL error in: .*(?:Failed to CUDA calloc (?:async )?\d+ bytes|Cuda failure (?:2 )?'out of memory')",
        "message_pattern:NCCL out of memory",
        "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, unhandled cuda error, NCCL version 2.14.3\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 2432 bytes",
        "NCCL, src/include/alloc.h; PyTorch, torch/csrc/distributed/c10d/NCCLUtils.hpp",
    ),
    TextRow(
        _JAX,
        r"RESOURCE_EXHAUSTED: ",
        "message_pattern:RESOURCE_EXHAUSTED",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 11.95MiB.",
        "JAX, jax/errors.py; XLA, xla/tsl/framework/bfc_allocator.cc",
    ),
    TextRow(
        ("RuntimeError", "ValueError"),
        r"RESOURCE_EXHAUSTED: (?:E\d+: \w+: )?(?:Out of memory|Failed to allocate request for |Attempting to (?:allocate|reserve) |XLA:TPU compile permanent error\. Ran out of memory)",
        "message_pattern:RESOURCE_EXHAUSTED: Out of memory",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1182720000 bytes.",
        "XLA, xla/tsl/framework/bfc_allocator.cc, xla/stream_executor",
    ),
    TextRow(
        ("OpError", "RuntimeError"),
        r"(?:\{\{[^}]*\}\} )?(?:OOM when allocating tensor with shape ?\[|failed to allocate memory \[Op:)",
        "message_pattern:OOM when allocating tensor",
        "{{function_node __wrapped__Cast_device_/job:localhost/replica:0/task:0/device:GPU:0}} failed to allocate memory [Op:Cast]",
        "TensorFlow, tensorflow/core/framework/op_kernel.cc",
    ),
    TextRow(
        _NATIVE,
        r"(?:std::)?bad_alloc(?:$|: )|(?:\[[\d:]+\] \S+: )?std::bad_alloc$|bad allocation$",
        "message_pattern:std::bad_alloc",
        "std::bad_alloc: cudaErrorMemoryAllocation: out of memory",
        "libstdc++, libsupc++/bad_alloc.cc; thrust adds the runtime's words",
    ),
    TextRow(
        ("ArrowException", "OSError", "RuntimeError"),
        r"(?:malloc|realloc) of size \d+ failed$",
        "message_pattern:malloc of size",
        "realloc of size 2449473536 failed",
        "Apache Arrow, cpp/src/arrow/memory_pool.cc",
    ),
    TextRow(
        _RUNTIME,
        r"can't start new thread$",
        "message_pattern:can't start new thread",
        "can't start new thread",
        "CPython, Modules/_threadmodule.c",
    ),
    TextRow(
        _RUNTIME,
        r"DataLoader worker \(pid \d+\) is killed by signal: (?:Killed|Bus error)\.",
        "message_pattern:DataLoader worker is killed by signal",
        "DataLoader worker (pid 1219) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
        "PyTorch, torch/csrc/DataLoader.cpp",
    ),
    TextRow(
        _RUNTIME,
        r"unable to (?:mmap \d+ bytes from .*: Cannot allocate memory \(12\)|allocate shared memory\(shm\) for file <)",
        "message_pattern:unable to mmap",
        "unable to mmap 704 bytes from file <filename not specified>: Cannot allocate memory (12)",
        "PyTorch, aten/src/ATen/MapAllocator.cpp",
    ),
)

# Texts that a row above would match, but which are about something else: a service's quota, a connection's
# largest message.
NOT_MEMORY = (
    r"(?:RESOURCE_EXHAUSTED: |SERVER: )*(?:\w+: )*Received message larger than max",
    r"(?:RESOURCE_EXHAUSTED: )?(?i:[\w. ]*\bquota\b)",
)
