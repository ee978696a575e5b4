// Queries to a driver. A wrapper makes them after the real call has returned, and outside every
// HookScope, because a driver may allocate and lock; never in a child after a fork. No query
// creates a context or waits for the device. While a stream is captured they use the relaxed mode,
// so as not to invalidate the capture.
#pragma once

#include <cstdint>

#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

// The current device and context of a thread.
struct Site {
  std::int32_t ordinal = -1;  // -1: none or unknown
  std::uint64_t context = 0;
};

// The queries to one driver. An unknown result is 0, an empty Site, or false.
struct Queries {
  Site (*site)() noexcept;
  Site (*site_of_stream)(void* stream) noexcept;
  bool (*memory)(std::uint64_t& free_bytes, std::uint64_t& total_bytes) noexcept;  // of the site
  void (*identify)(recorder::DeviceIdentity&) noexcept;                            // by its ordinal
  std::uint32_t (*version)() noexcept;
  std::uint64_t (*capturing_graph)(void* stream) noexcept;  // 0: the stream is not being captured
  std::uint64_t (*bytes_at)(std::uint64_t address) noexcept;
  void* (*pool)(std::int32_t ordinal) noexcept;  // the default pool
  bool (*pool_reserved)(void* pool, std::uint64_t& bytes) noexcept;
  bool (*is_primary_inactive)(std::int32_t ordinal) noexcept;
};

extern const Queries g_cuda_queries;
extern const Queries g_hip_queries;
inline const Queries& queries_of(session::Vendor vendor) noexcept {
  return vendor == session::Vendor::cuda ? g_cuda_queries : g_hip_queries;
}

}  // namespace oomrec::shim::gpu
