// Finds functions by linking with -lcuda.
#include "tests/gpu/cuda_client.h"

namespace oomrec::shim::cuda {
#define X(name, base, parameters, ...) extern "C" CUresult name parameters;
OOMREC_CUDA_FUNCTIONS(X)
#undef X
}  // namespace oomrec::shim::cuda

namespace oomrec::gpu_trial {

void reach_by_links() {
#define X(name, ...) f.name = ::oomrec::shim::cuda::name;
  OOMREC_CUDA_FUNCTIONS(X)
#undef X
}

}  // namespace oomrec::gpu_trial
