#include "tools/print/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

using session::TableId;

// A copy of what the recording says, checked.
struct Crashed {
  int signal = 0;
  std::string name;
  bool fault = false;  // with an address
  std::uint64_t address = 0;
  std::int32_t sender_pid = 0;
  session::Thread thread{};
  std::vector<recording::PlaceId> stack;
};

bool is_known(const session::View& view, std::uint64_t frame) {
  return session::kind_of(frame) == session::FrameKind::python
             ? session::code_of(frame) < view.count(TableId::codes)
             : session::module_of(frame) < view.count(TableId::modules);
}

// A bundle that was completed has a recording from before the crash: what that does not know is in
// the metadata, frame by frame.
std::vector<recording::PlaceId> stack_of(const bundles::Source& source,
                                         const session::Crash& crash) {
  const Json& stored = member(member(source.metadata, "crash"), "stack");
  const std::uint32_t count = std::min(crash.frame_count, session::kCrashFrames);
  std::vector<recording::PlaceId> stack;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t frame = crash.frames[i];
    if (!is_known(source.recording->view(), frame) && stored.is_array() && i < stored.size()) {
      stack.push_back(source.places->of_json(stored[i]));
    } else {
      const std::vector<recording::PlaceId>& places = source.places->of_frame(frame);
      stack.insert(stack.end(), places.begin(), places.end());
    }
  }
  return stack;
}

Crashed crash_of(const bundles::Source& source) {
  const session::Crash& crash = source.recording->header().crash;
  Crashed found;
  found.signal = static_cast<int>(crash.signal.load());
  if (found.signal == 0) return found;
  const char* const name = sigabbrev_np(found.signal);
  found.name =
      name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", found.signal);
  found.fault = session::has_address(crash);
  found.address = crash.address;
  found.sender_pid = crash.sender_pid;
  source.recording->view().read(TableId::threads, crash.thread, found.thread);
  found.thread.name[sizeof found.thread.name - 1] = '\0';
  found.stack = stack_of(source, crash);
  return found;
}

}  // namespace

std::string crash_text(const bundles::Source& source, const recording::StackStyle& style) {
  const Crashed crash = crash_of(source);
  if (crash.signal == 0) return {};
  std::string text = "  " + crash.name;
  if (crash.fault) text += fmt::format(" at address {:#x}", crash.address);
  if (crash.thread.tid != 0)
    text += fmt::format(" in thread {} \"{}\"", crash.thread.tid, printable(crash.thread.name));
  if (crash.sender_pid != 0 && crash.sender_pid != source.recording->header().pid)
    text += fmt::format(", sent by process {}", crash.sender_pid);
  return text + '\n' + recording::stack_text(crash.stack, *source.places, style);
}

Json crash_json(const bundles::Source& source) {
  const Crashed crash = crash_of(source);
  if (crash.signal == 0) return nullptr;
  return {
      {"signal", crash.signal},
      {"name", crash.name},
      {"address", crash.fault ? Json(crash.address) : Json(nullptr)},
      {"sender_pid", crash.sender_pid != 0 ? Json(crash.sender_pid) : Json(nullptr)},
      {"thread",
       {{"tid", crash.thread.tid != 0 ? Json(crash.thread.tid) : Json(nullptr)},
        {"name", text_or_null(printable(crash.thread.name))}}},
      {"stack", recording::stack_json(crash.stack, *source.places)},
  };
}

}  // namespace oomrec::tools::print
