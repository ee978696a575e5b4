#include "shim/gpu/cuda_queries.h"

#include <cstring>

#include "recorder/devices/registry.h"
#include "shim/gpu/cuda_driver.h"
#include "shim/gpu/queries.h"
#include "shim/gpu/query_call.h"
#include "shim/gpu/site.h"

namespace oomrec::shim::cuda {
namespace {

using Result = CUresult;
gpu::Driver& queried_driver() noexcept { return gpu::g_cuda; }
// The driver keeps no last error.
struct QueryScope {
  static bool is_allowed() noexcept { return true; }
};
OOMREC_CUDA_QUERIES(OOMREC_QUERY_CALL)

constexpr CUstreamCaptureMode kRelaxed = 2;      // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr CUstreamCaptureStatus kCapturing = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
constexpr CUmemPool_attribute kReserved = 5;     // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT

// Relaxed capture mode: queries must not invalidate a capture.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept : exchanged_(query_cuThreadExchangeStreamCaptureMode(&mode_)) {}
  ~RelaxedCapture() {
    if (exchanged_) query_cuThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = kRelaxed;  // after the exchange: the thread's own
  const bool exchanged_;
};

gpu::Site site() noexcept {
  CUcontext context = nullptr;
  CUdevice device = -1;
  if (!query_cuCtxGetCurrent(&context) || context == nullptr) return {};
  const auto current = reinterpret_cast<std::uint64_t>(context);
  device = gpu::ordinal_of_context(current);
  if (device < 0 && !query_cuCtxGetDevice(&device)) return {};
  return {device, current};
}

// Only the device of the current context can be queried. A stream of another context has a device
// only if that context was seen before.
gpu::Site site_of_stream(void* stream) noexcept {
  gpu::Site found = site();
  constexpr std::uintptr_t kPerThread = 2;  // CU_STREAM_PER_THREAD; 0 and 1: the legacy stream
  CUcontext context = nullptr;
  if (reinterpret_cast<std::uintptr_t>(stream) > kPerThread &&
      query_cuStreamGetCtx(static_cast<CUstream>(stream), &context) &&
      reinterpret_cast<std::uint64_t>(context) != found.context)
    found = {gpu::ordinal_of_context(reinterpret_cast<std::uint64_t>(context)),
             reinterpret_cast<std::uint64_t>(context)};
  return found;
}

bool memory(std::uint64_t& free_bytes, std::uint64_t& total_bytes) noexcept {
  const RelaxedCapture relaxed;
  std::size_t free = 0, total = 0;
  if (!query_cuMemGetInfo_v2(&free, &total)) return false;
  free_bytes = free;
  total_bytes = total;
  return true;
}

void identify(recorder::DeviceIdentity& identity) noexcept {
  CUuuid uuid{};
  if (query_cuDeviceGetUuid(&uuid, identity.ordinal))
    std::memcpy(identity.uuid, &uuid, sizeof uuid);
  if (!query_cuDeviceGetName(identity.name, int{sizeof identity.name - 1}, identity.ordinal))
    identity.name[0] = '\0';
}

std::uint32_t version() noexcept {
  int version = 0;
  return query_cuDriverGetVersion(&version) ? static_cast<std::uint32_t>(version) : 0;
}

std::uint64_t capturing_graph(void* stream) noexcept {
  CUstreamCaptureStatus status = 0;
  CUgraph graph = nullptr;
  cuuint64_t id = 0;
  const CUgraphNode** const no_dependencies = nullptr;
  std::size_t* const no_count = nullptr;
  const bool known = query_cuStreamGetCaptureInfo_v2(static_cast<CUstream>(stream), &status, &id,
                                                     &graph, no_dependencies, no_count);
  return known && status == kCapturing ? reinterpret_cast<std::uint64_t>(graph) : 0;
}

std::uint64_t bytes_at(std::uint64_t address) noexcept {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  return query_cuMemGetAddressRange_v2(&base, &bytes, address) ? bytes : 0;
}

void* pool(std::int32_t ordinal) noexcept {
  CUmemoryPool found = nullptr;
  return query_cuDeviceGetMemPool(&found, ordinal) ? found : nullptr;
}

bool pool_reserved(void* of, std::uint64_t& bytes) noexcept {
  const RelaxedCapture relaxed;
  cuuint64_t reserved = 0;
  if (!query_cuMemPoolGetAttribute(static_cast<CUmemoryPool>(of), kReserved, &reserved))
    return false;
  bytes = reserved;
  return true;
}

bool is_primary_inactive(std::int32_t ordinal) noexcept {
  unsigned flags = 0;
  int active = 0;
  return query_cuDevicePrimaryCtxGetState(ordinal, &flags, &active) && active == 0;
}

}  // namespace
}  // namespace oomrec::shim::cuda

namespace oomrec::shim::gpu {

constinit const Queries g_cuda_queries = {
    cuda::site,          cuda::site_of_stream,      cuda::memory,   cuda::identify,
    cuda::version,       cuda::capturing_graph,     cuda::bytes_at, cuda::pool,
    cuda::pool_reserved, cuda::is_primary_inactive,
};

}  // namespace oomrec::shim::gpu
