#include "tools/bundles/process_recording.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/bundles/bundles.h"
#include "tools/bundles/orphans.h"
#include "tools/error.h"

namespace oomrec::tools {
namespace {

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

}  // namespace

std::optional<std::int32_t> pid_in(const std::string& word) {
  std::int32_t pid = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
  if (error != std::errc{} || end != word.data() + word.size() || pid <= 0) return std::nullopt;
  return pid;
}

std::filesystem::path session_of_process(std::int32_t pid) {
  const std::int32_t known_as = own_pid(pid);
  const std::uint64_t ticks = start_ticks(pid);
  for (const Session& session : sessions_of(dump_directories())) {
    if (session.alive && session.pid == known_as && session.start_ticks == ticks)
      return session.path;
  }
  throw Error{Exit::nothing_found, fmt::format("process {} is not recorded, or not by you", pid),
              "`oomrec ls --all` lists what is; a recording elsewhere is found with "
              "OOMREC_SESSION_DIR=DIR."};
}

}  // namespace oomrec::tools
