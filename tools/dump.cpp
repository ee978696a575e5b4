// `oomrec dump PID`: a bundle of a running process, out of its session file.
//
// From outside: no signal, nothing is stopped, the program cannot notice.
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <memory>
#include <sstream>

#include "tools/analysis/recording.h"
#include "tools/arguments.h"
#include "tools/bundles/bundles.h"
#include "tools/bundles/orphans.h"
#include "tools/bundles/writing.h"
#include "tools/commands.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr const char* kExamples =
    "  oomrec dump 4711\n"
    "  oomrec dump --reason \"before the second epoch\" 4711\n"
    "  oomrec dump --to /tmp/dumps $(pidof server)\n";

std::int32_t pid_of(const std::string& word) {
  std::int32_t pid = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
  if (error != std::errc{} || end != word.data() + word.size() || pid <= 0) {
    throw Error{
        Exit::bad_input,
        word.empty() ? "no process was named" : fmt::format("'{}' is no process", printable(word)),
        "Give the number of a running process: oomrec dump 4711"};
  }
  return pid;
}

// The process' number in its own pid namespace, which is the one its session knows.
std::int32_t own_pid(std::int32_t pid) {
  std::ifstream status{fmt::format("/proc/{}/status", pid)};
  if (!status) {
    throw Error{Exit::nothing_found, fmt::format("there is no process {}", pid),
                "`oomrec ls --all` lists the recordings, also those of dead processes."};
  }
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:"))
      return std::atoi(line.substr(line.find_last_of("\t ") + 1).c_str());
  }
  return pid;
}

// Field 22 of /proc/PID/stat: tells a process from a later one of the same number.
std::uint64_t start_ticks(std::int32_t pid) {
  std::ifstream stat{fmt::format("/proc/{}/stat", pid)};
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields{text.substr(name_end + 1)};
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

std::unique_ptr<Recording> recording_of(std::int32_t pid) {
  const std::int32_t known_as = own_pid(pid);
  const std::uint64_t ticks = start_ticks(pid);
  for (const Session& session : sessions_of(dump_directories())) {
    if (!session.alive || session.pid != known_as) continue;
    auto recording = std::make_unique<Recording>(session.path);
    if (recording->header().start_ticks == ticks) return recording;
  }
  throw Error{Exit::nothing_found, fmt::format("process {} is not recorded, or not by you", pid),
              "`oomrec ls --all` lists what is; a recording elsewhere is found with "
              "OOMREC_SESSION_DIR=DIR."};
}

}  // namespace

int dump_command(const Words& words) {
  Arguments arguments{
      "dump", "[OPTIONS] PID",
      "Writes a bundle of a running process that is recorded. It is read from outside: "
      "the process gets no signal and does not notice.",
      kExamples};
  std::string word;
  std::string reason;
  std::string directory;
  bool json = false;
  arguments.positional("PID", word, "the process");
  arguments.option("--reason", "TEXT", reason, "words for the bundle: why it was asked for");
  arguments.option("--to", "DIR", directory,
                   "where the bundle goes (the process' own dump directory)");
  arguments.flag("--json", json, "print {\"schema_version\", \"bundle\"}");
  if (!arguments.parse(words)) return code(Exit::shown);

  const std::unique_ptr<Recording> recording = recording_of(pid_of(word));
  if (directory.empty()) directory = recording->text(recording->header().dump_directory);
  directory = std::filesystem::absolute(directory).lexically_normal().string();
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  const Written written = write_bundle(*recording, cause, directory);
  if (written.bundle.empty()) {
    throw Error{Exit::bad_input, written.problem,
                "Give another directory: oomrec dump --to DIR PID"};
  }
  if (json)
    print_json({{"schema_version", 1}, {"bundle", written.bundle.string()}});
  else
    fmt::print("{}\n", printable(written.bundle.string()));
  return code(Exit::shown);
}

}  // namespace oomrec::tools
