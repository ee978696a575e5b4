// The CUDA driver's functions as numbers, and the addresses of our queries.
#pragma once

#include <atomic>

#include "shim/gpu/cuda_functions.h"
#include "shim/gpu/cuda_queries.h"
#include "shim/gpu/cuda_types.h"
#include "shim/gpu/driver.h"

namespace oomrec::shim::cuda {

#define X(name, ...) name,
enum class Index : std::size_t { OOMREC_CUDA_FUNCTIONS(X) };
#undef X

#define X(name, parameters) extern constinit std::atomic<void*> g_query_##name;
OOMREC_CUDA_QUERIES(X)
#undef X

}  // namespace oomrec::shim::cuda
