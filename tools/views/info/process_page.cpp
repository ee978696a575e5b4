#include "tools/views/info/process_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>

#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/target.h"
#include "tools/recording/live/processes.h"

namespace oomrec::tools::views {
namespace {

using processes::Unobserved;

std::string sentence_of(const Unobserved& one) {
  const std::string functions = fmt::format("{}", fmt::join(one.functions, ", "));
  switch (one.why) {
    case Unobserved::Why::own_allocator:
      return "brings its own malloc, which is called without the recorder";
    case Unobserved::Why::not_redirected:
      return fmt::format("its calls lead past the recorder: {}", functions);
    case Unobserved::Why::linked_allocator:
      return fmt::format(
          "has {} linked in: single blocks are not recorded, its memory counts by mappings",
          fmt::join(one.allocators, " and "));
    case Unobserved::Why::stored_address:
      break;
  }
  return fmt::format("calls by an address that it stored before: {}", functions);
}

std::string obstacle_to_attach(pid_t pid) {
  try {
    processes::require_attachable(pid);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

ProcessCheck check_process(pid_t pid) {
  ProcessCheck check;
  check.pid = pid;
  const processes::RemoteMemory memory{system::thread_with_memory(pid)};
  if (!std::filesystem::exists(fmt::format("/proc/{}", pid)))
    throw Error{Exit::bad_input, fmt::format("there is no process {}", pid), "`ps` lists them."};
  if (status_field(memory.pid(), "State").starts_with('Z'))
    throw Error{
        Exit::bad_input,
        fmt::format("process {} has ended (it is a zombie: its parent has not waited for it)", pid),
        "`oomrec ls --all` shows what recorded processes left."};
  if (memory.mappings().empty())
    throw Error{Exit::bad_input,
                fmt::format("process {} may not be read, or is none of a program", pid),
                fmt::format("Try as its user, or as root: sudo oomrec info {}", pid)};
  const auto live = recording::live_process(pid);
  if (!live) {
    check.obstacle = obstacle_to_attach(pid);
    return check;
  }
  check.recorded = true;
  check.title = live->title();
  const recording::Recording& recording = *live->recording;
  check.mode = kModeNames[static_cast<std::size_t>(recording.mode_now())];
  check.limit_bytes = recording.header().soft_limit_bytes;
  check.recording = recording.path();
  check.bundles = recording.text(recording.header().dump_directory);
  if (const auto note = recording.header().heap_note; note != 0)
    check.heap_note = recording.text(note);
  check.attached = processes::is_attached(memory);
  check.unobserved = processes::unobserved_in(memory);
  return check;
}

void print_process(const ProcessCheck& check, const Terminal& terminal) {
  fmt::print("{:<14} {} {}\n", "process", check.pid, check.title);
  if (!check.recorded && !check.obstacle.empty()) {
    fmt::print("{:<14} {}, and cannot be: {}\n", "recorded", terminal.paint(Colour::red, "no"),
               check.obstacle);
    return;
  }
  if (!check.recorded) {
    fmt::print("{:<14} {}; to record it from now on: oomrec attach {}\n", "recorded",
               terminal.paint(Colour::red, "no"), check.pid);
    return;
  }
  fmt::print("{:<14} {}, {}\n", "recorded", terminal.paint(Colour::green, "yes"),
             check.attached ? "since `oomrec attach`" : "from its start");
  fmt::print("{:<14} {}\n", "mode", check.mode);
  if (check.limit_bytes != 0) fmt::print("{:<14} {}\n", "limit", size_text(check.limit_bytes));
  fmt::print("{:<14} {}\n", "recording", printable(check.recording));
  if (!check.bundles.empty()) fmt::print("{:<14} {}\n", "bundles", printable(check.bundles));
  if (!check.heap_note.empty()) fmt::print("{:<14} {}\n", "heap", printable(check.heap_note));
  fmt::print("not observed{}\n", check.unobserved.empty() ? "   nothing known" : "");
  for (const Unobserved& one : check.unobserved)
    fmt::print("  {}\n    {}\n", printable(one.module), sentence_of(one));
}

Json process_json(const ProcessCheck& check) {
  Json unobserved = Json::array();
  for (const Unobserved& one : check.unobserved)
    unobserved.push_back({{"module", one.module},
                          {"why", std::string{name_of(one.why)}},
                          {"functions", one.functions},
                          {"allocators", one.allocators}});
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  return {{"schema_version", 1},
          {"pid", check.pid},
          {"recorded", check.recorded},
          {"obstacle", text_or_null(check.obstacle)},
          {"attached", check.attached},
          {"mode", text_or_null(check.mode)},
          {"limit_bytes", number_or_null(check.limit_bytes)},
          {"recording", text_or_null(check.recording)},
          {"bundles", text_or_null(check.bundles)},
          {"heap_note", text_or_null(check.heap_note)},
          {"unobserved", unobserved}};
}

}  // namespace oomrec::tools::views
