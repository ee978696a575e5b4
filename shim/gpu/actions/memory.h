// Blocks, arrays, host memory and imported memory; and releases, which are recorded before the real
// call, because another thread may get the address at once.
#pragma once

#include "shim/gpu/actions/action.h"

#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/preexisting_devices.h"
#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

// Memory whose address or handle the call stores in *out. `lifetime`: until the end of its context,
// or of the process.
enum class Lifetime : bool { context, process };
template <DeviceKey kWhat, DeviceKind kKind, Lifetime kLifetime, class Out>
struct Output {
  Out* out;
  std::uint64_t bytes;

  Allocation allocation() const noexcept { return {bytes, kKind}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::DeviceMemory memory = memory_of(call, kWhat, kKind, value_at(out), bytes);
    if (kLifetime == Lifetime::process) memory.context = 0;
    record_allocation(hook, memory);
  }
};
#define OOMREC_OUTPUT(Action, what, kind, lifetime)                                        \
  template <class Out>                                                                     \
  auto Action(Out* out, std::uint64_t bytes = 0) noexcept {                                \
    return Output<DeviceKey::what, DeviceKind::kind, Lifetime::lifetime, Out>{out, bytes}; \
  }
OOMREC_OUTPUT(Block, address, block, context)
OOMREC_OUTPUT(ManagedBlock, address, managed, context)
OOMREC_OUTPUT(HostBlock, host, host, context)
OOMREC_OUTPUT(Array, array, block, context)
OOMREC_OUTPUT(MipmappedArray, array, block, context)
OOMREC_OUTPUT(ImportedHandle, handle, imported, process)
OOMREC_OUTPUT(Reservation, reservation, reserved, process)
#undef OOMREC_OUTPUT

// Addresses for the memory of several devices.
template <class Out, class Props>
auto MulticastHandle(Out* out, const Props* props) noexcept {
  return Output<DeviceKey::handle, DeviceKind::reserved, Lifetime::process, Out>{
      out, props == nullptr ? 0 : props->size};
}

struct HostRegistration {
  const void* address;
  std::uint64_t bytes;

  Allocation allocation() const noexcept { return {bytes, DeviceKind::host}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    record_allocation(hook,
                      memory_of(call, DeviceKey::host, DeviceKind::host, key_of(address), bytes));
  }
};

template <class Out, class Size>
struct PitchedBlock {
  Out* out;
  const Size* pitch;  // set by the call
  std::uint64_t width, rows;

  Allocation allocation() const noexcept { return {width * rows, DeviceKind::block}; }
  void on_success(InHook hook, const Call& call) const noexcept {
    const std::uint64_t bytes = (pitch == nullptr ? width : *pitch) * rows;
    record_allocation(hook,
                      memory_of(call, DeviceKey::address, DeviceKind::block, value_at(out), bytes));
  }
};
template <class Out, class Size, class W, class R>
PitchedBlock(Out*, Size*, W, R) -> PitchedBlock<Out, std::remove_const_t<Size>>;

template <class Pitched, class Extent>
struct Pitched3D {
  const Pitched* out;
  Extent extent;

  Allocation allocation() const noexcept {
    return {extent.width * extent.height * extent.depth, DeviceKind::block};
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    if (out == nullptr) return;
    const std::uint64_t bytes = out->pitch * extent.height * extent.depth;
    record_allocation(
        hook, memory_of(call, DeviceKey::address, DeviceKind::block, key_of(out->ptr), bytes));
  }
};
template <class Pitched, class Extent>
Pitched3D(Pitched*, Extent) -> Pitched3D<Pitched, Extent>;

// Imported memory: the driver is queried for its size.
template <class Out>
struct ImportedBlock {
  const Out* out;
  std::uint64_t bytes = 0;

  Allocation allocation() const noexcept { return {0, DeviceKind::imported}; }
  void query(const Call& call) noexcept { bytes = queries_of(call.vendor).bytes_at(value_at(out)); }
  void on_success(InHook hook, const Call& call) const noexcept {
    record_allocation(
        hook, memory_of(call, DeviceKey::address, DeviceKind::imported, value_at(out), bytes));
  }
};
template <class Out>
auto OpenedIpc(Out* out) noexcept {
  return ImportedBlock<Out>{out};
}
template <class Out>
auto ImportedPointer(Out* out) noexcept {
  return ImportedBlock<Out>{out};
}

template <class Out, class Description>
auto External(Out* out, const Description* description) noexcept {
  return Output<DeviceKey::external, DeviceKind::imported, Lifetime::process, Out>{
      out, description == nullptr ? 0 : description->size};
}

// --- Releases: recorded before the real call ---------------------------------------------------

template <DeviceKey kWhat>
struct Released {
  std::uint64_t key;
  recorder::DeviceReleased released{};
  std::uint64_t bytes_from_before = 0;  // `oomrec attach`, if it is not on record

  void prepare(Call& call) noexcept {
    if (kWhat != DeviceKey::address || !recorder::has_preexisting_devices()) return;
    bytes_from_before = queries_of(call.vendor).bytes_at(key);
    call.site = current_site(call.vendor);
    call.device = entry_of(call.vendor, call.site.ordinal);
  }
  void before(InHook hook, const Call& call) noexcept {
    released = recorder::on_device_free(hook, call.api, {call.vendor, kWhat, key});
    if (released.block.name.key == 0 && bytes_from_before != 0)
      recorder::release_preexisting_on_device(hook, call.device, bytes_from_before);
  }
  void on_failure(InHook hook) const noexcept { recorder::restore_on_device(hook, released); }
};
#define OOMREC_RELEASED(Action, what)                \
  template <class Key>                               \
  auto Action(Key key, std::uint64_t = 0) noexcept { \
    return Released<DeviceKey::what>{key_of(key)};   \
  }
OOMREC_RELEASED(FreedBlock, address)
OOMREC_RELEASED(FreedHost, host)
OOMREC_RELEASED(Unregistered, host)
OOMREC_RELEASED(FreedArray, array)
OOMREC_RELEASED(FreedMipmapped, array)
OOMREC_RELEASED(ClosedIpc, address)
OOMREC_RELEASED(DestroyedExternal, external)
OOMREC_RELEASED(ReleasedHandle, handle)
OOMREC_RELEASED(FreedReservation, reservation)
#undef OOMREC_RELEASED

}  // namespace oomrec::shim::gpu
