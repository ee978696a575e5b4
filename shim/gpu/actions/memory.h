// Blocks, arrays, host memory, another's memory; and releases, which are recorded before the real
// call, because another thread may get the address at once.
#pragma once

#include "shim/gpu/actions/action.h"

#include "recorder/device_memory/memory.h"
#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

// What a call gives at *out. `kEndsWith…`: with its context, or with the process.
enum class Ends : bool { with_context, with_process };
template <DeviceKey kWhat, DeviceKind kKind, Ends kEnds, class Out>
struct Given {
  Out* out;
  std::uint64_t bytes;

  Wants wants() const noexcept { return {bytes, kKind}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::DeviceMemory memory = memory_of(call, kWhat, kKind, value_at(out), bytes);
    if (kEnds == Ends::with_process) memory.context = 0;
    give(hook, memory);
  }
};
#define OOMREC_GIVEN(Action, what, kind, ends)                                    \
  template <class Out>                                                            \
  auto Action(Out* out, std::uint64_t bytes = 0) noexcept {                       \
    return Given<DeviceKey::what, DeviceKind::kind, Ends::ends, Out>{out, bytes}; \
  }
OOMREC_GIVEN(Block, address, block, with_context)
OOMREC_GIVEN(ManagedBlock, address, managed, with_context)
OOMREC_GIVEN(HostBlock, host, host, with_context)
OOMREC_GIVEN(Array, array, block, with_context)
OOMREC_GIVEN(MipmappedArray, array, block, with_context)
OOMREC_GIVEN(ImportedHandle, handle, imported, with_process)
OOMREC_GIVEN(Reservation, reservation, reserved, with_process)
#undef OOMREC_GIVEN

// Addresses of several devices' memory.
template <class Out, class Props>
auto MulticastHandle(Out* out, const Props* props) noexcept {
  return Given<DeviceKey::handle, DeviceKind::reserved, Ends::with_process, Out>{
      out, props == nullptr ? 0 : props->size};
}

struct HostRegistration {
  const void* address;
  std::uint64_t bytes;

  Wants wants() const noexcept { return {bytes, DeviceKind::host}; }
  void done(InHook hook, const Call& call) const noexcept {
    give(hook, memory_of(call, DeviceKey::host, DeviceKind::host, key_of(address), bytes));
  }
};

template <class Out, class Size>
struct PitchedBlock {
  Out* out;
  const Size* pitch;  // set by the call
  std::uint64_t width, rows;

  Wants wants() const noexcept { return {width * rows, DeviceKind::block}; }
  void done(InHook hook, const Call& call) const noexcept {
    const std::uint64_t bytes = (pitch == nullptr ? width : *pitch) * rows;
    give(hook, memory_of(call, DeviceKey::address, DeviceKind::block, value_at(out), bytes));
  }
};
template <class Out, class Size, class W, class R>
PitchedBlock(Out*, Size*, W, R) -> PitchedBlock<Out, std::remove_const_t<Size>>;

template <class Pitched, class Extent>
struct Pitched3D {
  const Pitched* out;
  Extent extent;

  Wants wants() const noexcept {
    return {extent.width * extent.height * extent.depth, DeviceKind::block};
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (out == nullptr) return;
    const std::uint64_t bytes = out->pitch * extent.height * extent.depth;
    give(hook, memory_of(call, DeviceKey::address, DeviceKind::block, key_of(out->ptr), bytes));
  }
};
template <class Pitched, class Extent>
Pitched3D(Pitched*, Extent) -> Pitched3D<Pitched, Extent>;

// Another's memory: how much, the driver is asked.
template <class Out>
struct ImportedBlock {
  const Out* out;
  std::uint64_t bytes = 0;

  Wants wants() const noexcept { return {0, DeviceKind::imported}; }
  void ask(const Call& call) noexcept { bytes = queries_of(call.vendor).bytes_at(value_at(out)); }
  void done(InHook hook, const Call& call) const noexcept {
    give(hook, memory_of(call, DeviceKey::address, DeviceKind::imported, value_at(out), bytes));
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
  return Given<DeviceKey::external, DeviceKind::imported, Ends::with_process, Out>{
      out, description == nullptr ? 0 : description->size};
}

// --- Releases: recorded before the real call ---------------------------------------------------

template <DeviceKey kWhat>
struct Released {
  std::uint64_t key;
  recorder::DeviceReleased released{};

  void before(InHook hook, const Call& call) noexcept {
    released = recorder::on_device_free(hook, call.api, {call.vendor, kWhat, key});
  }
  void undone(InHook hook) const noexcept { recorder::restore_on_device(hook, released); }
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
