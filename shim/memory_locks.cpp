// Locked memory: mlock and its family. RLIMIT_MEMLOCK bounds it.
//
// Most programs that lock memory do without where they may not, so a failure is a probe.
#include <errno.h>
#include <sys/mman.h>

#include "common/system/hook_scope.h"
#include "recorder/failures/evidence.h"
#include "recorder/failures/failures.h"
#include "recorder/state/request.h"
#include "shim/interpose/export.h"
#include "shim/interpose/next.h"
#include "shim/is_mapped.h"

namespace oomrec::shim {
namespace {

std::uint64_t address_of(const void* at) noexcept { return reinterpret_cast<std::uint64_t>(at); }

void report(InHook hook, Api api, std::uint64_t bytes, int error) noexcept {
  recorder::Request request{Space::map, api, bytes, true};
  request.locks = true;
  recorder::on_failure(hook, request, error, recorder::FailedBy::system);
}

template <class Real>
int lock_range(const void* at, size_t n, Real real) noexcept {
  const HookScope scope{HookState::kernel};
  const int result = real();
  const KeepErrno keep;
  const int error = keep.value();
  if (result == 0 || !scope.outermost()) return result;
  const bool is_short = error == EAGAIN || error == EPERM || error == ENOMEM;
  if (is_short && is_mapped(address_of(at), n)) report(scope.in_hook(), Api::mlock, n, error);
  return result;
}

}  // namespace

OOMREC_HOOK(int, mlock, (const void* at, size_t n)) {
  return lock_range(at, n, [&] { return g_next.mlock(at, n); });
}

OOMREC_HOOK(int, mlock2, (const void* at, size_t n, unsigned flags)) {
  return lock_range(at, n, [&] { return g_next.mlock2(at, n, flags); });
}

OOMREC_HOOK(int, mlockall, (int flags)) {
  const HookScope scope{HookState::kernel};
  const int result = g_next.mlockall(flags);
  const KeepErrno keep;
  const int error = keep.value();
  if (result == 0)
    recorder::note_future_is_locked((flags & MCL_FUTURE) != 0);
  else if (scope.outermost() && (error == EAGAIN || error == EPERM || error == ENOMEM))
    report(scope.in_hook(), Api::mlockall, 0, error);
  return result;
}

OOMREC_HOOK(int, munlockall, ()) {
  const int result = g_next.munlockall();
  if (result == 0) recorder::note_future_is_locked(false);
  return result;
}

}  // namespace oomrec::shim
