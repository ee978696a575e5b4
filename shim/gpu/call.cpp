#include "shim/gpu/call.h"

namespace oomrec::shim::gpu {
namespace {

recorder::Request request_of(const Call& call, const Wants& wants) noexcept {
  recorder::Request request{recorder::space_of(call.vendor, wants.kind), call.api, wants.bytes};
  request.device = call.device;
  return request;
}

}  // namespace

void look(const Call& call, DeviceKind kind, bool refused) noexcept {
  const bool ask_pools = kind == DeviceKind::pooled || refused;  // they may keep what is wanted
  if (look_at_memory(call.vendor, call.site, call.device, refused) && ask_pools)
    look_at_pool(call.vendor, call.device, call.site.ordinal, nullptr);
}

bool admits(InHook hook, const Call& call, const Wants& wants) noexcept {
  recorder::Request request = request_of(call, wants);
  if (recorder::admits_on_device(hook, request, wants.kind)) return true;
  recorder::on_failure(hook, request, kOutOfMemory, true);
  return false;
}

void tell_refusal(InHook hook, const Call& call, const Wants& wants) noexcept {
  recorder::on_failure(hook, request_of(call, wants), kOutOfMemory, false);
}

}  // namespace oomrec::shim::gpu
