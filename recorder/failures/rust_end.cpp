#include "recorder/failures/rust_end.h"

#include <algorithm>
#include <string_view>

#include "recorder/failures/jvm.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/file_symbols.h"

namespace oomrec::recorder {
namespace {

using session::g_session;

constexpr std::uint32_t kMostFrames = 20;  // of abort, then of the standard library

// In both of Rust's manglings.
constexpr std::string_view kNames[] = {"handle_alloc_error", "rust_oom",
                                       "__rust_alloc_error_handler"};
constexpr std::string_view kOfUnwrap = "6result13unwrap_failed";

bool is_alloc_error(std::string_view name) noexcept {
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

}  // namespace

bool ended_for_failure_in_rust(InHook hook, const session::Crash& crash, bool at_once) noexcept {
  const session::View view = g_session.view();
  for (std::uint32_t i = 0; i < std::min(crash.frame_count, kMostFrames); ++i) {
    session::Module module{};
    char path[512];
    if (session::kind_of(crash.frames[i]) != session::FrameKind::native ||
        !view.read(session::TableId::modules, session::module_of(crash.frames[i]), module) ||
        view.string(module.path).find("/libc.so") != std::string_view::npos ||
        !copy_path(module, path))
      continue;
    const symbols::FileSymbols file(hook, path, module.start);
    if (!file.valid()) continue;
    const std::string_view name = file.function_at(session::offset_of(crash.frames[i]) - 1);
    if (is_alloc_error(name) || (at_once && name.find(kOfUnwrap) != name.npos)) return true;
  }
  return false;
}

}  // namespace oomrec::recorder
