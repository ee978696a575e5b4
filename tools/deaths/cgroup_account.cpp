#include "tools/deaths/cgroup_account.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "common/limits/cgroup.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/text.h"
#include "tools/deaths/counters.h"
#include "tools/deaths/current_health.h"
#include "tools/deaths/evidence.h"

namespace oomrec::tools::deaths {
namespace {

namespace fs = std::filesystem;
using session::AccountSource;

constexpr std::size_t kMaxProcesses = 1000;

// Older kernels log only a process' resident sum. Its private part is estimated: the same share as
// in the whole cgroup.
std::uint64_t private_bytes(const ReportedProcess& process, const MemoryStatistics& all) {
  if (process.anonymous_bytes + process.file_bytes + process.shared_bytes != 0)
    return process.anonymous_bytes;
  const std::uint64_t resident = all.anonymous + all.file;
  if (resident == 0) return process.rss_bytes;
  return static_cast<std::uint64_t>(static_cast<double>(process.rss_bytes) *
                                    static_cast<double>(all.anonymous) /
                                    static_cast<double>(resident));
}

// The part of `total` that `part` of `whole` is.
std::uint64_t share(std::uint64_t total, std::uint64_t part, std::uint64_t whole) {
  return whole == 0
             ? 0
             : static_cast<std::uint64_t>(static_cast<double>(total) * static_cast<double>(part) /
                                          static_cast<double>(whole));
}

void set_own(session::CgroupAccount& account, const ReportedProcess& own,
             const MemoryStatistics& all) {
  account.own_anonymous_bytes = private_bytes(own, all);
  account.own_shared_bytes = own.shared_bytes;
  const std::uint64_t known = account.own_anonymous_bytes + account.own_shared_bytes;
  account.own_file_bytes = own.rss_bytes > known ? own.rss_bytes - known : 0;
}

void set_largest(session::CgroupAccount& account, const ReportedProcess& process, bool recorded) {
  if (process.rss_bytes <= account.largest_bytes) return;
  account.largest_bytes = process.rss_bytes;
  account.largest_pid = static_cast<std::int32_t>(process.pid);
  account.largest_recorded = recorded ? 1 : 0;
  system::Text{account.largest_name} << process.name;
}

// Processes in the cgroup and below it.
std::vector<pid_t> all_processes_in(const fs::path& cgroup) {
  std::vector<pid_t> all = processes_in(cgroup).value_or(std::vector<pid_t>{});
  std::error_code error;
  for (fs::recursive_directory_iterator at{cgroup, error}, end; at != end && !error;
       at.increment(error)) {
    if (all.size() >= kMaxProcesses) break;
    if (!at->is_directory(error)) continue;
    const auto below = processes_in(at->path()).value_or(std::vector<pid_t>{});
    all.insert(all.end(), below.begin(), below.end());
  }
  if (all.size() > kMaxProcesses) all.resize(kMaxProcesses);
  return all;
}

// From /proc/PID/status, whose sizes are in kB.
ReportedProcess process_of(pid_t pid) {
  ReportedProcess process;
  process.pid = process.thread = static_cast<std::uint64_t>(pid);
  std::ifstream lines{fs::path{system::g_roots.proc} / std::to_string(pid) / "status"};
  const auto kib = [](std::string_view line) {
    return system::number_in(line.substr(line.find_first_of("0123456789"))) * 1024;
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Name:\t")) process.name = line.substr(6);
    if (line.starts_with("VmRSS:")) process.rss_bytes = kib(line);
    if (line.starts_with("RssAnon:")) process.anonymous_bytes = kib(line);
    if (line.starts_with("RssFile:")) process.file_bytes = kib(line);
    if (line.starts_with("RssShmem:")) process.shared_bytes = kib(line);
  }
  return process;
}

}  // namespace

session::CgroupAccount account_of(const OomReport& report, const OwnProcess& own,
                                  const std::set<std::uint64_t>& recorded) {
  session::CgroupAccount account{};
  const MemoryStatistics& all = report.statistics;
  account.scope = static_cast<std::uint32_t>(report.of_machine ? session::AccountScope::machine
                                                               : session::AccountScope::cgroup);
  account.limit_bytes = report.limit_bytes;
  account.usage_bytes = report.usage_bytes;
  std::uint64_t of_recorded = 0, of_others = 0;
  bool was_own = false;
  for (const ReportedProcess& process : report.processes) {
    const bool is_own = own.is(process.pid);
    if (is_own && std::exchange(was_own, true)) continue;  // the same memory once more
    const bool is_recorded = is_own ? own.is_recorded : recorded.count(process.pid) != 0;
    (is_recorded ? of_recorded : of_others) += private_bytes(process, all);
    is_own ? set_own(account, process, all) : set_largest(account, process, is_recorded);
  }
  // Memory shared since a fork counts once in the cgroup and in each process' figure.
  const std::uint64_t sum = of_recorded + of_others;
  const std::uint64_t anonymous = all.anonymous == 0 ? sum : std::min(sum, all.anonymous);
  // The statistics may lag behind the usage: the last parts give way.
  std::uint64_t left = report.usage_bytes;
  const auto take = [&left](std::uint64_t bytes) {
    const std::uint64_t taken = std::min(bytes, left);
    left -= taken;
    return taken;
  };
  account.recorded_bytes = take(share(anonymous, of_recorded, sum));
  account.unrecorded_bytes = take(share(anonymous, of_others, sum));
  account.shared_bytes = take(all.shared);
  account.slab_bytes = take(all.slab);
  account.kernel_bytes = take(all.all_kernel());
  account.file_bytes = take(all.file > all.shared ? all.file - all.shared : 0);
  account.other_bytes = left;
  return account;
}

OomReport report_of_cgroup(const fs::path& cgroup) {
  OomReport report;
  const bool v1 = fs::exists(cgroup / "memory.limit_in_bytes");
  const char* const directory = cgroup.c_str();
  limit::read_cgroup_number(directory, v1 ? "/memory.usage_in_bytes" : "/memory.current",
                            report.usage_bytes);
  limit::read_cgroup_number(directory, v1 ? "/memory.limit_in_bytes" : "/memory.max",
                            report.limit_bytes);
  StatisticsReader statistics;
  std::ifstream lines{cgroup / "memory.stat"};
  for (std::string line; std::getline(lines, line);) statistics.read(line);
  report.statistics = statistics.found();
  std::uint64_t kernel = 0;
  if (v1 && limit::read_cgroup_number(directory, "/memory.kmem.usage_in_bytes", kernel))
    report.statistics.kernel = kernel;
  for (const pid_t pid : all_processes_in(cgroup)) report.processes.push_back(process_of(pid));
  return report;
}

std::uint64_t helper_of(const session::View& view) {
  const std::int32_t helper = view.header().helper_pid;
  return helper > 0 ? static_cast<std::uint64_t>(helper) : 0;
}

std::set<std::uint64_t> with_recorder(const OomReport& report, std::set<std::uint64_t> recorded) {
  for (const ReportedProcess& process : report.processes)
    if (!recorded.contains(process.pid) && has_recorder(process.pid)) recorded.insert(process.pid);
  return recorded;
}

session::CgroupAccount remaining_account(const session::View& view, const fs::path& directory,
                                         const ResidentMemory* at_kill) {
  ReportedProcess own;
  own.pid = own.thread = static_cast<std::uint64_t>(view.header().pid);
  own.rss_bytes = own.anonymous_bytes = view.header().health.rss_bytes;
  session::CgroupAccount unknown{};
  if (at_kill != nullptr) {
    static_cast<ResidentMemory&>(own) = *at_kill;
    set_own(unknown, own, {});
    unknown.source = static_cast<std::uint32_t>(AccountSource::kill_line);
  }
  const limit::CgroupDirectories cgroup = limiting_cgroup(directory);
  if (cgroup.limiting[0] == '\0') return unknown;
  OomReport report = report_of_cgroup(cgroup.limiting);
  if (report.limit_bytes == 0 || report.limit_bytes == session::kUnlimited) return unknown;
  // Its own memory is free again.
  std::erase_if(report.processes, [&](const ReportedProcess& process) {
    return OwnProcess{own.pid, helper_of(view)}.is(process.pid);
  });
  report.processes.push_back(own);
  report.statistics.anonymous += own.anonymous_bytes;
  report.usage_bytes = std::min(report.limit_bytes, report.usage_bytes + own.rss_bytes);
  session::CgroupAccount account =
      account_of(report, {own.pid, helper_of(view), view.header().off_reason == 0},
                 with_recorder(report, recorded_pids(view)));
  account.source = static_cast<std::uint32_t>(at_kill != nullptr ? AccountSource::kill_line
                                                                 : AccountSource::memory_stat);
  return account;
}

}  // namespace oomrec::tools::deaths
