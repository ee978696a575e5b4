#include "tools/print/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

using session::TableId;

// The recorded crash, checked: a damaged recording may hold anything.
struct CrashFacts {
  int signal = 0;
  std::string name;
  bool has_address = false;
  std::uint64_t address = 0;
  std::int32_t sender_pid = 0;
  session::Thread thread{};
  std::vector<recording::LocationId> stack;
};

// Whether the recording has the code object or module that the frame refers to.
bool is_resolvable(const session::View& view, std::uint64_t frame) {
  return session::kind_of(frame) == session::FrameKind::python
             ? session::code_of(frame) < view.count(TableId::codes)
             : session::module_of(frame) < view.count(TableId::modules);
}

// The recording in a completed bundle was written before the crash, so it can lack the modules of
// some frames. The bundle's metadata holds those frames.
std::vector<recording::LocationId> stack_of(const bundles::Source& source,
                                            const session::Crash& crash) {
  const Json& stored = member(member(source.metadata, "crash"), "stack");
  const std::uint32_t count = std::min(crash.frame_count, session::kCrashFrames);
  std::vector<recording::LocationId> stack;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t frame = crash.frames[i];
    if (!is_resolvable(source.recording->view(), frame) && stored.is_array() && i < stored.size()) {
      stack.push_back(source.locations->of_json(stored[i]));
    } else {
      const std::vector<recording::LocationId>& locations = source.locations->of_frame(frame);
      stack.insert(stack.end(), locations.begin(), locations.end());
    }
  }
  return stack;
}

CrashFacts read_crash(const bundles::Source& source) {
  const session::Crash& crash = source.recording->header().crash;
  CrashFacts found;
  found.signal = static_cast<int>(crash.signal.load());
  if (found.signal == 0) return found;
  const char* const name = sigabbrev_np(found.signal);
  found.name =
      name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", found.signal);
  found.has_address = session::has_address(crash);
  found.address = crash.address;
  found.sender_pid = crash.sender_pid;
  source.recording->view().read(TableId::threads, crash.thread, found.thread);
  found.thread.name[sizeof found.thread.name - 1] = '\0';
  found.stack = stack_of(source, crash);
  return found;
}

}  // namespace

std::string crash_text(const bundles::Source& source, const recording::StackStyle& style) {
  const CrashFacts crash = read_crash(source);
  if (crash.signal == 0) return {};
  std::string text = "  " + crash.name;
  if (crash.has_address) text += fmt::format(" at address {:#x}", crash.address);
  if (crash.thread.tid != 0)
    text += fmt::format(" in thread {} \"{}\"", crash.thread.tid, printable(crash.thread.name));
  if (crash.sender_pid != 0 && crash.sender_pid != source.recording->header().pid)
    text += fmt::format(", sent by process {}", crash.sender_pid);
  return text + '\n' + recording::stack_text(crash.stack, *source.locations, style);
}

Json crash_json(const bundles::Source& source) {
  const CrashFacts crash = read_crash(source);
  if (crash.signal == 0) return nullptr;
  return {
      {"signal", crash.signal},
      {"name", crash.name},
      {"address", crash.has_address ? Json(crash.address) : Json(nullptr)},
      {"sender_pid", crash.sender_pid != 0 ? Json(crash.sender_pid) : Json(nullptr)},
      {"thread",
       {{"tid", crash.thread.tid != 0 ? Json(crash.thread.tid) : Json(nullptr)},
        {"name", text_or_null(printable(crash.thread.name))}}},
      {"stack", recording::stack_json(crash.stack, *source.locations)},
  };
}

}  // namespace oomrec::tools::print
