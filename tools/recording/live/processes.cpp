#include "tools/recording/live/processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <sstream>

#include "common/session/directories.h"
#include "common/system/files.h"
#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
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

// The process' pid in its own pid namespace, which is the one in its session.
pid_t pid_in_own_namespace(pid_t pid) {
  const std::string pids = status_field(pid, "NSpid");
  return parse_pid(std::string_view{pids}.substr(pids.find_last_of("\t ") + 1)).value_or(pid);
}

// Paths to try for the session that the process has mapped: the file's name as seen from here, then
// from the process (in a container), then the mapping itself, which needs more privileges. A
// process that was attached to and detached from still has the file of that session mapped,
// deleted: last.
std::vector<fs::path> session_files(pid_t process) {
  const pid_t pid = system::thread_with_memory(process);
  std::ifstream maps{fmt::format("/proc/{}/maps", pid)};
  std::vector<fs::path> files;
  std::vector<fs::path> deleted;
  std::string last;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t begin = line.find('/');
    std::string_view path =
        begin == line.npos ? std::string_view{} : std::string_view{line}.substr(begin);
    constexpr std::string_view kDeleted = " (deleted)";
    const bool is_deleted = path.ends_with(kDeleted);
    if (is_deleted) path.remove_suffix(kDeleted.size());
    if (!path.ends_with(session::kFileSuffix) ||
        session::creator_of(text::base_name(path)).pid == 0 || path == last)
      continue;
    last = path;
    std::vector<fs::path>& to = is_deleted ? deleted : files;
    to.emplace_back(path);
    to.emplace_back(fmt::format("/proc/{}/root{}", pid, path));
    to.emplace_back(fmt::format("/proc/{}/map_files/{}", pid, line.substr(0, line.find(' '))));
  }
  files.insert(files.end(), deleted.begin(), deleted.end());
  return files;
}

// Processes of this user, youngest first.
std::vector<Candidate> candidates() {
  std::vector<Candidate> found;
  for (const pid_t pid : ids_in("/proc")) {
    struct stat status {};
    if (stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 && status.st_uid == geteuid())
      found.push_back({pid, system::start_ticks(pid)});
  }
  std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
    return a.start_ticks != b.start_ticks ? a.start_ticks > b.start_ticks : a.pid > b.pid;
  });
  return found;
}

// Compares the name with the program's file and with its first argument that is not an option:
// python3 -u train.py.
bool has_name(pid_t pid, std::string_view name) {
  const std::string line = process_file(system::thread_with_memory(pid), "cmdline");
  bool first = true;
  for (const std::string_view word : split(line, '\0')) {
    if (!first && word.starts_with('-')) continue;
    if (text::base_name(word) == name) return true;
    if (!first) break;
    first = false;
  }
  return false;
}

std::vector<LiveProcess> find_processes(const std::function<bool(pid_t)>& matches,
                                        std::size_t most) {
  std::vector<LiveProcess> found;
  for (const Candidate& candidate : candidates()) {
    if (!matches(candidate.pid)) continue;
    if (auto process = live_process(candidate.pid)) found.push_back(std::move(*process));
    if (found.size() == most) break;
  }
  return found;
}

std::string list_text(const std::vector<LiveProcess>& found) {
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kMostListed); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", found[i].pid, clip(found[i].title(), 40));
  return found.size() > kMostListed ? text + ", …" : text;
}

// Whether a path leads this process to the same place as that one, as far as it exists. True if
// that may not be read.
bool means_the_same(pid_t pid, fs::path path) {
  const std::string root = fmt::format("/proc/{}/root", pid);
  for (;; path = path.parent_path()) {
    struct stat theirs {
    }, ours{};
    const bool is_theirs = stat((root + path.string()).c_str(), &theirs) == 0;
    if (!is_theirs && errno == EACCES) return true;
    const bool is_ours = stat(path.c_str(), &ours) == 0;
    if (is_theirs && is_ours) return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    if (is_theirs != is_ours) return false;
    if (!path.has_relative_path()) return true;
  }
}

constexpr const char* kHowToRecord =
    "Start it with the recorder (oomrec run -- PROGRAM), or load that now: oomrec attach PID";

}  // namespace

std::string LiveProcess::title() const {
  return printable(fmt::format("{}", fmt::join(recording->arguments(), " ")));
}

std::optional<pid_t> parse_pid(std::string_view word) {
  const auto pid = parse_number<pid_t>(word);
  return pid.value_or(0) > 0 ? pid : std::nullopt;
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
      const bool has_ended = header.state == static_cast<session::u32>(session::State::exited);
      if (!has_ended && header.start_ticks == start_ticks &&
          header.pid == pid_in_own_namespace(pid))
        return LiveProcess{pid, start_ticks, std::move(recording)};
    } catch (const Error&) {
      // The session is still being created, or is forged: treat the process as not recorded.
    }
  }
  return std::nullopt;
}

LiveProcess require_live_process(pid_t pid) {
  if (auto process = live_process(pid)) return std::move(*process);
  const bool is_running = system::start_ticks(pid) != 0;
  throw Error{
      Exit::nothing_found,
      is_running ? fmt::format("process {} is not recorded, or belongs to another user", pid)
                 : fmt::format("there is no process {}", pid),
      is_running ? fmt::format("Load the recorder into it: oomrec attach {}; or start it with the "
                               "recorder: oomrec run -- PROGRAM",
                               pid)
                 : "If it has ended: `oomrec ls --all` lists bundles and recordings."};
}

std::vector<std::pair<std::string, std::uint64_t>> smaps_rollup(pid_t pid) {
  std::vector<std::pair<std::string, std::uint64_t>> sizes;
  std::ifstream file{fmt::format("/proc/{}/smaps_rollup", system::thread_with_memory(pid))};
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream figure{line.substr(colon + 1)};
    if (std::uint64_t kib = 0; figure >> kib) sizes.emplace_back(line.substr(0, colon), kib << 10);
  }
  return sizes;
}

std::uint64_t resident_bytes(pid_t pid) {
  std::ifstream statm{fmt::format("/proc/{}/statm", system::thread_with_memory(pid))};
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  statm >> pages >> resident;
  return statm ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::string bundle_directory(pid_t pid, const Recording& recording) {
  fs::path directory = recording.text(recording.header().dump_directory);
  if (!means_the_same(pid, directory)) directory = "oom_dumps";
  return fs::absolute(directory).lexically_normal().string();
}

std::vector<LiveProcess> live_processes() {
  return find_processes([](pid_t) { return true; }, SIZE_MAX);
}

LiveProcess find_live_process(const std::string& argument) {
  if (argument.empty()) {
    auto found = find_processes([](pid_t) { return true; }, 1);
    if (!found.empty()) return std::move(found.front());
    throw Error{Exit::nothing_found, "none of your processes is being recorded", kHowToRecord};
  }
  if (const auto pid = parse_pid(argument)) return require_live_process(*pid);
  auto found = find_processes([&](pid_t pid) { return has_name(pid, argument); }, SIZE_MAX);
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) {
    throw Error{Exit::nothing_found,
                fmt::format("no process named {} is being recorded", printable(argument)),
                kHowToRecord};
  }
  throw Error{Exit::bad_input,
              fmt::format("{} recorded processes are named {}", found.size(), printable(argument)),
              fmt::format("Choose one by its pid: {}", list_text(found))};
}

}  // namespace oomrec::tools::recording
