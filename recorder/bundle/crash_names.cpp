#include "recorder/bundle/crash_names.h"

#include <algorithm>

namespace oomrec::bundle {
namespace {

using session::FrameKind;
using session::TableId;

constexpr unsigned kCrashLookUps = 16;
constexpr unsigned kRefusalLookUps = 4;  // operator new stands right outside of malloc

constexpr unsigned kThrowerLookUps = 3;  // it may throw by a helper of the C++ library

struct Names {
  InHook hook;
  const session::View& view;
  ExportedName names;

  // The frame's function has a name that begins with one of these.
  template <class... Prefix>
  bool is_named(std::uint64_t frame, Prefix... prefix) const noexcept {
    char buffer[64];
    session::Module module{};
    if (session::kind_of(frame) != FrameKind::native ||
        !view.read(TableId::modules, session::module_of(frame), module))
      return false;
    const std::string_view name = exported_name(hook, names, module, frame, buffer);
    return (name.starts_with(prefix) || ...);
  }
  bool is_new(std::uint64_t frame) const noexcept { return is_named(frame, "_Znw", "_Zna"); }
};

// What the crash's own stack says. Where an exception met a noexcept function the C++ library ends
// the program by a twin of std::terminate that has no exported name, out of __cxa_throw.
std::uint32_t flags_of_end(const Names& names, const session::Crash& crash) noexcept {
  const std::uint64_t* const end =
      crash.frames + std::min(crash.frame_count, session::kCrashFrames);
  const std::uint64_t* const last = crash.frames + std::min(crash.frame_count, kCrashLookUps);
  const std::uint64_t* at = std::find_if(crash.frames, last, [&](auto frame) {
    return names.is_named(frame, "_ZSt9terminatev", "__cxa_throw");
  });
  if (at == last) return 0;
  // One that was caught and thrown again came from somewhere else.
  at = std::find_if(at, last, [&](auto frame) { return names.is_named(frame, "__cxa_throw"); });
  if (at == last) return session::kCrashTerminate;
  const std::uint64_t* const thrower = at + 1;
  const bool by_new = std::any_of(thrower, std::min(thrower + kThrowerLookUps, end),
                                  [&](auto frame) { return names.is_new(frame); });
  return session::kCrashTerminate | (by_new ? 0 : session::kCrashOtherThrow);
}

bool was_new(const Names& names, const session::Crash& crash) noexcept {
  session::Failure failure{};
  if (!names.view.read(TableId::failures, crash.failure, failure)) return false;
  bool found = static_cast<Api>(failure.api) == Api::operator_new;
  unsigned look_ups = 0;
  names.view.walk(failure.node, [&](std::uint64_t frame) {
    if (!found && look_ups++ < kRefusalLookUps) found = names.is_new(frame);
  });
  return found;
}

}  // namespace

std::uint32_t flags_by_name(InHook hook, const session::View& view, const session::Crash& crash,
                            ExportedName exported) noexcept {
  const Names names{hook, view, exported};
  return flags_of_end(names, crash) | (was_new(names, crash) ? session::kCrashNew : 0);
}

}  // namespace oomrec::bundle
