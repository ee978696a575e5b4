#include "tools/sections/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "common/facts/end.h"
#include "tools/base/fact_reader.h"
#include "tools/base/text.h"

namespace oomrec::tools::sections {
namespace {

using session::TableId;

struct Stack {
  recording::Locations& locations;
  std::vector<recording::LocationId> frames;
  void write(JsonTree& json) const { json.value(recording::stack_json(frames, locations)); }
};

// Whether the recording has the code object or module that the frame refers to.
bool is_resolvable(const session::View& view, std::uint64_t frame) {
  return session::has_code(frame) ? session::code_of(frame) < view.count(TableId::codes)
                                  : session::module_of(frame) < view.count(TableId::modules);
}

// The recording in a completed bundle was written before the crash, so it can lack the modules of
// some frames. The bundle's metadata holds those frames.
std::vector<recording::LocationId> stack_of(const bundles::Source& source,
                                            const session::Crash& crash) {
  const Json& stored = source.metadata.crash.stack.json;
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

// The recorded crash, checked: a damaged recording may hold anything. `name` is the buffer of its
// name.
facts::Crash<Stack> crash_of(const bundles::Source& source, std::string& name) {
  const session::Crash& crash = source.recording->header().crash;
  const std::uint32_t signal = crash.signal;
  session::Thread thread{};
  if (signal == 0) return {.stack = {*source.locations, {}}};
  const char* const known = sigabbrev_np(static_cast<int>(signal));
  name = known != nullptr ? fmt::format("SIG{}", known) : fmt::format("signal {}", signal);
  source.recording->view().read(TableId::threads, crash.thread, thread);
  return {signal,
          name,
          session::has_address(crash),
          crash.address,
          crash.sender_pid,
          thread,
          {*source.locations, stack_of(source, crash)}};
}

}  // namespace

std::string crash_text(const bundles::Source& source, const recording::StackStyle& style) {
  std::string name;
  const facts::Crash<Stack> crash = crash_of(source, name);
  if (crash.signal == 0) return {};
  std::string text = "  " + name;
  if (crash.has_address) text += fmt::format(" at address {:#x}", crash.address);
  if (crash.thread.tid != 0)
    text += fmt::format(" in thread {} \"{}\"", crash.thread.tid,
                        printable(facts::Name{crash.thread.name}.view()));
  if (crash.sender_pid != 0 && crash.sender_pid != source.recording->header().pid)
    text += fmt::format(", sent by process {}", crash.sender_pid);
  return text + '\n' + recording::stack_text(crash.stack.frames, *source.locations, style);
}

Json crash_json(const bundles::Source& source) {
  std::string name;
  return fact_json(crash_of(source, name));
}

namespace {

constexpr std::size_t kMostEntries = 10;  // of the custom metadata, without --full

std::string lines_of(std::string_view text, std::size_t indent) {
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines +=
        fmt::format("{:{}}{}\n", "", indent, clip(printable(text.substr(at, end - at)), kColumns));
    at = end + 1;
  }
  return lines;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string exception_text(const bundles::Source& source, bool full, const Terminal& terminal) {
  std::string lines;
  const auto& [type, module, message, traceback] = source.metadata.exception;
  if (type) {
    lines = fmt::format(
        "  {}{}\n", terminal.paint(Colour::bold, printable(*type)),
        !message || message->empty() ? "" : ": " + wrap(printable(*message), kColumns, 4));
    if (full && traceback) lines += lines_of(*traceback, 4);
  }
  if (!source.reason().empty() && source.trigger() != Trigger::request)
    lines += fmt::format("  context: {}\n", clip(printable(source.reason()), kColumns));
  const Json entries = custom_metadata_json(source);
  std::size_t shown = 0;
  for (const auto& [key, value] : entries.items()) {
    if (!full && shown++ == kMostEntries) {
      lines += fmt::format("  … and {} more (--full)\n", entries.size() - kMostEntries);
      break;
    }
    lines += fmt::format("  {}: {}\n", clip(printable(key), kColumns / 2),
                         clip(printable(value_text(value)), kColumns));
  }
  return lines;
}

Json exception_json(const bundles::Source& source) {
  constexpr std::size_t kPrefix = std::string_view{"exception_"}.size();
  const auto& texts = source.metadata.exception;
  if (!texts.front()) return nullptr;
  Json exception = Json::object();
  for (std::size_t i = 0; i < texts.size(); ++i)
    exception[facts::kExceptionKeys[i].substr(kPrefix)] = texts[i] ? Json(*texts[i]) : nullptr;
  return exception;
}

Json custom_metadata_json(const bundles::Source& source) {
  const Json& entries = source.metadata.custom_metadata.json;
  return entries.is_object() ? entries : Json::object();
}

}  // namespace oomrec::tools::sections
