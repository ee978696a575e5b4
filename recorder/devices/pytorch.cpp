#include "recorder/devices/pytorch.h"

#include <atomic>
#include <string_view>

#include "recorder/session/writer.h"

namespace oomrec::recorder {

using session::FrameKind;
using session::g_session;
using session::TableId;

namespace {

constinit std::atomic<bool> g_met{false};

// libc10_cuda.so, libc10_hip.so: the allocators of GPUs.
bool is_allocator(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return path.substr(slash == path.npos ? 0 : slash + 1).starts_with("libc10_");
}

}  // namespace

void note_torch() noexcept { g_met.store(true, std::memory_order_relaxed); }

bool is_of_torch(std::uint32_t node) noexcept {
  if (!g_met.load(std::memory_order_relaxed)) return false;
  const session::View view = g_session.view();
  bool found = false;
  view.walk(node, [&](std::uint64_t frame) noexcept {
    session::Module module;
    found = found || (session::kind_of(frame) == FrameKind::native &&
                      view.read(TableId::modules, session::module_of(frame), module) &&
                      is_allocator(view.string(module.path)));
  });
  return found;
}

}  // namespace oomrec::recorder
