#include "recorder/bundle/crash_names.h"

#include <algorithm>

namespace oomrec::bundle {
namespace {

using session::FrameKind;
using session::TableId;

constexpr unsigned kCrashLookUps = 16;
constexpr unsigned kRefusalLookUps = 4;  // operator new stands right outside of malloc

// The frame's function has a name that begins so.
bool is_named(InHook hook, const session::View& view, std::uint64_t frame, ExportedName names,
              std::string_view prefix) noexcept {
  char name[64];
  session::Module module{};
  return session::kind_of(frame) == FrameKind::native &&
         view.read(TableId::modules, session::module_of(frame), module) &&
         exported_name(hook, names, module, frame, name).starts_with(prefix);
}

bool was_terminated(InHook hook, const session::View& view, const session::Crash& crash,
                    ExportedName names) noexcept {
  const std::uint32_t count = std::min(crash.frame_count, kCrashLookUps);
  return std::any_of(crash.frames, crash.frames + count, [&](std::uint64_t frame) {
    return is_named(hook, view, frame, names, "_ZSt9terminatev");
  });
}

bool was_new(InHook hook, const session::View& view, const session::Crash& crash,
             ExportedName names) noexcept {
  session::Failure failure{};
  if (!view.read(TableId::failures, crash.failure, failure)) return false;
  bool found = static_cast<Api>(failure.api) == Api::operator_new;
  unsigned look_ups = 0;
  view.walk(failure.node, [&](std::uint64_t frame) {
    if (found || look_ups++ >= kRefusalLookUps) return;
    found =
        is_named(hook, view, frame, names, "_Znw") || is_named(hook, view, frame, names, "_Zna");
  });
  return found;
}

}  // namespace

std::uint32_t flags_by_name(InHook hook, const session::View& view, const session::Crash& crash,
                            ExportedName names) noexcept {
  return (was_terminated(hook, view, crash, names) ? session::kCrashTerminate : 0) |
         (was_new(hook, view, crash, names) ? session::kCrashNew : 0);
}

}  // namespace oomrec::bundle
