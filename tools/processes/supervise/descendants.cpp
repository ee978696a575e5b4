#include "tools/processes/supervise/descendants.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/proc.h"
#include "tools/deaths/counters.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMostEnded = 10'000;
constexpr std::uint64_t kPauseForEachNs = 99;  // a sample takes at most 1 % of a processor

struct Status {
  std::string name;
  pid_t parent = 0;
  std::uint64_t resident_bytes = 0;  // 0: of a zombie
};

// From /proc/PID/stat: "pid (name) state parent …"; field 24 is the resident size in pages. The
// name may hold blanks and parentheses.
std::optional<Status> status_of(pid_t pid) {
  const std::string text = process_file(pid, "stat", system::g_roots.proc);
  const std::size_t name = text.find('(');
  const std::size_t end = text.rfind(')');
  if (name >= end || end == std::string_view::npos) return std::nullopt;
  Status status;
  status.name = text.substr(name + 1, end - name - 1);
  status.parent = static_cast<pid_t>(system::number_in(system::stat_field(text, 4)));
  status.resident_bytes = system::number_in(system::stat_field(text, 24)) *
                          static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return status;
}

// The last number of "NSpid:\t3128\t1"; 0: the process has ended.
pid_t own_pid_of_living(pid_t pid) {
  const std::string pids = status_field(pid, "NSpid", system::g_roots.proc);
  return static_cast<pid_t>(system::number_in(std::string_view{pids}.substr(pids.rfind('\t') + 1)));
}

}  // namespace

void Descendants::started(pid_t program) {
  alive_[program].pid = program;
  for (pid_t ancestor = getpid(); ancestor > 0 && ancestors_.insert(ancestor).second;) {
    const std::optional<Status> status = status_of(ancestor);
    ancestor = status ? status->parent : 0;
  }
}

void Descendants::sample(const std::filesystem::path& cgroup) {
  const std::uint64_t now = system::monotonic_ns();
  if (now < next_sample_ns_) return;
  const std::uint64_t before = system::processor_ns();
  // Before /proc: what is in it must be there, or have ended.
  const std::optional<std::vector<pid_t>> members =
      cgroup.empty() ? std::nullopt : deaths::processes_in(cgroup);
  // A child has a higher pid than its parent, unless pids have begun again: the parent comes first.
  std::vector<pid_t> present = ids_in(system::g_roots.proc);
  std::ranges::sort(present);
  for (const pid_t pid : present) look_at(pid, now);
  leave_ended(now);
  if (members) {
    is_cgroup_read_ = true;
    are_others_in_cgroup_ |= std::ranges::any_of(
        *members, [&](pid_t pid) { return others_.contains(pid) && !ancestors_.contains(pid); });
  }
  next_sample_ns_ = now + (system::processor_ns() - before) * kPauseForEachNs;
}

void Descendants::look_at(pid_t pid, std::uint64_t now_ns) {
  if (const auto other = others_.find(pid); other != others_.end()) {
    other->second = now_ns;
    return;
  }
  const std::optional<Status> status = status_of(pid);
  if (!status) return;
  // Orphans become ours if we are pid 1.
  const bool is_child = alive_.contains(status->parent) || status->parent == getpid();
  if (!alive_.contains(pid) && !is_child) {
    others_[pid] = now_ns;
    return;
  }
  Descendant& descendant = alive_[pid];
  descendant.pid = pid;
  if (descendant.own_pid == 0) descendant.own_pid = own_pid_of_living(pid);
  descendant.time_ns = now_ns;
  descendant.name = status->name;
  if (status->resident_bytes != 0) descendant.resident_bytes = status->resident_bytes;
}

void Descendants::leave_ended(std::uint64_t now_ns) {
  std::erase_if(others_, [&](const auto& other) { return other.second != now_ns; });
  std::erase_if(alive_, [&](const auto& known) {
    if (known.second.time_ns == now_ns) return false;
    ended_.push_back(known.second);
    ++ended_count_;
    return true;
  });
  while (ended_.size() > kMostEnded) ended_.pop_front();
}

bool Descendants::contains(pid_t pid) const {
  return alive_.contains(pid) ||
         std::ranges::any_of(ended_, [&](const auto& known) { return known.pid == pid; });
}

pid_t Descendants::own_pid_of(pid_t pid) const {
  if (const auto known = alive_.find(pid); known != alive_.end()) return known->second.own_pid;
  const auto ended =
      std::find_if(ended_.rbegin(), ended_.rend(), [&](const auto& one) { return one.pid == pid; });
  return ended != ended_.rend() ? ended->own_pid : 0;
}

std::vector<Descendant> Descendants::ended_since(std::uint64_t monotonic_ns) const {
  std::vector<Descendant> found;
  for (const auto& known : ended_)
    if (known.time_ns >= monotonic_ns) found.push_back(known);
  for (const auto& [pid, known] : alive_)
    if (known.time_ns >= monotonic_ns && !status_of(pid)) found.push_back(known);
  return found;
}

}  // namespace oomrec::tools::processes
