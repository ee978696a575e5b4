#include "tools/processes/attach/threads.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "common/machine/platform.h"
#include "tools/base/directory.h"
#include "tools/base/number.h"

namespace oomrec::tools::processes {
namespace {

// The lower, the less the thread notices. One that sleeps is kept from nothing.
int cost_of(pid_t pid, pid_t thread) {
  std::ifstream file{fmt::format("/proc/{}/task/{}/syscall", pid, thread)};
  std::string word;
  file >> word;
  if (word == "running" || word.empty()) return 2;
  const long number = parse_number<long>(word).value_or(-1);
  if (number < 0) return 3;
  // Its time-out starts anew.
  const bool loses_time =
      std::find(std::begin(machine::kEpollWaits), std::end(machine::kEpollWaits), number) !=
          std::end(machine::kEpollWaits) ||
      number == SYS_rt_sigtimedwait || number == SYS_semtimedop || number == SYS_io_getevents;
  return loses_time ? 1 : 0;
}

}  // namespace

std::string status_field(pid_t pid, std::string_view name, std::string_view proc) {
  std::ifstream file{fmt::format("{}/{}/status", proc, pid)};
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const std::size_t value = line.find_first_not_of(" \t", name.size() + 1);
    return value == std::string::npos ? std::string{} : line.substr(value);
  }
  return {};
}

bool has_ended(pid_t thread) {
  const std::string state = status_field(thread, "State");
  return state.empty() || state[0] == 'Z' || state[0] == 'X';
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  for (const std::filesystem::path& path : entries_of(fmt::format("/proc/{}/task", pid)))
    if (const auto thread = parse_number<pid_t>(path.filename().native()))
      threads.push_back(*thread);
  return threads;
}

std::vector<pid_t> threads_by_cost(pid_t pid) {
  std::vector<std::pair<int, pid_t>> costs;
  for (const pid_t thread : threads_of(pid))
    if (!has_ended(thread)) costs.emplace_back(cost_of(pid, thread), thread);
  std::stable_sort(costs.begin(), costs.end());
  std::vector<pid_t> threads;
  threads.reserve(costs.size());
  for (const auto& [cost, thread] : costs) threads.push_back(thread);
  return threads;
}

}  // namespace oomrec::tools::processes
