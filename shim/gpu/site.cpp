#include "shim/gpu/site.h"

#include <atomic>

#include "recorder/device_memory/polling.h"
#include "recorder/device_memory/preexisting_devices.h"
#include "recorder/devices/registry.h"
#include "shim/gpu/driver.h"

namespace oomrec::shim::gpu {
namespace {

using session::Vendor;

constexpr std::int32_t kMaxDevices = 64;
constexpr std::size_t kContexts = 256;  // a power of two

struct CachedContext {
  std::atomic<std::uint64_t> context;
  std::atomic<std::int32_t> ordinal;
};
constinit CachedContext g_contexts[kContexts] = {};
constinit std::atomic<std::uint64_t> g_primaries[kMaxDevices] = {};

CachedContext& slot_of(std::uint64_t context) noexcept {
  return g_contexts[context * 0x9e3779b97f4a7c15ULL >> 56];
}

}  // namespace

void store_context(const Site& site) noexcept {
  if (site.context == 0) return;
  CachedContext& slot = slot_of(site.context);
  slot.context.store(site.context, std::memory_order_relaxed);
  slot.ordinal.store(site.ordinal, std::memory_order_relaxed);
}

std::int32_t ordinal_of_context(std::uint64_t context) noexcept {
  const CachedContext& slot = slot_of(context);
  return slot.context.load(std::memory_order_relaxed) == context
             ? slot.ordinal.load(std::memory_order_relaxed)
             : -1;
}

std::uint64_t primary_context(Vendor vendor, std::int32_t ordinal) noexcept {
  if (vendor == Vendor::hip) return context_of_ordinal(ordinal);
  return ordinal < 0 || ordinal >= kMaxDevices ? 0 : g_primaries[ordinal].load();
}

void store_primary_context(std::int32_t ordinal, std::uint64_t context) noexcept {
  if (ordinal >= 0 && ordinal < kMaxDevices) g_primaries[ordinal].store(context);
}

std::uint32_t entry_of(Vendor vendor, std::int32_t ordinal) noexcept {
  if (ordinal < 0) return 0;
  {
    const HookScope scope;
    const std::uint32_t entry = recorder::device_entry(scope.in_hook(), vendor, ordinal);
    if (entry != 0) return entry;
  }
  if (!driver_of(vendor).may_query()) return 0;
  recorder::DeviceIdentity identity{vendor, ordinal, {}, {}};
  const Queries& queries = queries_of(vendor);
  queries.identify(identity);
  const std::uint32_t version = queries.version();
  const HookScope scope;
  recorder::describe_driver(scope.in_hook(), vendor, {}, version, 0);
  const std::uint32_t entry = recorder::describe_device(scope.in_hook(), identity);
  recorder::add_preexisting_device(scope.in_hook(), entry);
  return entry;
}

Site current_site(Vendor vendor) noexcept {
  const Site site = queries_of(vendor).site();
  store_context(site);
  return site;
}

Site site_of_stream(Vendor vendor, void* stream) noexcept {
  return stream == nullptr ? current_site(vendor) : queries_of(vendor).site_of_stream(stream);
}

bool is_poll_due(std::uint32_t device, recorder::PollAfter after) noexcept {
  const HookScope scope;
  return recorder::should_poll(scope.in_hook(), device, after);
}

bool is_pool_poll_due(std::uint32_t device) noexcept {
  const HookScope scope;
  return recorder::should_poll_pool(scope.in_hook(), device);
}

void poll_memory(Vendor vendor, const Site& site, std::uint32_t device) noexcept {
  const Queries& queries = queries_of(vendor);
  std::uint64_t free_bytes = 0, total_bytes = 0;
  if (queries.site().ordinal != site.ordinal || !queries.memory(free_bytes, total_bytes)) return;
  const HookScope scope;
  recorder::on_device_polled(scope.in_hook(), device, free_bytes, total_bytes);
}

void poll_pool(Vendor vendor, std::uint32_t device, std::int32_t ordinal, void* pool) noexcept {
  const Queries& queries = queries_of(vendor);
  if (pool == nullptr) pool = queries.pool(ordinal);
  std::uint64_t reserved = 0;
  if (pool == nullptr || !queries.pool_reserved(pool, reserved)) return;
  const HookScope scope;
  recorder::on_pool_polled(
      scope.in_hook(), {vendor, session::DeviceKey::pool, reinterpret_cast<std::uint64_t>(pool)},
      device, reserved);
}

void poll_pools(Vendor vendor, std::uint32_t device, std::int32_t ordinal) noexcept {
  std::uint64_t pools[16];
  std::size_t count = 0;
  {
    const HookScope scope;
    count = recorder::pools_of(scope.in_hook(), vendor, device, pools);
  }
  for (std::size_t i = 0; i < count; ++i)
    poll_pool(vendor, device, ordinal, reinterpret_cast<void*>(pools[i]));
  poll_pool(vendor, device, ordinal, nullptr);
}

}  // namespace oomrec::shim::gpu
