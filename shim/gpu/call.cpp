#include "shim/gpu/call.h"

#include "recorder/device_memory/accounting.h"
#include "recorder/device_memory/memory.h"
#include "recorder/failures/failures.h"
#include "recorder/state/request.h"

namespace oomrec::shim::gpu {
namespace {

recorder::Request request_of(const Call& call, const Allocation& allocation) noexcept {
  recorder::Request request{recorder::space_of(call.vendor, allocation.kind), call.api,
                            allocation.bytes};
  request.device = call.device;
  return request;
}

}  // namespace

bool is_admitted(const Call& call, const Allocation& allocation) noexcept {
  recorder::Request request = request_of(call, allocation);
  {
    const HookScope scope;
    if (recorder::admits_on_device(scope.in_hook(), request, allocation.kind)) return true;
  }
  if (is_poll_due(call.device, recorder::PollAfter::failure))
    poll_memory(call.vendor, call.site, call.device);
  poll_pools(call.vendor, call.device, call.site.ordinal);  // they may have shrunk
  const HookScope scope;
  if (request.rule == 0 &&
      recorder::is_within_device_limit(scope.in_hook(), request, allocation.kind))
    return true;
  recorder::on_failure(scope.in_hook(), request, kOutOfMemory, recorder::FailedBy::recorder);
  return false;
}

void report_failure(const Call& call, const Allocation& allocation) noexcept {
  const HookScope scope;
  recorder::on_failure(scope.in_hook(), request_of(call, allocation), kOutOfMemory,
                       recorder::FailedBy::system);
}

}  // namespace oomrec::shim::gpu
