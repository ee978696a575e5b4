#include "tools/recording/live/processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <sstream>

#include "common/session/directories.h"
#include "common/system/files.h"
#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/recording/live/mapping.h"

namespace oomrec::tools::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostListed = 10;

// A process that may be recorded.
struct Candidate {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
};

using text::base_name;

// The process' number in its own pid namespace, which is the one its session knows.
pid_t own_pid(pid_t pid) {
  std::ifstream status{fmt::format("/proc/{}/status", pid)};
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    return pid_in(std::string_view{line}.substr(line.find_last_of("\t ") + 1)).value_or(pid);
  }
  return pid;
}

// The session that the process has mapped. Its own file where it can still be reached by name, by
// ours or by the process's (in a container), else by the mapping, which needs more rights.
std::vector<fs::path> session_files(pid_t pid) {
  std::ifstream maps{fmt::format("/proc/{}/maps", pid)};
  std::vector<fs::path> files;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t begin = line.find('/');
    std::string_view path =
        begin == line.npos ? std::string_view{} : std::string_view{line}.substr(begin);
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
    if (!path.ends_with(session::kFileSuffix) || session::maker_of(text::base_name(path)).pid == 0)
      continue;
    files.emplace_back(path);
    files.emplace_back(fmt::format("/proc/{}/root{}", pid, path));
    files.emplace_back(fmt::format("/proc/{}/map_files/{}", pid, line.substr(0, line.find(' '))));
    break;
  }
  return files;
}

// Processes of this user, the youngest first.
std::vector<Candidate> candidates() {
  std::vector<Candidate> found;
  std::error_code error;
  for (fs::directory_iterator at{"/proc", error}, end; !error && at != end; at.increment(error)) {
    const std::optional<pid_t> pid = pid_in(at->path().filename().native());
    struct stat status {};
    if (!pid || stat(at->path().c_str(), &status) != 0 || status.st_uid != geteuid()) continue;
    found.push_back({*pid, system::start_ticks(*pid)});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.start_ticks != b.start_ticks ? a.start_ticks > b.start_ticks : a.pid > b.pid;
  });
  return found;
}

// The program by its file, and by the first word that is no option: python3 -u train.py.
bool is_called(pid_t pid, std::string_view name) {
  std::ifstream file{fmt::format("/proc/{}/cmdline", pid)};
  const std::string line{std::istreambuf_iterator<char>{file}, {}};
  bool first = true;
  for (const std::string_view word : split(line, '\0')) {
    if (!first && word.starts_with('-')) continue;
    if (text::base_name(word) == name) return true;
    if (!first) break;
    first = false;
  }
  return false;
}

std::vector<LiveProcess> processes(const std::function<bool(pid_t)>& wanted, std::size_t most) {
  std::vector<LiveProcess> found;
  for (const Candidate& candidate : candidates()) {
    if (!wanted(candidate.pid)) continue;
    if (auto process = live_process(candidate.pid)) found.push_back(std::move(*process));
    if (found.size() == most) break;
  }
  return found;
}

std::string listed(const std::vector<LiveProcess>& found) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kMostListed); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", found[i].pid, clip(found[i].title(), 40));
  return found.size() > kMostListed ? text + ", …" : text;
}

constexpr const char* kHowToRecord = "Record a program: oomrec run -- PROGRAM";

}  // namespace

std::string LiveProcess::title() const {
  return printable(fmt::format("{}", fmt::join(recording->arguments(), " ")));
}

std::optional<pid_t> pid_in(std::string_view word) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole && pid > 0 ? std::optional{pid} : std::nullopt;
}

std::optional<LiveProcess> live_process(pid_t pid) {
  const std::uint64_t start_ticks = system::start_ticks(pid);
  if (start_ticks == 0) return std::nullopt;
  for (const fs::path& file : session_files(pid)) {
    const MappedFile mapped = map_file(file);
    if (mapped.bytes == nullptr) continue;
    try {
      auto recording = std::make_shared<Recording>(file, mapped.bytes, mapped.size);
      const session::Header& header = recording->header();
      if (header.start_ticks == start_ticks && header.pid == own_pid(pid))
        return LiveProcess{pid, start_ticks, std::move(recording)};
    } catch (const Error&) {
      // It has just begun, or is forged: as if it were not recorded.
    }
  }
  return std::nullopt;
}

LiveProcess recorded_process(pid_t pid) {
  if (auto process = live_process(pid)) return std::move(*process);
  const bool there = system::start_ticks(pid) != 0;
  throw Error{Exit::nothing_found,
              there ? fmt::format("process {} is not recorded, or not by you", pid)
                    : fmt::format("there is no process {}", pid),
              there ? kHowToRecord
                    : "`oomrec ls --all` lists the recordings, also those of dead processes."};
}

std::uint64_t resident_bytes(pid_t pid) {
  std::ifstream statm{fmt::format("/proc/{}/statm", pid)};
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  statm >> pages >> resident;
  return statm ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::vector<LiveProcess> live_processes() {
  return processes([](pid_t) { return true; }, SIZE_MAX);
}

LiveProcess find_live_process(const std::string& argument) {
  if (argument.empty()) {
    auto found = processes([](pid_t) { return true; }, 1);
    if (!found.empty()) return std::move(found.front());
    throw Error{Exit::nothing_found, "no process of yours is recorded now", kHowToRecord};
  }
  if (const auto pid = pid_in(argument)) return recorded_process(*pid);
  auto found = processes([&](pid_t pid) { return is_called(pid, argument); }, SIZE_MAX);
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) {
    throw Error{Exit::nothing_found,
                fmt::format("no process called {} is recorded now", printable(argument)),
                kHowToRecord};
  }
  throw Error{Exit::bad_input,
              fmt::format("{} recorded processes are called {}", found.size(), printable(argument)),
              fmt::format("Choose one by its number: {}", listed(found))};
}

}  // namespace oomrec::tools::recording
