// The CUDA driver's functions as the process sees them.
#include "recorder/devices/registry.h"
#include "shim/gpu/cuda_driver.h"
#include "shim/gpu/wrappers.h"

namespace oomrec::shim::cuda {

#define X(name, parameters) constinit std::atomic<void*> g_query_##name{nullptr};
OOMREC_CUDA_QUERIES(X)
#undef X

namespace {

using namespace gpu;  // the actions
using Result = CUresult;
constexpr Vendor kVendor = Vendor::cuda;
constexpr Result kNoDriver = CUDA_ERROR_NOT_INITIALIZED;

}  // namespace

OOMREC_CUDA_FUNCTIONS(OOMREC_WRAPPER)

namespace {

OOMREC_CUDA_FUNCTIONS(OOMREC_OWN_NAME)

#define X(name, ...) {#name, oomrec_own_##name},
constinit Function g_functions[] = {OOMREC_CUDA_FUNCTIONS(X)};
#undef X
#define X(name, parameters) {#name, &g_query_##name},
constexpr Query kQueries[] = {OOMREC_CUDA_QUERIES(X)};
#undef X
constexpr const char* kLibraries[] = {"libcuda.so.1", "libcuda.so"};

}  // namespace
}  // namespace oomrec::shim::cuda

namespace oomrec::shim::gpu {
constinit Driver g_cuda{Vendor::cuda, cuda::kLibraries, cuda::g_functions, cuda::kQueries};
}  // namespace oomrec::shim::gpu
