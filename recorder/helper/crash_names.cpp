#include "recorder/helper/crash_names.h"

#include <algorithm>

#include "common/session/functions.h"
#include "common/text/text.h"

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

  std::string_view name(std::uint64_t frame, std::span<char> buffer) const noexcept {
    session::Module module{};
    if (session::kind_of(frame) != FrameKind::native ||
        !view.read(TableId::modules, session::module_of(frame), module))
      return {};
    return text::exported_name(hook, names, module, frame, buffer);
  }

  // Where the module is mapped; 0: unknown.
  std::uint64_t start_of(std::uint32_t id) const noexcept {
    session::Module module{};
    return id != 0 && view.read(TableId::modules, id, module) ? module.start : 0;
  }

  // Whether the name of the frame's function begins with one of these.
  template <class... Prefix>
  bool is_named(std::uint64_t frame, Prefix... prefix) const noexcept {
    char buffer[64];
    const std::string_view found = name(frame, buffer);
    return (found.starts_with(prefix) || ...);
  }
};

// The operator new that failed.
struct FailedNew {
  bool found = false;
  std::uint64_t caller = 0;  // the frame that called it
  std::uint32_t module = 0;  // the C++ runtime
  std::uint32_t frames = 0;  // up to its own
  bool nothrow = false;
};

FailedNew failed_new(const Names& names, const session::Crash& crash) noexcept {
  session::Failure failure{};
  FailedNew refused;
  if (!names.view.read(TableId::failures, crash.failure, failure)) return refused;
  refused.found = static_cast<Api>(failure.api) == Api::operator_new;
  unsigned look_ups = 0;
  names.view.walk(failure.node, [&](std::uint64_t frame) {
    if (refused.caller != 0 || look_ups++ >= kFailureLookUps) return;
    char buffer[64];
    const std::string_view name = names.name(frame, buffer);
    const bool is_new = name.starts_with("_Znw") || name.starts_with("_Zna");
    if (is_new) {
      refused.module = session::module_of(frame);
      refused.frames = look_ups;
      refused.nothrow = name.ends_with("RKSt9nothrow_t");
    }
    if (refused.found && !is_new) refused.caller = frame;
    refused.found = refused.found || is_new;
  });
  return refused;
}

class CrashStack {
 public:
  CrashStack(const Names& names, const session::Crash& crash) noexcept
      : names_(names),
        end_(crash.frames + std::min(crash.frame_count, session::kCrashFrames)),
        last_(crash.frames + std::min(crash.frame_count, kCrashLookUps)),
        begin_(crash.frames) {}

  // The innermost frame of a function whose name begins with one of these; null: none.
  template <class... Prefix>
  const std::uint64_t* find(const std::uint64_t* from, Prefix... prefix) const noexcept {
    const std::uint64_t* const at = std::find_if(
        from, last_, [&](std::uint64_t frame) { return names_.is_named(frame, prefix...); });
    return at == last_ ? nullptr : at;
  }
  const std::uint64_t* begin() const noexcept { return begin_; }
  const std::uint64_t* end() const noexcept { return end_; }
  const std::uint64_t* last() const noexcept { return last_; }

 private:
  const Names& names_;
  const std::uint64_t* const end_;
  const std::uint64_t* const last_;
  const std::uint64_t* const begin_;
};

// An exception that nobody caught. When an exception meets a noexcept function, the C++ library
// ends the program from __cxa_throw, by a twin of std::terminate that has no exported name. An
// exception still at its first throw has the failed call's caller on the stack; any other throw
// does not.
void find_terminate(const CrashStack& stack, const FailedNew& refused, CrashNames& found) noexcept {
  const std::uint64_t* at = stack.find(stack.begin(), "_ZSt9terminatev", "__cxa_throw");
  if (at == nullptr) return;
  found.flags |= session::kCrashTerminate;
  found.cxx_runtime = session::module_of(*at);
  at = stack.find(at, "__cxa_throw");
  if (at == nullptr) return;  // caught, and thrown again
  const std::uint64_t* const thrown_by = std::min(at + 1 + kThrowFrames, stack.end());
  if (std::find(at + 1, thrown_by, refused.caller) == thrown_by)
    found.flags |= session::kCrashOtherThrow;
}

// Functions of the C library that call abort() because of what their caller did.
constexpr std::string_view kReporters[] = {"assert_fail",    "assert_perror_fail", "assert",
                                           "stack_chk_fail", "chk_fail",           "fortify_fail"};
// With a damaged heap its allocator does the same, in functions without an exported name. From
// glibc 2.43 on, free() jumps to such a function, which leaves no exported name on the stack: only
// the function, malloc_printerr and __libc_message.
constexpr std::ptrdiff_t kUnnamedFrames = 3;

bool is_one_of(std::span<const std::string_view> names, std::string_view name) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void find_reporter(const CrashStack& stack, const Names& names, CrashNames& found,
                   std::span<char> function) noexcept {
  const std::uint64_t* at = stack.find(stack.begin(), "abort");
  if (at == nullptr) return;
  const std::uint32_t library = session::module_of(*at);
  found.c_library = names.start_of(library);
  const std::uint64_t* const first = at + 1;
  bool any_name = false;
  for (++at; at != stack.last() && session::kind_of(*at) == FrameKind::native &&
             session::module_of(*at) == library;
       ++at) {
    char buffer[64];
    std::string_view name = names.name(*at, buffer);
    any_name = any_name || !name.empty();
    name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
    if (name.starts_with("libc_")) name.remove_prefix(5);
    found.heap_corruption = is_heap_function(name);
    if (!found.heap_corruption && !is_one_of(kReporters, name)) continue;
    text::Text{function.data(), function.size()}.add(name);
    return;
  }
  found.heap_corruption = !any_name && at != stack.last() && at - first >= kUnnamedFrames;
}

}  // namespace

CrashNames names_of_crash(InHook hook, const session::View& view, const session::Crash& crash,
                          text::ExportedName exported, std::span<char> function) noexcept {
  const Names names{hook, view, exported};
  const FailedNew refused = failed_new(names, crash);
  const CrashStack stack{names, crash};
  CrashNames found;
  function[0] = '\0';
  find_terminate(stack, refused, found);
  find_reporter(stack, names, found, function);
  if (refused.found) found.flags |= session::kCrashNew;
  found.new_frames = refused.frames;
  found.nothrow = refused.nothrow;
  found.cxx_runtime = names.start_of(
      static_cast<std::uint32_t>(found.cxx_runtime != 0 ? found.cxx_runtime : refused.module));
  return found;
}

}  // namespace oomrec::helper
