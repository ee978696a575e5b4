// The meaning of a driver's calls: one action for each row of the tables (call.h lists what an
// action may define). CUDA and HIP share them. Any pointer from the program may be NULL.
//
// Here: keys, results of a call, and the action of calls that can only fail.
#pragma once

#include <type_traits>

#include "recorder/device_memory/memory.h"
#include "recorder/devices/registry.h"
#include "shim/gpu/call.h"

namespace oomrec::shim::gpu {

template <class T>
std::uint64_t key_of(T value) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<std::uint64_t>(value);
  else
    return static_cast<std::uint64_t>(value);
}
template <class T>
std::uint64_t value_at(const T* out) noexcept {
  return out == nullptr ? 0 : key_of(*out);
}

// Records the memory that the program got at the address, or as the handle, `key`.
inline recorder::DeviceMemory memory_of(const Call& call, DeviceKey what, DeviceKind kind,
                                        std::uint64_t key, std::uint64_t bytes) noexcept {
  return {call.api, {call.vendor, what, key}, kind, bytes, call.device, call.site.context, 0};
}
inline void record_allocation(InHook hook, const recorder::DeviceMemory& memory) noexcept {
  if (memory.name.key != 0) recorder::on_device_allocate(hook, memory);
}

// Allocates nothing that we record, but may fail for lack of memory.
struct Fallible {
  Allocation allocation() const noexcept { return {}; }
};

}  // namespace oomrec::shim::gpu
