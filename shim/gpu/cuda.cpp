// The CUDA driver: its functions as the process sees them, and our queries to it.
#include "recorder/devices/registry.h"
#include "shim/gpu/cuda_functions.h"
#include "shim/gpu/cuda_types.h"
#include "shim/gpu/driver.h"
#include "shim/gpu/queries.h"
#include "shim/gpu/site.h"
#include "shim/gpu/wrappers.h"

namespace oomrec::shim::cuda {
namespace {

using namespace gpu;  // the actions
using Result = CUresult;
constexpr Vendor kVendor = Vendor::cuda;
constexpr Result kNoDriver = CUDA_ERROR_NOT_INITIALIZED;
enum class Index : std::size_t { OOMREC_CUDA_FUNCTIONS(OOMREC_INDEX) };

}  // namespace

OOMREC_CUDA_FUNCTIONS(OOMREC_WRAPPER)

namespace {

OOMREC_CUDA_FUNCTIONS(OOMREC_OWN_NAME)
OOMREC_CUDA_QUERIES(OOMREC_QUERY_ADDRESS)

constinit Function g_functions[] = {OOMREC_CUDA_FUNCTIONS(OOMREC_FUNCTION_ROW)};
constexpr Query kQueries[] = {OOMREC_CUDA_QUERIES(OOMREC_QUERY_ROW)};
constexpr const char* kLibraries[] = {"libcuda.so.1", "libcuda.so"};

// The driver keeps no last error.
struct QueryScope {
  static bool is_allowed() noexcept { return true; }
};
OOMREC_CUDA_QUERIES(OOMREC_QUERY)

struct Names {
  using Address = CUdeviceptr;
  using Graph = CUgraph;
  using Id = cuuint64_t;
  using Node = CUgraphNode;
  using Pool = CUmemoryPool;
  using Stream = CUstream;
  using Uuid = CUuuid;
  static constexpr auto address_range = query_cuMemGetAddressRange_v2;
  static constexpr auto capture_info = query_cuStreamGetCaptureInfo_v2;
  static constexpr auto exchange_capture_mode = query_cuThreadExchangeStreamCaptureMode;
  static constexpr auto memory = query_cuMemGetInfo_v2;
  static constexpr auto name = query_cuDeviceGetName;
  static constexpr auto pool = query_cuDeviceGetMemPool;
  static constexpr auto pool_attribute = query_cuMemPoolGetAttribute;
  static constexpr auto uuid = query_cuDeviceGetUuid;
  static constexpr auto version = query_cuDriverGetVersion;
};

Site site() noexcept {
  CUcontext context = nullptr;
  CUdevice device = -1;
  if (!query_cuCtxGetCurrent(&context) || context == nullptr) return {};
  const auto current = reinterpret_cast<std::uint64_t>(context);
  device = ordinal_of_context(current);
  if (device < 0 && !query_cuCtxGetDevice(&device)) return {};
  return {device, current};
}

// Only the device of the current context can be queried. A stream of another context has a device
// only if that context was seen before.
Site site_of_stream(void* stream) noexcept {
  Site found = site();
  constexpr std::uintptr_t kPerThread = 2;  // CU_STREAM_PER_THREAD; 0 and 1: the legacy stream
  CUcontext context = nullptr;
  if (reinterpret_cast<std::uintptr_t>(stream) > kPerThread &&
      query_cuStreamGetCtx(static_cast<CUstream>(stream), &context) &&
      reinterpret_cast<std::uint64_t>(context) != found.context)
    found = {ordinal_of_context(reinterpret_cast<std::uint64_t>(context)),
             reinterpret_cast<std::uint64_t>(context)};
  return found;
}

bool is_primary_inactive(std::int32_t ordinal) noexcept {
  unsigned flags = 0;
  int active = 0;
  return query_cuDevicePrimaryCtxGetState(ordinal, &flags, &active) && active == 0;
}

}  // namespace
}  // namespace oomrec::shim::cuda

namespace oomrec::shim::gpu {

constinit Driver g_cuda{Vendor::cuda, cuda::kLibraries, cuda::g_functions, cuda::kQueries};
constinit const Queries g_cuda_queries =
    AlikeQueries<cuda::Names>::with(cuda::site, cuda::site_of_stream, cuda::is_primary_inactive);

}  // namespace oomrec::shim::gpu
