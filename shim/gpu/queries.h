// What only a driver can tell, asked of it in a wrapper after the real call has returned, and
// outside of every HookScope: a driver may allocate and lock. Never in a fork's child. No query
// makes a context, or waits for the device; while a stream is captured they are asked in the
// relaxed mode, so that they do not spoil it.
#pragma once

#include <cstdint>

#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

// Where a thread's calls go.
struct Site {
  std::int32_t ordinal = -1;  // -1: nowhere, or not known
  std::uint64_t context = 0;
};

// The answers of one driver. An unknown is 0, an empty Site, or false.
struct Queries {
  Site (*site)() noexcept;
  Site (*site_of_stream)(void* stream) noexcept;
  bool (*memory)(std::uint64_t& free_bytes, std::uint64_t& total_bytes) noexcept;  // of the site
  void (*identify)(recorder::DeviceIdentity&) noexcept;                            // by its ordinal
  std::uint32_t (*version)() noexcept;
  std::uint64_t (*capturing_graph)(void* stream) noexcept;  // 0: the stream is not captured
  std::uint64_t (*bytes_at)(std::uint64_t address) noexcept;
  void* (*pool)(std::int32_t ordinal) noexcept;  // that allocations without one take
  bool (*pool_reserved)(void* pool, std::uint64_t& bytes) noexcept;
  bool (*primary_has_ended)(std::int32_t ordinal) noexcept;
};

extern const Queries g_cuda_queries;
extern const Queries g_hip_queries;
inline const Queries& queries_of(session::Vendor vendor) noexcept {
  return vendor == session::Vendor::cuda ? g_cuda_queries : g_hip_queries;
}

}  // namespace oomrec::shim::gpu
