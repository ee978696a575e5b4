#include "shim/gpu/hip_queries.h"

#include <cstring>

#include "recorder/devices/registry.h"
#include "shim/gpu/hip_driver.h"
#include "shim/gpu/queries.h"
#include "shim/gpu/query_call.h"
#include "shim/gpu/site.h"

namespace oomrec::shim::hip {
namespace {

using Result = hipError_t;
gpu::Driver& queried_driver() noexcept { return gpu::g_hip; }

template <class... Parameters>
Result call(const std::atomic<void*>& query, Parameters... parameters) noexcept {
  void* const function = query.load(std::memory_order_acquire);
  return function == nullptr ? hipSuccess
                             : reinterpret_cast<Result (*)(Parameters...)>(function)(parameters...);
}

// The runtime keeps a thread's last error for hipGetLastError(); in older versions a successful
// call clears it. After a query, an out-of-memory error is restored by causing another. With any
// other error no query is made.
class QueryScope {
 public:
  QueryScope() noexcept : before_(call(g_query_hipPeekAtLastError)) {}
  ~QueryScope() {
    if (!is_allowed() || call(g_query_hipPeekAtLastError) == before_) return;
    constexpr std::size_t kTooMuch = std::size_t{1} << 60;
    void* none = nullptr;
    before_ == hipSuccess ? call(g_query_hipGetLastError)
                          : call(g_query_hipMalloc, &none, kTooMuch);
  }
  QueryScope(const QueryScope&) = delete;
  QueryScope& operator=(const QueryScope&) = delete;
  bool is_allowed() const noexcept {
    return before_ == hipSuccess || before_ == hipErrorOutOfMemory;
  }

 private:
  const Result before_;
};
OOMREC_HIP_QUERIES(OOMREC_QUERY_CALL)

constexpr hipStreamCaptureMode kRelaxed = 2;      // hipStreamCaptureModeRelaxed
constexpr hipStreamCaptureStatus kCapturing = 1;  // hipStreamCaptureStatusActive
constexpr hipMemPoolAttr kReserved = 5;           // hipMemPoolAttrReservedMemCurrent

// Relaxed capture mode: queries must not invalidate a capture.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept : exchanged_(query_hipThreadExchangeStreamCaptureMode(&mode_)) {}
  ~RelaxedCapture() {
    if (exchanged_) query_hipThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  hipStreamCaptureMode mode_ = kRelaxed;  // after the exchange: the thread's own
  const bool exchanged_;
};

gpu::Site site_of(int device) noexcept { return {device, gpu::context_of_ordinal(device)}; }

// Queried whatever the last error: it succeeds wherever there is a device, and then clears an error
// only if the surrounding call does so, too.
gpu::Site site() noexcept {
  int device = -1;
  const bool can_query = g_query_hipGetDevice.load(std::memory_order_acquire) != nullptr;
  return can_query && queried_driver().may_query() &&
                 call(g_query_hipGetDevice, &device) == hipSuccess
             ? site_of(device)
             : gpu::Site{};
}

gpu::Site site_of_stream(void* stream) noexcept {
  constexpr std::uintptr_t kPerThread = 2;  // hipStreamPerThread; 0 and 1: the legacy stream
  hipDevice_t device = -1;
  if (reinterpret_cast<std::uintptr_t>(stream) > kPerThread &&
      query_hipStreamGetDevice(static_cast<hipStream_t>(stream), &device))
    return site_of(device);
  return site();
}

bool memory(std::uint64_t& free_bytes, std::uint64_t& total_bytes) noexcept {
  const RelaxedCapture relaxed;
  std::size_t free = 0, total = 0;
  if (!query_hipMemGetInfo(&free, &total)) return false;
  free_bytes = free;
  total_bytes = total;
  return true;
}

void identify(recorder::DeviceIdentity& identity) noexcept {
  hipUUID uuid{};
  if (query_hipDeviceGetUuid(&uuid, identity.ordinal))
    std::memcpy(identity.uuid, &uuid, sizeof uuid);
  if (!query_hipDeviceGetName(identity.name, int{sizeof identity.name - 1}, identity.ordinal))
    identity.name[0] = '\0';
}

std::uint32_t version() noexcept {
  int version = 0;
  return query_hipRuntimeGetVersion(&version) ? static_cast<std::uint32_t>(version) : 0;
}

std::uint64_t capturing_graph(void* stream) noexcept {
  hipStreamCaptureStatus status = 0;
  hipGraph_t graph = nullptr;
  unsigned long long id = 0;
  const hipGraphNode_t** const no_dependencies = nullptr;
  std::size_t* const no_count = nullptr;
  const bool known = query_hipStreamGetCaptureInfo_v2(static_cast<hipStream_t>(stream), &status,
                                                      &id, &graph, no_dependencies, no_count);
  return known && status == kCapturing ? reinterpret_cast<std::uint64_t>(graph) : 0;
}

std::uint64_t bytes_at(std::uint64_t address) noexcept {
  hipDeviceptr_t base = nullptr;
  std::size_t bytes = 0;
  return query_hipMemGetAddressRange(&base, &bytes, reinterpret_cast<hipDeviceptr_t>(address))
             ? bytes
             : 0;
}

void* pool(std::int32_t ordinal) noexcept {
  hipMemPool_t found = nullptr;
  return query_hipDeviceGetMemPool(&found, ordinal) ? found : nullptr;
}

bool pool_reserved(void* of, std::uint64_t& bytes) noexcept {
  const RelaxedCapture relaxed;
  std::uint64_t reserved = 0;
  if (!query_hipMemPoolGetAttribute(static_cast<hipMemPool_t>(of), kReserved, &reserved))
    return false;
  bytes = reserved;
  return true;
}

// A HIP device is its context; it ends with a reset.
bool is_primary_inactive(std::int32_t) noexcept { return false; }

}  // namespace
}  // namespace oomrec::shim::hip

namespace oomrec::shim::gpu {

constinit const Queries g_hip_queries = {
    hip::site,          hip::site_of_stream,      hip::memory,   hip::identify,
    hip::version,       hip::capturing_graph,     hip::bytes_at, hip::pool,
    hip::pool_reserved, hip::is_primary_inactive,
};

}  // namespace oomrec::shim::gpu
