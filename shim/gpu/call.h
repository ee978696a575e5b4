// The one way of a driver's call through a wrapper.
//
//   allowed by the limit → real call → what only the driver can tell is asked → recorded
//
// While the real function runs no hook is active: what a driver allocates on the host meanwhile is
// the program's, and is recorded as such. What a driver calls of itself is part of the call. The
// program gets what the real function returned.
//
// An action says what a call means. All its parts are optional:
//   Wants wants() const             it allocates: may be refused, by us or with out-of-memory
//   Site where(const Call&) const   whose memory it is, if not that of the current device
//   uint32_t device(const Call&) const  the same as an entry, if not the site's; 0: it is
//   void poll_own_pool(const Call&) const  asks what it holds now
//   void prepare(const Call&)       before the real call, outside of the recorder
//   void before(InHook, Call&)      before it, in the recorder
//   void ask(Call&)                 after it succeeded, outside
//   void done(InHook, const Call&)  after it succeeded, in the recorder
//   void undone(InHook)             after it failed, in the recorder
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/device_memory/memory.h"
#include "recorder/devices/registry.h"
#include "recorder/recorder.h"
#include "shim/gpu/driver.h"
#include "shim/gpu/site.h"

namespace oomrec::shim::gpu {

using session::DeviceKey;
using session::DeviceKind;

inline constexpr int kOutOfMemory = 2;  // of both vendors

struct Wants {
  std::uint64_t bytes = 0;
  DeviceKind kind = DeviceKind::none;
};

struct Call {
  Vendor vendor;
  Api api;
  bool per_thread;  // stream 0 is the thread's own
  Site site{};
  std::uint32_t device = 0;  // entry

  void* stream(const void* of) const noexcept {
    constexpr std::uintptr_t kPerThread = 2;
    return reinterpret_cast<void*>(
        of == nullptr && per_thread ? kPerThread : reinterpret_cast<std::uintptr_t>(of));
  }
};

// False: the recorder refuses, and has said so. `call` knows its site.
bool is_admitted(const Call&, const Wants&) noexcept;
void report_failure(const Call&, const Wants&) noexcept;

// On this thread, in a driver's function that the program has called.
class InsideDriver {
 public:
  InsideDriver() noexcept { t_inside = true; }
  ~InsideDriver() { t_inside = false; }
  InsideDriver(const InsideDriver&) = delete;
  InsideDriver& operator=(const InsideDriver&) = delete;
  static bool here() noexcept { return t_inside; }

 private:
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool t_inside = false;
};

template <class Action>
void find_site(Call& call, const Action& action) noexcept {
  if constexpr (requires { action.where(call); })
    call.site = action.where(call);
  else
    call.site = current_site(call.vendor);
  call.device = entry_of(call.vendor, call.site.ordinal);
  if constexpr (requires { action.device(call); }) {
    if (const std::uint32_t other = action.device(call); other != 0) call.device = other;
  }
}

// Asks for the figures of the call's device, if it is time; always after a failure.
template <class Action>
void poll(const Call& call, const Action& action, recorder::PollAfter after) noexcept {
  const bool due = is_poll_due(call.device, after);
  if (due) poll_memory(call.vendor, call.site, call.device);
  if (after == recorder::PollAfter::failure) {  // pools may keep what is missing
    poll_pools(call.vendor, call.device, call.site.ordinal);
  } else if constexpr (requires { action.poll_own_pool(call); }) {
    if (due || is_pool_poll_due(call.device)) action.poll_own_pool(call);
  }
}

template <class Action, class Real>
[[gnu::always_inline]] inline int observe(Call call, Action action, Real real) noexcept {
  if (InsideDriver::here() || !HookScope::idle() || !recorder::is_active()) return real();
  const InsideDriver inside;
  constexpr bool kAllocates = requires { action.wants(); };
  if constexpr (kAllocates) {
    if (recorder::has_device_limit_or_rules()) {
      find_site(call, action);
      if (!is_admitted(call, action.wants())) return kOutOfMemory;
    }
  }
  if constexpr (requires { action.prepare(call); }) action.prepare(call);
  if constexpr (requires(InHook hook) { action.before(hook, call); }) {
    const HookScope scope;
    action.before(scope.in_hook(), call);
  }
  const int result = real();
  const KeepErrno keep;
  if (result == 0) {
    if constexpr (requires { action.ask(call); }) action.ask(call);
    if constexpr (requires(InHook hook) { action.done(hook, call); }) {
      if constexpr (kAllocates) {
        if (action.wants().kind != DeviceKind::none) find_site(call, action);
      }
      {
        const HookScope scope;
        action.done(scope.in_hook(), call);
      }
      if constexpr (kAllocates) poll(call, action, recorder::PollAfter::success);
    }
    return result;
  }
  if constexpr (requires(InHook hook) { action.undone(hook); }) {
    const HookScope scope;
    action.undone(scope.in_hook());
  }
  if constexpr (kAllocates) {
    if (result == kOutOfMemory) {
      find_site(call, action);
      poll(call, action, recorder::PollAfter::failure);
      report_failure(call, action.wants());
    }
  }
  return result;
}

}  // namespace oomrec::shim::gpu
