// What all actions stand on: keys, what a call gave, and the action of calls that only may be
// refused.
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

// Enters what the program was given at, or as, `key`, and where.
inline recorder::DeviceMemory memory_of(const Call& call, DeviceKey what, DeviceKind kind,
                                        std::uint64_t key, std::uint64_t bytes) noexcept {
  return {call.api, {call.vendor, what, key}, kind, bytes, call.device, call.site.context, 0};
}
inline void give(InHook hook, const recorder::DeviceMemory& memory) noexcept {
  if (memory.name.key != 0) recorder::on_device_allocate(hook, memory);
}

// Nothing is allocated by name, but it may be refused.
struct Refusable {
  Wants wants() const noexcept { return {}; }
};

}  // namespace oomrec::shim::gpu
