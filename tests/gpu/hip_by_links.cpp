// Finds functions by linking with -lamdhip64.
#include "tests/gpu/hip_client.h"

namespace oomrec::shim::hip {
#define X(name, base, parameters, ...) extern "C" hipError_t name parameters;
OOMREC_HIP_FUNCTIONS(X)
#undef X
}  // namespace oomrec::shim::hip

namespace oomrec::gpu_trial {

void reach_by_links() {
#define X(name, ...) f.name = ::oomrec::shim::hip::name;
  OOMREC_HIP_FUNCTIONS(X)
#undef X
}

}  // namespace oomrec::gpu_trial
