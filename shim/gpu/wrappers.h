// What the rows of a driver's table expand to, for both vendors. Expected in scope: the vendor's
// types, the actions, kVendor, Result (0: success), and kNoDriver. The latter is the result if no
// driver is loaded, for programs that refer to a driver's function weakly.
#pragma once

#include <atomic>
#include <cstring>
#include <string_view>

#include "recorder/devices/registry.h"
#include "shim/gpu/actions/contexts.h"
#include "shim/gpu/actions/graphs.h"
#include "shim/gpu/actions/handles.h"
#include "shim/gpu/actions/memory.h"
#include "shim/gpu/actions/ordered.h"
#include "shim/gpu/driver.h"
#include "shim/gpu/queries.h"
#include "shim/interpose/export.h"

// A function's number in its table: `enum class Index` of all.
#define OOMREC_INDEX(name, ...) name,

// OOMREC_WRAPPER(name, api, parameters, arguments, action…): the function that the process sees.
#define OOMREC_WRAPPER(name, base, parameters, arguments, ...)                        \
  OOMREC_DIRECT_HOOK(Result, name, parameters) {                                      \
    constexpr auto row = static_cast<std::size_t>(Index::name);                       \
    const gpu::Calling calling{kVendor, row};                                         \
    void* const next = gpu::driver_of(kVendor).next(row, calling.entry());            \
    if (next == nullptr) return kNoDriver;                                            \
    const auto real = reinterpret_cast<Result(*) parameters>(next);                   \
    return gpu::observe({kVendor, Api::base, gpu::is_per_thread(#name)}, __VA_ARGS__, \
                        [&]() noexcept { return real arguments; });                   \
  }

// A wrapper's address under our own name, because another library may have taken the public one. It
// must be a constant, which a function's address as a void* is not.
#define OOMREC_OWN_NAME(name, ...)                                                        \
  extern "C" [[gnu::visibility("hidden")]] char oomrec_own_##name[];                      \
  asm(".hidden oomrec_own_" #name "\n.globl oomrec_own_" #name "\n.set oomrec_own_" #name \
      ", " #name);

// The rows of the Driver.
#define OOMREC_FUNCTION_ROW(name, ...) {#name, oomrec_own_##name},
#define OOMREC_QUERY_ROW(name, parameters) {#name, &g_query_##name},

// OOMREC_QUERY(name, parameters): query_NAME(arguments…), a query to the driver. False: the driver
// has no such function or fails, or it is no longer queried. Expects `QueryScope`, too, which hides
// queries from the program's view of its own calls.
#define OOMREC_QUERY_ADDRESS(name, parameters) constinit std::atomic<void*> g_query_##name{nullptr};
#define OOMREC_QUERY(name, parameters)                                               \
  struct QueryCall_##name {                                                          \
    template <class... Arguments>                                                    \
    bool operator()(Arguments... arguments) const noexcept {                         \
      void* const function = g_query_##name.load(std::memory_order_acquire);         \
      if (function == nullptr || !gpu::driver_of(kVendor).may_query()) return false; \
      const QueryScope scope;                                                        \
      return scope.is_allowed() &&                                                   \
             reinterpret_cast<Result(*) parameters>(function)(arguments...) == 0;    \
    }                                                                                \
  };                                                                                 \
  [[maybe_unused]] constexpr QueryCall_##name query_##name;

namespace oomrec::shim::gpu {

constexpr bool is_per_thread(std::string_view name) noexcept {
  return name.ends_with("_ptsz") || name.ends_with("_spt");
}

// Queries that the vendors answer alike, with functions and types of their own: those of `Names`.
template <class Names>
class AlikeQueries {
 public:
  static constexpr Queries with(Site (*site)() noexcept, Site (*site_of_stream)(void*) noexcept,
                                bool (*is_primary_inactive)(std::int32_t) noexcept) noexcept {
    return {site,     site_of_stream, memory,        identify,           version, capturing_graph,
            bytes_at, pool,           pool_reserved, is_primary_inactive};
  }

 private:
  // Of both vendors.
  static constexpr int kRelaxed = 2;    // CU_STREAM_CAPTURE_MODE_RELAXED
  static constexpr int kCapturing = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
  static constexpr int kReserved = 5;   // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT

  // Relaxed capture mode: queries must not invalidate a capture.
  class RelaxedCapture {
   public:
    RelaxedCapture() noexcept : exchanged_(Names::exchange_capture_mode(&mode_)) {}
    ~RelaxedCapture() {
      if (exchanged_) Names::exchange_capture_mode(&mode_);
    }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

   private:
    int mode_ = kRelaxed;  // after the exchange: the thread's own
    const bool exchanged_;
  };

  static bool memory(std::uint64_t& free_bytes, std::uint64_t& total_bytes) noexcept {
    const RelaxedCapture relaxed;
    std::size_t free = 0, total = 0;
    if (!Names::memory(&free, &total)) return false;
    free_bytes = free;
    total_bytes = total;
    return true;
  }

  static void identify(recorder::DeviceIdentity& identity) noexcept {
    typename Names::Uuid uuid{};
    if (Names::uuid(&uuid, identity.ordinal)) std::memcpy(identity.uuid, &uuid, sizeof uuid);
    if (!Names::name(identity.name, int{sizeof identity.name - 1}, identity.ordinal))
      identity.name[0] = '\0';
  }

  static std::uint32_t version() noexcept {
    int version = 0;
    return Names::version(&version) ? static_cast<std::uint32_t>(version) : 0;
  }

  static std::uint64_t capturing_graph(void* stream) noexcept {
    int status = 0;
    typename Names::Graph graph = nullptr;
    typename Names::Id id = 0;
    const typename Names::Node** const no_dependencies = nullptr;
    std::size_t* const no_count = nullptr;
    const bool known = Names::capture_info(static_cast<typename Names::Stream>(stream), &status,
                                           &id, &graph, no_dependencies, no_count);
    return known && status == kCapturing ? reinterpret_cast<std::uint64_t>(graph) : 0;
  }

  static std::uint64_t bytes_at(std::uint64_t address) noexcept {
    typename Names::Address base{};
    std::size_t bytes = 0;
    return Names::address_range(&base, &bytes, (typename Names::Address)(address)) ? bytes : 0;
  }

  static void* pool(std::int32_t ordinal) noexcept {
    typename Names::Pool found = nullptr;
    return Names::pool(&found, ordinal) ? found : nullptr;
  }

  static bool pool_reserved(void* of, std::uint64_t& bytes) noexcept {
    const RelaxedCapture relaxed;
    std::uint64_t reserved = 0;
    if (!Names::pool_attribute(static_cast<typename Names::Pool>(of), kReserved, &reserved))
      return false;
    bytes = reserved;
    return true;
  }
};

}  // namespace oomrec::shim::gpu
