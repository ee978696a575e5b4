// The environment variables that a bundle may contain; all others are left out.
//
// Users send bundles to other people. So a variable is listed only if its value affects how memory
// is used or how the program was found, and if it never contains a secret. A trailing * matches any
// ending. docs/bundle-format.md shows the list to users.
#pragma once

#include <algorithm>
#include <string_view>

namespace oomrec::bundle {

inline constexpr std::string_view kListedVariables[] = {
    // How the program was found and started.
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_BIND_NOW",
    "LANG",
    "LC_*",
    "TZ",
    "SHELL",
    "TERM",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    // Ours.
    "OOMREC_*",
    // Python.
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONMALLOC",
    "PYTHONMALLOCSTATS",
    "PYTHONHASHSEED",
    "PYTHONOPTIMIZE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONTRACEMALLOC",
    "PYTHONDEVMODE",
    "PYTHONUTF8",
    // Allocators and the C library.
    "MALLOC_*",
    "GLIBC_TUNABLES",
    "JEMALLOC_*",
    "MIMALLOC_*",
    "TCMALLOC_*",
    "JE_MALLOC_CONF",
    // Thread counts of numerical libraries: each thread has buffers.
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "BLIS_NUM_THREADS",
    "NUMEXPR_*",
    "VECLIB_MAXIMUM_THREADS",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOGC",
    // Devices and their frameworks.
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TF_GPU_ALLOCATOR",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    // Which rank of a job this is.
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NTASKS",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_CPUS_PER_TASK",
};

constexpr bool is_listed_variable(std::string_view name) noexcept {
  return std::any_of(
      std::begin(kListedVariables), std::end(kListedVariables), [name](std::string_view listed) {
        return listed.ends_with('*') ? name.starts_with(listed.substr(0, listed.size() - 1))
                                     : name == listed;
      });
}

static_assert(is_listed_variable("LC_ALL") && is_listed_variable("PATH"));
static_assert(!is_listed_variable("PATHS") && !is_listed_variable("AWS_SECRET_ACCESS_KEY") &&
              !is_listed_variable("SSH_AUTH_SOCK") && !is_listed_variable("PYTHONSTARTUP"));

}  // namespace oomrec::bundle
