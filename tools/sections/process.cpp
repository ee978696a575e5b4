#include "tools/sections/process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "common/facts/environment.h"
#include "tools/base/fact_reader.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"
#include "tools/recording/reading/old_memory.h"
#include "tools/sections/devices.h"
#include "tools/sections/ranks.h"

namespace oomrec::tools::sections {
namespace {

using session::TableId;

std::string python_version(const session::Header& header) {
  const std::uint32_t hex = header.python.version_hex;
  if (hex == 0) return {};
  return fmt::format("{}.{}.{}", hex >> 24, (hex >> 16) & 0xff, (hex >> 8) & 0xff);
}

// The command line on one line: the argument of -c may contain newlines. A redacted recording has
// no arguments; the executable's name stands in for them.
std::string command_line(const recording::Recording& recording) {
  constexpr std::size_t kMost = 70;
  std::string line;
  if (recording.arguments().empty()) {
    const std::string program = recording.text(program_of(recording.header()));
    line = program.substr(program.rfind('/') + 1);
  }
  for (const char byte : fmt::format("{}", fmt::join(recording.arguments(), " ")))
    line += byte == '\n' ? std::string_view{"↵"} : std::string_view{&byte, 1};
  return clip(line.empty() ? "?" : line, kMost);
}

std::string oomrec_version(const session::Header& header) {
  return {header.oomrec_version, strnlen(header.oomrec_version, sizeof header.oomrec_version)};
}

}  // namespace

std::string created_at(const bundles::Source& source) {
  if (!source.manifest.created_at_utc.empty()) return source.manifest.created_at_utc;
  if (source.is_live()) return time_text(bundles::realtime_now_ns());  // an idle one has no tick
  const recording::Recording& recording = *source.recording;
  return time_text(recording.realtime_of(
      std::max(recording.header().last_tick_ns.load(), recording.header().start_monotonic_ns)));
}

std::vector<std::pair<std::string, std::string>> process_facts(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (source.is_job()) return job_facts(source);
  const std::string python = python_version(recording.header());
  std::vector<std::pair<std::string, std::string>> facts = {
      {source.bundle.empty() ? "recording" : "bundle",
       clip_start(source.bundle.empty() ? recording.path().string() : source.bundle.string(), 90)},
      source.is_live()
          ? std::pair<std::string, std::string>{"read", created_at(source)}
          : std::pair<std::string, std::string>{"written",
                                                fmt::format("{}, trigger: {}", created_at(source),
                                                            name_of(source.trigger()))},
      source.imported_from.empty()
          ? std::pair{"process",
                      fmt::format("{} (pid {})", command_line(recording), recording.header().pid)}
          : std::pair{"source", "a " + source.imported_from},
      {recording::old_memory_of(recording.view()).preexisting ? "attached" : "started",
       time_text(recording.header().start_realtime_ns)},
  };
  if (!python.empty()) facts.emplace_back("python", python);
  for (const auto& [name, hooks] : driver_facts(recording)) facts.emplace_back(name, hooks);
  return facts;
}

Json process_json(const bundles::Source& source) {
  struct Process : facts::Process {
    std::int32_t pid, parent_pid;
    std::string start_utc;
    JsonPart argv;
    std::string executable, working_directory, python;
    JsonPart drivers;
  };
  const recording::Recording& recording = *source.recording;
  const session::Header& header = recording.header();
  return fact_json(Process{{},
                           header.pid,
                           header.parent_pid,
                           time_text(header.start_realtime_ns),
                           {recording.arguments()},
                           recording.text(header.executable),
                           recording.text(header.working_directory),
                           python_version(header),
                           {drivers_json(recording)}});
}

Json recording_json(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  const session::Header& header = recording.header();
  std::uint64_t holders = 0;  // in use
  for (const auto& holder : session::entries<session::Holder>(recording.view(), TableId::holders))
    holders += holder.node != 0;
  return {
      {"format", recording.view().format()},
      {"mode", name_of(recording.mode_now())},
      {"interval_bytes", header.interval_bytes},
      {"events", recording.event_count()},
      {"dropped_events", header.dropped_events.load()},
      {"truncated_stacks", header.truncated_stacks.load()},
      {"stacks", holders},
      {"forgotten_stacks", header.forgotten_stacks.load()},
      {"oomrec_version", text_or_null(oomrec_version(header))},
  };
}

std::string outcome_sentence(const std::string& outcome) {
  if (outcome == "running") return "running: the program was still running when this was written";
  if (outcome == "recovered") return "recovered: the program kept running, or exited normally";
  if (outcome == "oom_killed") return "oom_killed: the kernel's OOM killer killed the program";
  if (outcome == "unknown")
    return "unknown: the program is gone, and nothing recorded how it ended";
  const std::size_t blank = outcome.find(' ');
  const std::string value = blank == std::string::npos ? "" : outcome.substr(blank + 1);
  if (outcome.starts_with("exited ")) {
    return fmt::format("{}: the program exited with code {}", printable(outcome), printable(value));
  }
  if (outcome.starts_with("signal ")) {
    const char* name = sigabbrev_np(parse_number<int>(value).value_or(0));
    return fmt::format("{}: SIG{} ended the program", printable(outcome),
                       name != nullptr ? name : "???");
  }
  return printable(outcome);
}

}  // namespace oomrec::tools::sections
