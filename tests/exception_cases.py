"""Exceptions that users of the libraries reported, with their classification.

Written by hand, so that a wrong or missing row of the implementation's table fails a test. Modules,
names and bases are the libraries'; messages have the form of public bug reports.
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple


class Case(NamedTuple):
    module: str
    bases: tuple[str, ...]  # the class's name, then those of its bases, in order
    text: str
    reason: str | None  # None: unrelated to memory
    attributes: dict[str, Any] = {}

    def exception(self) -> BaseException:
        """An exception with the same names as the library's."""
        kind = BaseException
        for name in reversed(self.bases):
            of_python = getattr(builtins, name, None)
            if of_python is not None and (name != self.bases[0] or self.module == "builtins"):
                kind = of_python
            else:
                kind = type(name, (kind,), {"__module__": self.module})
        error = kind(self.text)
        for name, value in self.attributes.items():
            setattr(error, name, value)
        return error

    def __str__(self) -> str:
        return f"{self.module}.{self.bases[0]}: {self.text[:60]}"


def python(name: str, text: str, reason: str | None, **attributes: Any) -> Case:
    return Case("builtins", (name,), text, reason, attributes)


def runtime_error(text: str, reason: str | None) -> Case:
    return python("RuntimeError", text, reason)


# Classified by their type, whatever their message.
_TENSORFLOW = "tensorflow.python.framework.errors_impl"
TYPES = [
    python("MemoryError", "", "MemoryError"),
    Case(
        "numpy._core._exceptions", ("_ArrayMemoryError", "MemoryError"),
        "Unable to allocate 58.0 GiB for an array with shape (176351, 176460) and data type uint16",
        "numpy.ArrayMemoryError",
    ),
    Case(
        "numpy.core._exceptions", ("MemoryError", "Exception"),
        "Unable to allocate 926. GiB for an array with shape (6794880, 36601) and data type float32",
        "numpy.ArrayMemoryError",
    ),
    Case(
        "torch.cuda", ("OutOfMemoryError", "RuntimeError"),
        "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which "
        "11.06 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory in use.",
        "torch.cuda.OutOfMemoryError",
    ),
    Case(
        "torch", ("OutOfMemoryError", "RuntimeError"),
        "Allocation on device 0 would exceed allowed memory.",
        "torch.cuda.OutOfMemoryError",
    ),
    Case(
        _TENSORFLOW, ("ResourceExhaustedError", "OpError", "Exception"),
        "OOM when allocating tensor with shape[500,17,17,4032] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
        "tensorflow.ResourceExhaustedError",
    ),
    Case(
        _TENSORFLOW, ("ResourceExhaustedError", "OpError", "Exception"),
        "2 root error(s) found.\n  (0) Resource exhausted: OOM when allocating tensor with shape[16,112,112,147]",
        "tensorflow.ResourceExhaustedError",
    ),
    Case(
        "cupy.cuda.memory", ("OutOfMemoryError", "MemoryError"),
        "Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).",
        "cupy.OutOfMemoryError",
    ),
    Case(
        "cupy.cuda.memory", ("OutOfMemoryError", "MemoryError"),
        "out of memory to allocate 1073741824 bytes (total 12373894656 bytes)",
        "cupy.OutOfMemoryError",
    ),
    Case(
        "pyarrow.lib", ("ArrowMemoryError", "ArrowException", "MemoryError"),
        "realloc of size 2172846080 failed", "pyarrow.ArrowMemoryError",
    ),
    Case("pyarrow.lib", ("ArrowMemoryError", "ArrowException", "Exception"), "", "pyarrow.ArrowMemoryError"),
    Case("pycuda._driver", ("MemoryError", "Error", "Exception"), "cuMemAlloc failed: out of memory", "pycuda.MemoryError"),
    Case(
        "pyopencl._cl", ("MemoryError", "Error", "Exception"),
        "clEnqueueWriteBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE", "pyopencl.MemoryError",
    ),
    Case(
        "ray.exceptions", ("OutOfMemoryError", "RayError", "Exception"),
        "Task was killed due to the node running low on memory.\nMemory on the node (IP: 10.0.3.220) where "
        "the task was running was 59.49GB / 62.58GB (0.950744), which exceeds the threshold of 0.95.",
        "ray.OutOfMemoryError",
    ),
    *(
        Case(
            module, ("OutOfMemoryException", "OperationalError", "DatabaseError", "Error", "Exception"),
            "Out of Memory Error: could not allocate block of size 256.0 KiB (190.5 MiB/190.7 MiB used)\n"
            "Database is launched in in-memory mode and no temporary directory is specified.",
            "duckdb.OutOfMemoryException",
        )
        for module in ("duckdb.duckdb", "_duckdb")
    ),
]  # fmt: skip

# Classified by their result code.
CODES = [
    python("OSError", "[Errno 12] Cannot allocate memory", "errno:ENOMEM", errno=12),
    python("BlockingIOError", "[Errno 12] Cannot allocate memory", "errno:ENOMEM", errno=12),
    Case(
        "torch", ("AcceleratorError", "RuntimeError"),
        "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in the documentation",
        "result_code:cudaErrorMemoryAllocation", {"error_code": 2},
    ),
    Case(
        "numba.cuda.cudadrv.driver", ("CudaAPIError", "CudaDriverError", "Exception"),
        "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "result_code:CUDA_ERROR_OUT_OF_MEMORY", {"code": 2},
    ),
    Case(
        "numba.cuda.cudadrv.driver", ("CudaAPIError", "CudaDriverError", "Exception"),
        "[2] Call to cuMemHostAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "result_code:CUDA_ERROR_OUT_OF_MEMORY", {"code": 2},
    ),
    Case(
        "cupy_backends.cuda.api.runtime", ("CUDARuntimeError", "RuntimeError"),
        "cudaErrorMemoryAllocation: out of memory",
        "result_code:cudaErrorMemoryAllocation", {"status": 2},
    ),
    Case(
        "cupy_backends.cuda.api.driver", ("CUDADriverError", "RuntimeError"),
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "result_code:CUDA_ERROR_OUT_OF_MEMORY", {"status": 2},
    ),
    Case(
        "cupy_backends.cuda.libs.cublas", ("CUBLASError", "RuntimeError"),
        "CUBLAS_STATUS_ALLOC_FAILED", "result_code:CUBLAS_STATUS_ALLOC_FAILED", {"status": 3},
    ),
    Case(
        "cv2", ("error", "Exception"),
        "OpenCV(4.9.0) /io/opencv/modules/core/src/alloc.cpp:73: error: (-4:Insufficient memory) Failed to "
        "allocate 10000400004 bytes in function 'OutOfMemoryError'",
        "result_code:cv::Error::StsNoMem", {"code": -4},
    ),
]  # fmt: skip

# Classified by their message, because the type is too general.
_NCCL = (
    "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, unhandled cuda error (run with "
    "NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclUnhandledCudaError: Call to CUDA function "
    "failed.\nLast error:\n"
)
_XLA = ("XlaRuntimeError", "RuntimeError")
_XLA_OOM = "RESOURCE_EXHAUSTED: Out of memory"
_JAX = "jaxlib.xla_extension"
TEXTS = [
    *(
        runtime_error(text, "message_pattern:DefaultCPUAllocator")
        for text in (
            "[enforce fail at CPUAllocator.cpp:64] . DefaultCPUAllocator: can't allocate memory: you tried to "
            "allocate 1178729664 bytes. Error code 12 (Cannot allocate memory)",
            "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
            "to allocate 132426121216 bytes. Error code 12 (Cannot allocate memory)",
            "[enforce fail at C:\\croot\\work\\c10\\core\\impl\\alloc_cpu.cpp:81] data. DefaultCPUAllocator: not "
            "enough memory: you tried to allocate 1981808640 bytes.",
            "DefaultCPUAllocator: not enough memory: you tried to allocate 5077901088 bytes.",
        )
    ),
    runtime_error(
        "CUDA out of memory. Tried to allocate 1006.00 MiB (GPU 0; 10.91 GiB total capacity; 9.18 GiB already "
        "allocated; 569.81 MiB free; 9.49 GiB reserved in total by PyTorch)",
        "message_pattern:CUDA out of memory",
    ),
    runtime_error(
        "XPU out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.11 GiB total capacity)",
        "message_pattern:CUDA out of memory",
    ),
    runtime_error(
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API "
        "call,so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
        "message_pattern:CUDA error: out of memory",
    ),
    runtime_error(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\nException raised from "
        "createCublasHandle at aten/src/ATen/cuda/CublasHandlePool.cpp:8 (most recent call first):",
        "message_pattern:CUBLAS_STATUS_ALLOC_FAILED",
    ),
    runtime_error("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "message_pattern:ALLOC_FAILED"),
    runtime_error("cuFFT error: CUFFT_ALLOC_FAILED", "message_pattern:ALLOC_FAILED"),
    runtime_error(
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
        "message_pattern:ALLOC_FAILED",
    ),
    Case(
        "xgboost.core", ("XGBoostError", "ValueError"),
        "cudaErrorMemoryAllocation: out of memory", "message_pattern:cudaErrorMemoryAllocation",
    ),
    runtime_error(
        "parallel_for failed: cudaErrorMemoryAllocation: out of memory",
        "message_pattern:cudaErrorMemoryAllocation",
    ),
    Case(
        "numba.cuda.cudadrv.driver", ("CudaAPIError", "CudaDriverError", "Exception"),
        "Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "message_pattern:CUDA_ERROR_OUT_OF_MEMORY",
    ),
    Case(
        "torch.distributed", ("DistBackendError", "RuntimeError"),
        _NCCL + "Cuda failure 2 'out of memory'", "message_pattern:NCCL out of memory",
    ),
    runtime_error(_NCCL + "Failed to CUDA calloc 6291456 bytes", "message_pattern:NCCL out of memory"),
    *(
        Case(_JAX, _XLA, text, "message_pattern:RESOURCE_EXHAUSTED")
        for text in (
            f"{_XLA_OOM} while trying to allocate 4770354232 bytes.\nBufferAssignment OOM Debugging.",
            f"{_XLA_OOM} allocating 20029400304 bytes.",
            "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 15.65G. That was not "
            "possible. There are 11.08G free.; (0x0x0_HBM0)",
        )
    ),
    Case("jax.errors", ("JaxRuntimeError", "RuntimeError"), _XLA_OOM, "message_pattern:RESOURCE_EXHAUSTED"),
    runtime_error(
        f"{_XLA_OOM} while trying to allocate 14285187448 bytes.",
        "message_pattern:RESOURCE_EXHAUSTED: Out of memory",
    ),
    Case(
        _TENSORFLOW, ("InternalError", "OpError", "Exception"),
        "failed to allocate memory [Op:AddV2]", "message_pattern:OOM when allocating tensor",
    ),
    Case(
        _TENSORFLOW, ("UnknownError", "OpError", "Exception"),
        "{{function_node __wrapped__Mul}} OOM when allocating tensor with shape[4096]",
        "message_pattern:OOM when allocating tensor",
    ),
    Case("lightgbm.basic", ("LightGBMError", "Exception"), "bad allocation", "message_pattern:std::bad_alloc"),
    Case("lightgbm.basic", ("LightGBMError", "Exception"), "std::bad_alloc", "message_pattern:std::bad_alloc"),
    Case(
        "xgboost.core", ("XGBoostError", "ValueError"),
        "bad_alloc: Failed to allocate memory.", "message_pattern:std::bad_alloc",
    ),
    runtime_error(
        "std::bad_alloc: out_of_memory: CUDA error at: /rmm/mr/device/cuda_memory_resource.hpp:70",
        "message_pattern:std::bad_alloc",
    ),
    Case(
        "pyarrow.lib", ("ArrowException", "Exception"),
        "malloc of size 2147483648 failed", "message_pattern:malloc of size",
    ),
    runtime_error("can't start new thread", "message_pattern:can't start new thread"),
    runtime_error(
        "DataLoader worker (pid 164244) is killed by signal: Killed. ",
        "message_pattern:DataLoader worker is killed by signal",
    ),
    runtime_error(
        "DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's workers "
        "are out of shared memory. Please try to raise your shared memory limit.",
        "message_pattern:DataLoader worker is killed by signal",
    ),
    *(
        runtime_error(f"unable to {text}", "message_pattern:unable to mmap")
        for text in (
            "mmap 29764 bytes from file </torch_10182_3020184674_63991>: Cannot allocate memory (12)",
            "mmap 2048 bytes from file <filename not specified>: Cannot allocate memory (12)",
            "allocate shared memory(shm) for file </torch_98_3456_1>: Success (0)",
        )
    ),
]  # fmt: skip

SOMETHING_ELSE = [
    runtime_error("seat allocation failed for user 7", None),
    runtime_error("gRPC resource exhausted: quota", None),
    runtime_error("RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Read requests'", None),
    runtime_error("room allocation: the hall is out of memory foam seats", None),
    runtime_error("out of memory", None),
    runtime_error("CUDA error: an illegal memory access was encountered", None),
    runtime_error("CUDA error: device-side assert triggered", None),
    runtime_error("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb)`", None),
    runtime_error("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED", None),
    runtime_error("cuFFT error: CUFFT_INTERNAL_ERROR", None),
    runtime_error("Storage size calculation overflowed with sizes=[4611686018427387904]", None),
    runtime_error("DataLoader worker (pid 3) is killed by signal: Segmentation fault. ", None),
    runtime_error("unable to mmap 64 bytes from file </torch_12_34>: No such device (19)", None),
    runtime_error("NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)", None),
    runtime_error(_NCCL + "Cuda failure 1 'invalid argument'", None),
    python("KeyError", "out of memory", None),
    python("ValueError", "malloc of size 12 failed", None),
    python("OSError", "[Errno 28] No space left on device", None, errno=28),
    python("OSError", "[Errno 24] Too many open files", None, errno=24),
    python("BlockingIOError", "[Errno 11] Resource temporarily unavailable", None, errno=11),
    python("KeyboardInterrupt", "", None),
    Case("mine.errors", ("OutOfMemoryError", "Exception"), "no room for user 7", None),
    Case("mine.errors", ("ResourceExhaustedError", "Exception"), "no such library", None),
    Case(_TENSORFLOW, ("ResourceExhaustedError", "OpError", "Exception"), "Received message larger than max (5 vs. 4)", None),
    Case(_JAX, _XLA, "RESOURCE_EXHAUSTED: SERVER: Received message larger than max (9 vs. 4)", None),
    Case(_JAX, _XLA, "INVALID_ARGUMENT: Out of memory space", None),
    Case(_JAX, _XLA, "UNIMPLEMENTED: DNN library is not found.", None),
    Case("grpc", ("RpcError", "Exception"), "StatusCode.RESOURCE_EXHAUSTED: Out of memory", None),
    Case("triton", ("OutOfResources", "Exception"), "out of resource: shared memory, Required: 147456", None),
    Case(
        "torch", ("AcceleratorError", "RuntimeError"),
        "CUDA error: operation not permitted when stream is capturing", None, {"error_code": 900},
    ),
    Case("torch", ("AcceleratorError", "RuntimeError"), "CUDA error: unknown error", None),
    Case(
        "numba.cuda.cudadrv.driver", ("CudaAPIError", "CudaDriverError", "Exception"),
        "[719] Call to cuMemAlloc results in CUDA_ERROR_LAUNCH_FAILED", None, {"code": 719},
    ),
    Case(
        "numba.cuda.cudadrv.driver", ("CudaAPIError", "CudaDriverError", "Exception"),
        "Call to cuMemcpyHtoD results in CUDA_ERROR_INVALID_VALUE", None, {"code": 1},
    ),
    Case(
        "cupy_backends.cuda.libs.cublas", ("CUBLASError", "RuntimeError"),
        "CUBLAS_STATUS_NOT_INITIALIZED", None, {"status": 1},
    ),
    Case(
        "cupy_backends.cuda.api.runtime", ("CUDARuntimeError", "RuntimeError"),
        "cudaErrorInvalidValue: invalid argument", None, {"status": 1},
    ),
    Case(
        "cv2", ("error", "Exception"),
        "OpenCV(4.5.5) color.cpp:182: error: (-215:Assertion failed) !_src.empty() in function 'cvtColor'",
        None, {"code": -215},
    ),
]  # fmt: skip
