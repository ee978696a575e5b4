// The HIP runtime's functions as the process sees them.
#include "recorder/devices/registry.h"
#include "shim/gpu/hip_driver.h"
#include "shim/gpu/wrappers.h"

namespace oomrec::shim::hip {

#define X(name, parameters) constinit std::atomic<void*> g_query_##name{nullptr};
OOMREC_HIP_QUERIES(X)
#undef X

namespace {

using namespace gpu;  // the actions
using Result = hipError_t;
constexpr Vendor kVendor = Vendor::hip;
constexpr Result kNoDriver = hipErrorNoDevice;

}  // namespace

OOMREC_HIP_FUNCTIONS(OOMREC_WRAPPER)

namespace {

OOMREC_HIP_FUNCTIONS(OOMREC_OWN_NAME)

#define X(name, ...) {#name, oomrec_own_##name},
constinit Function g_functions[] = {OOMREC_HIP_FUNCTIONS(X)};
#undef X
#define X(name, parameters) {#name, &g_query_##name},
constexpr Query kQueries[] = {OOMREC_HIP_QUERIES(X)};
#undef X
constexpr const char* kLibraries[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                      "libamdhip64.so.5", "libamdhip64.so.4"};

}  // namespace
}  // namespace oomrec::shim::hip

namespace oomrec::shim::gpu {
constinit Driver g_hip{Vendor::hip, hip::kLibraries, hip::g_functions, hip::kQueries};
}  // namespace oomrec::shim::gpu
