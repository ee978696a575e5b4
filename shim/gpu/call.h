// The path of every driver call through a wrapper.
//
// limit check → real call → queries to the driver → recorder
//
// While the real function runs, no hook is active: the driver's host allocations are the program's,
// and are recorded as such. Calls that the driver makes to itself are part of the call. The program
// gets the real function's result.
//
// An action defines what a call means. All its members are optional:
//   Allocation allocation() const   it allocates: may fail, by us or for lack of memory
//   Site site(const Call&) const    whose memory it is, if not the current device's
//   uint32_t device(const Call&) const  the device as an entry; 0: the site's
//   void poll_own_pool(const Call&) const  queries the size of its pool
//   void prepare(const Call&)       before the real call, outside the recorder
//   void before(InHook, Call&)      before it, inside the recorder
//   void query(Call&)               after success, outside the recorder
//   void on_success(InHook, const Call&)  after success, inside the recorder
//   void on_failure(InHook)         after failure, inside the recorder
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

inline constexpr int kOutOfMemory = 2;  // the same for both vendors

struct Allocation {
  std::uint64_t bytes = 0;
  DeviceKind kind = DeviceKind::none;
};

struct Call {
  Vendor vendor;
  Api api;
  bool per_thread;  // stream 0 is the per-thread stream
  Site site{};
  std::uint32_t device = 0;  // entry

  void* stream(const void* of) const noexcept {
    constexpr std::uintptr_t kPerThread = 2;
    return reinterpret_cast<void*>(
        of == nullptr && per_thread ? kPerThread : reinterpret_cast<std::uintptr_t>(of));
  }
};

// False: the recorder makes the call fail, and has reported that. `call` has its site.
bool is_admitted(const Call&, const Allocation&) noexcept;
void report_failure(const Call&, const Allocation&) noexcept;

// Marks this thread while it is in a driver's function that the program has called.
class InsideDriver {
 public:
  InsideDriver() noexcept { t_inside = true; }
  ~InsideDriver() { t_inside = false; }
  InsideDriver(const InsideDriver&) = delete;
  InsideDriver& operator=(const InsideDriver&) = delete;
  static bool is_active() noexcept { return t_inside; }

 private:
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool t_inside = false;
};

template <class Action>
void find_site(Call& call, const Action& action) noexcept {
  if constexpr (requires { action.site(call); })
    call.site = action.site(call);
  else
    call.site = current_site(call.vendor);
  call.device = entry_of(call.vendor, call.site.ordinal);
  if constexpr (requires { action.device(call); }) {
    if (const std::uint32_t other = action.device(call); other != 0) call.device = other;
  }
}

// Queries the figures of the call's device, if due; always after a failure.
template <class Action>
void poll(const Call& call, const Action& action, recorder::PollAfter after) noexcept {
  const bool due = is_poll_due(call.device, after);
  if (due) poll_memory(call.vendor, call.site, call.device);
  if (after == recorder::PollAfter::failure) {  // pools may hold the missing memory
    poll_pools(call.vendor, call.device, call.site.ordinal);
  } else if constexpr (requires { action.poll_own_pool(call); }) {
    if (due || is_pool_poll_due(call.device)) action.poll_own_pool(call);
  }
}

template <class Action, class Real>
[[gnu::always_inline]] inline int observe(Call call, Action action, Real real) noexcept {
  if (InsideDriver::is_active() || !HookScope::idle() || !recorder::is_active()) return real();
  const InsideDriver inside;
  constexpr bool kAllocates = requires { action.allocation(); };
  if constexpr (kAllocates) {
    if (recorder::has_device_limit_or_rules()) {
      find_site(call, action);
      if (!is_admitted(call, action.allocation())) return kOutOfMemory;
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
    if constexpr (requires { action.query(call); }) action.query(call);
    if constexpr (requires(InHook hook) { action.on_success(hook, call); }) {
      if constexpr (kAllocates) {
        if (action.allocation().kind != DeviceKind::none) find_site(call, action);
      }
      {
        const HookScope scope;
        action.on_success(scope.in_hook(), call);
      }
      if constexpr (kAllocates) poll(call, action, recorder::PollAfter::success);
    }
    return result;
  }
  if constexpr (requires(InHook hook) { action.on_failure(hook); }) {
    const HookScope scope;
    action.on_failure(scope.in_hook());
  }
  if constexpr (kAllocates) {
    if (result == kOutOfMemory) {
      find_site(call, action);
      poll(call, action, recorder::PollAfter::failure);
      report_failure(call, action.allocation());
    }
  }
  return result;
}

}  // namespace oomrec::shim::gpu
