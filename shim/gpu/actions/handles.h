// Memory separate from addresses: handles, reservations, mappings.
#pragma once

#include "shim/gpu/actions/memory.h"

#include "recorder/device_memory/lifetimes.h"
#include "recorder/device_memory/memory.h"
#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

template <class Out, class Props>
struct Handle {
  Out* out;
  std::uint64_t bytes;
  const Props* props;

  std::int32_t ordinal() const noexcept {
    return props == nullptr ? -1 : device_of(&props->location);
  }
  Allocation allocation() const noexcept {
    return {bytes, ordinal() < 0 ? DeviceKind::host : DeviceKind::block};
  }
  Site site(const Call&) const noexcept { return {ordinal(), 0}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    record_allocation(hook,
                      memory_of(call, DeviceKey::handle, allocation().kind, value_at(out), bytes));
  }
};
template <class Out, class Bytes, class Props>
Handle(Out*, Bytes, Props*) -> Handle<Out, std::remove_const_t<Props>>;

template <class Out>
struct RetainedHandle {
  Out* out;
  Allocation allocation() const noexcept { return {}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    const recorder::DeviceName name{call.vendor, DeviceKey::handle, value_at(out)};
    if (!recorder::on_device_retain(hook, name)) ImportedHandle(out).on_success(hook, call);
  }
};
template <class Out>
RetainedHandle(Out*) -> RetainedHandle<Out>;

template <class Address, class Key>
struct Mapping {
  Address address;
  std::uint64_t bytes;
  Key handle;
  Allocation allocation() const noexcept { return {}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_device_map(hook, call.api, call.vendor, key_of(address), bytes, key_of(handle));
  }
};
template <class Address, class Bytes, class Key>
Mapping(Address, Bytes, Key) -> Mapping<Address, Key>;

template <class Address>
struct Unmapped {
  Address address;
  std::uint64_t bytes;
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_device_unmap(hook, call.api, call.vendor, key_of(address), bytes);
  }
};
template <class Address, class Bytes>
Unmapped(Address, Bytes) -> Unmapped<Address>;

template <class Change>
Fallible SparseMapping(const Change*, unsigned) noexcept {
  return {};
}
template <class... Any>
Fallible BoundHandle(Any...) noexcept {
  return {};
}
template <class... Any>
Fallible BoundAddress(Any...) noexcept {
  return {};
}
template <class... Any>
Fallible Unbound(Any...) noexcept {
  return {};
}

}  // namespace oomrec::shim::gpu
