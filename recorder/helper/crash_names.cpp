#include "recorder/helper/crash_names.h"

#include <algorithm>

namespace oomrec::helper {
namespace {

using session::FrameKind;
using session::TableId;

constexpr unsigned kCrashLookUps = 16;
constexpr unsigned kFailureLookUps = 4;  // operator new is right outside malloc

constexpr unsigned kThrowFrames = 4;  // from __cxa_throw to the caller of operator new

struct Names {
  InHook hook;
  const session::View& view;
  text::ExportedName names;

  // Whether the name of the frame's function begins with one of these.
  template <class... Prefix>
  bool is_named(std::uint64_t frame, Prefix... prefix) const noexcept {
    char buffer[64];
    session::Module module{};
    if (session::kind_of(frame) != FrameKind::native ||
        !view.read(TableId::modules, session::module_of(frame), module))
      return false;
    const std::string_view name = text::exported_name(hook, names, module, frame, buffer);
    return (name.starts_with(prefix) || ...);
  }
};

// The operator new that failed.
struct FailedNew {
  bool found = false;
  std::uint64_t caller = 0;  // the frame that called it
};

FailedNew failed_new(const Names& names, const session::Crash& crash) noexcept {
  session::Failure failure{};
  FailedNew refused;
  if (!names.view.read(TableId::failures, crash.failure, failure)) return refused;
  refused.found = static_cast<Api>(failure.api) == Api::operator_new;
  unsigned look_ups = 0;
  names.view.walk(failure.node, [&](std::uint64_t frame) {
    if (refused.caller != 0 || look_ups++ >= kFailureLookUps) return;
    const bool is_new = names.is_named(frame, "_Znw", "_Zna");
    if (refused.found && !is_new) refused.caller = frame;
    refused.found = refused.found || is_new;
  });
  return refused;
}

// The evidence on the crash's own stack. When an exception meets a noexcept function, the C++
// library ends the program from __cxa_throw, by a twin of std::terminate that has no exported name.
// An exception still at its first throw has the failed call's caller on the stack; any other throw
// does not.
std::uint32_t flags_of_end(const Names& names, const session::Crash& crash,
                           const FailedNew& refused) noexcept {
  const std::uint64_t* const end =
      crash.frames + std::min(crash.frame_count, session::kCrashFrames);
  const std::uint64_t* const last = crash.frames + std::min(crash.frame_count, kCrashLookUps);
  const std::uint64_t* at = std::find_if(crash.frames, last, [&](auto frame) {
    return names.is_named(frame, "_ZSt9terminatev", "__cxa_throw");
  });
  if (at == last) return 0;
  at = std::find_if(at, last, [&](auto frame) { return names.is_named(frame, "__cxa_throw"); });
  if (at == last) return session::kCrashTerminate;  // caught, and thrown again
  const std::uint64_t* const thrown_by = std::min(at + 1 + kThrowFrames, end);
  const bool other = std::find(at + 1, thrown_by, refused.caller) == thrown_by;
  return session::kCrashTerminate | (other ? session::kCrashOtherThrow : 0);
}

}  // namespace

std::uint32_t flags_by_name(InHook hook, const session::View& view, const session::Crash& crash,
                            text::ExportedName exported) noexcept {
  const Names names{hook, view, exported};
  const FailedNew refused = failed_new(names, crash);
  return flags_of_end(names, crash, refused) | (refused.found ? session::kCrashNew : 0);
}

}  // namespace oomrec::helper
