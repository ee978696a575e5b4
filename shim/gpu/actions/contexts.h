// Contexts, whose end frees their memory; and lookups.
#pragma once

#include "shim/gpu/actions/action.h"

#include "recorder/device_memory/lifetimes.h"
#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

// A context's end frees all its memory.
struct ContextEnd {
  template <class Context>
  explicit ContextEnd(Context ended) noexcept : context(key_of(ended)) {}
  std::uint64_t context;
  void on_success(InHook hook, const Call& call) const noexcept {
    store_context({-1, context});  // another context may get the same handle
    recorder::on_context_end(hook, call.api, call.vendor, context);
  }
};

// Its device is known from its creation on.
template <class Out>
struct MadeContext {
  const Out* out;
  std::int32_t ordinal;

  Allocation allocation() const noexcept { return {}; }
  Site site(const Call&) const noexcept { return {ordinal, 0}; }
  void on_success(InHook, const Call&) const noexcept { store_context({ordinal, value_at(out)}); }
};
template <class Out>
MadeContext(Out*, std::int32_t) -> MadeContext<Out>;

template <class Out>
struct PrimaryRetained : MadeContext<Out> {
  PrimaryRetained(const Out* at, std::int32_t device) noexcept : MadeContext<Out>{at, device} {}
  void on_success(InHook hook, const Call& call) const noexcept {
    MadeContext<Out>::on_success(hook, call);
    store_primary_context(this->ordinal, value_at(this->out));
  }
};

struct DeviceReset {
  std::int32_t ordinal;
  void on_success(InHook hook, const Call& call) const noexcept {
    recorder::on_device_reset(hook, call.api, call.vendor, primary_context(call.vendor, ordinal),
                              recorder::device_entry(hook, call.vendor, ordinal));
  }
};

// The context lives until its last user releases it.
struct PrimaryRelease {
  std::int32_t ordinal;
  bool ended = false;
  explicit PrimaryRelease(std::int32_t device) noexcept : ordinal(device) {}
  void query(const Call& call) noexcept {
    ended = queries_of(call.vendor).is_primary_inactive(ordinal);
  }
  void on_success(InHook hook, const Call& call) const noexcept {
    if (ended) DeviceReset{ordinal}.on_success(hook, call);
  }
};

struct CurrentDeviceReset {
  std::int32_t ordinal = -1;
  void prepare(const Call& call) noexcept { ordinal = current_site(call.vendor).ordinal; }
  void on_success(InHook hook, const Call& call) const noexcept {
    DeviceReset{ordinal}.on_success(hook, call);
  }
};

struct Resolver {
  Resolver(const char*, void** out) noexcept : at(out) {}
  void** at;
  void query(const Call& call) const noexcept {
    if (at != nullptr) *at = driver_of(call.vendor).wrapper_for(*at, nullptr, LookUp::resolver);
  }
};

}  // namespace oomrec::shim::gpu
