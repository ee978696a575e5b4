// The HIP runtime: its functions as the process sees them, and our queries to it.
#include "recorder/devices/registry.h"
#include "shim/gpu/driver.h"
#include "shim/gpu/hip_functions.h"
#include "shim/gpu/hip_types.h"
#include "shim/gpu/queries.h"
#include "shim/gpu/site.h"
#include "shim/gpu/wrappers.h"

namespace oomrec::shim::hip {
namespace {

using namespace gpu;  // the actions
using Result = hipError_t;
constexpr Vendor kVendor = Vendor::hip;
constexpr Result kNoDriver = hipErrorNoDevice;
enum class Index : std::size_t { OOMREC_HIP_FUNCTIONS(OOMREC_INDEX) };

}  // namespace

OOMREC_HIP_FUNCTIONS(OOMREC_WRAPPER)

namespace {

OOMREC_HIP_FUNCTIONS(OOMREC_OWN_NAME)
OOMREC_HIP_QUERIES(OOMREC_QUERY_ADDRESS)

constinit Function g_functions[] = {OOMREC_HIP_FUNCTIONS(OOMREC_FUNCTION_ROW)};
constexpr Query kQueries[] = {OOMREC_HIP_QUERIES(OOMREC_QUERY_ROW)};
constexpr const char* kLibraries[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                      "libamdhip64.so.5", "libamdhip64.so.4"};

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
OOMREC_HIP_QUERIES(OOMREC_QUERY)

struct Names {
  using Address = hipDeviceptr_t;
  using Graph = hipGraph_t;
  using Id = unsigned long long;
  using Node = hipGraphNode_t;
  using Pool = hipMemPool_t;
  using Stream = hipStream_t;
  using Uuid = hipUUID;
  static constexpr auto address_range = query_hipMemGetAddressRange;
  static constexpr auto capture_info = query_hipStreamGetCaptureInfo_v2;
  static constexpr auto exchange_capture_mode = query_hipThreadExchangeStreamCaptureMode;
  static constexpr auto memory = query_hipMemGetInfo;
  static constexpr auto name = query_hipDeviceGetName;
  static constexpr auto pool = query_hipDeviceGetMemPool;
  static constexpr auto pool_attribute = query_hipMemPoolGetAttribute;
  static constexpr auto uuid = query_hipDeviceGetUuid;
  static constexpr auto version = query_hipRuntimeGetVersion;
};

Site site_of(int device) noexcept { return {device, context_of_ordinal(device)}; }

// Queried whatever the last error: it succeeds wherever there is a device, and then clears an error
// only if the surrounding call does so, too.
Site site() noexcept {
  int device = -1;
  const bool can_query = g_query_hipGetDevice.load(std::memory_order_acquire) != nullptr;
  return can_query && g_hip.may_query() && call(g_query_hipGetDevice, &device) == hipSuccess
             ? site_of(device)
             : Site{};
}

Site site_of_stream(void* stream) noexcept {
  constexpr std::uintptr_t kPerThread = 2;  // hipStreamPerThread; 0 and 1: the legacy stream
  hipDevice_t device = -1;
  if (reinterpret_cast<std::uintptr_t>(stream) > kPerThread &&
      query_hipStreamGetDevice(static_cast<hipStream_t>(stream), &device))
    return site_of(device);
  return site();
}

// A HIP device is its context; it ends with a reset.
bool is_primary_inactive(std::int32_t) noexcept { return false; }

}  // namespace
}  // namespace oomrec::shim::hip

namespace oomrec::shim::gpu {

constinit Driver g_hip{Vendor::hip, hip::kLibraries, hip::g_functions, hip::kQueries};
constinit const Queries g_hip_queries =
    AlikeQueries<hip::Names>::with(hip::site, hip::site_of_stream, hip::is_primary_inactive);

}  // namespace oomrec::shim::gpu
