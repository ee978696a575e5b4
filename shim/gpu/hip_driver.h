// The HIP runtime's functions as numbers, and the addresses of our queries.
#pragma once

#include <atomic>

#include "shim/gpu/driver.h"
#include "shim/gpu/hip_functions.h"
#include "shim/gpu/hip_queries.h"
#include "shim/gpu/hip_types.h"

namespace oomrec::shim::hip {

#define X(name, ...) name,
enum class Index : std::size_t { OOMREC_HIP_FUNCTIONS(X) };
#undef X

#define X(name, parameters) extern constinit std::atomic<void*> g_query_##name;
OOMREC_HIP_QUERIES(X)
#undef X

}  // namespace oomrec::shim::hip
