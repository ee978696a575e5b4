#include "tools/deaths/user_killers.h"

#include <array>
#include <charconv>
#include <string_view>

#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {
namespace {

using session::UserKiller;

constexpr std::array<const char*, 4> kSystemLogFiles = {"/dev/kmsg", "/var/log/syslog",
                                                        "/var/log/messages", "/var/log/daemon.log"};

// Moves `text` behind the first `mark`. False: it has none.
bool skip_past(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return false;
  text.remove_prefix(at + mark.size());
  return true;
}

bool is_pid(std::string_view text, const KillQuery& query) {
  std::uint64_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc{} && pid == query.pid && query.same_pid_namespace;
}

// `sending SIGTERM to process 1234 uid 1000 "train": oom_score 805, VmRSS 1024 MiB, …`, in Debian
// 10 `killing process 1234 "train" with signal 15: badness 566, VmRSS 1024 MiB`
bool is_by_earlyoom(std::string_view text, const KillQuery& query) {
  const bool is_kill = (skip_past(text, "sending SIG") && skip_past(text, " to process ")) ||
                       skip_past(text, "killing process ");
  if (!is_kill) return false;
  if (!is_pid(text, query) || !skip_past(text, "\"")) return false;
  return is_named(query, text.substr(0, text.find('"')));
}

// Whether its cgroup is the one at `path`, or below it.
bool is_below(std::string_view path, const KillQuery& query) {
  const std::string_view own = query.cgroup;
  return path.size() > 1 && own.starts_with(path) &&
         (own.size() == path.size() || own[path.size()] == '/');
}

// `Killed /system.slice/job.service due to memory pressure for …`, also `… due to memory used …`;
// since systemd 258 `Marked /system.slice/job.service for killing due to memory …`
bool is_by_oomd(std::string_view text, const KillQuery& query) {
  if (!text.starts_with("Killed /") && !text.starts_with("Marked /")) return false;
  skip_past(text, " ");
  const std::string_view path = text.substr(0, text.find(" due to memory "));
  return path.size() != text.size() && is_below(path.substr(0, path.find(" for killing")), query);
}

// `[talos] Sending SIGKILL to cgroup {…, "cgroup": "/sys/fs/cgroup/kubepods/burstable/pod…"}`
bool is_by_talos(std::string_view text, const KillQuery& query) {
  return skip_past(text, "Sending SIGKILL to cgroup ") &&
         skip_past(text, "\"cgroup\": \"/sys/fs/cgroup") &&
         is_below(text.substr(0, text.find('"')), query);
}

// Meta's oomd, which writes to /dev/kmsg itself: `oomd kill: 9.72 6.17 1.32
// system.slice/job.service 123456 ruleset:[…] detectorgroup:[…]
// killer:kill_by_memory_size_or_growth v2`, with `killer:(dry)kill_by_…` if it only says so.
// kill_by_pressure and kill_by_io_cost may be about I/O.
bool is_by_metas_oomd(std::string_view text, const KillQuery& query) {
  if (!text.starts_with("oomd kill: ")) return false;
  const bool is_for_memory = text.find(" killer:kill_by_memory_size_or_growth ") != text.npos ||
                             text.find(" killer:kill_by_swap_usage ") != text.npos ||
                             text.find(" killer:kill_by_pg_scan ") != text.npos;
  for (int figures = 0; figures < 5; ++figures) skip_past(text, " ");
  return is_for_memory && is_below("/" + std::string{text.substr(0, text.find(' '))}, query);
}

// `Kill 'com.example.feed' (5720), uid 10123, oom_score_adj 900 to free 54321kB rss, …`
bool is_by_lmkd(std::string_view text, const KillQuery& query) {
  if (!text.starts_with("Kill '")) return false;
  skip_past(text, "'");
  const std::string_view name = text.substr(0, text.find("' ("));
  return skip_past(text, "' (") && is_pid(text, query) && is_named(query, name);
}

// `  Sending SIGTERM to the victim`
bool is_by_nohang(std::string_view text, const KillQuery&) {
  return skip_past(text, "Sending SIG") && text.ends_with(" to the victim");
}

// nohang names its victim some lines before: `  PID: 27275, Name: Web Content, badness: 121`.
// Nothing: another line.
std::optional<bool> is_nohang_victim(const LogRecord& record, const KillQuery& query) {
  std::string_view text = record.text;
  if (record.sender != "nohang" || !skip_past(text, "PID: ")) return std::nullopt;
  const bool is_same = is_pid(text, query);
  return skip_past(text, "ame: ") && is_same &&
         is_named(query, text.substr(0, text.find(", badness: ")));
}

// systemd itself: `job.service: systemd-oomd killed 2 process(es) in this unit.`
bool is_of_unit(std::string_view text, const KillQuery& query) {
  const std::size_t end = text.find(": systemd-oomd killed ");
  if (end == text.npos || end == 0) return false;
  const std::string unit = "/" + std::string{text.substr(0, end)};
  const std::size_t at = query.cgroup.find(unit);
  if (at == query.cgroup.npos) return false;
  const std::size_t behind = at + unit.size();
  return behind == query.cgroup.size() || query.cgroup[behind] == '/';
}

// `eviction_manager.go:595] "Eviction manager: pod is evicted successfully" pod="default/train-0"`,
// before 1.21 `… eviction manager: pod train-0_default(89c1…) is evicted successfully`. Logged when
// the pod has ended.
bool is_evicted_pod(std::string_view text, const KillQuery& query) {
  if (query.host.empty() || !skip_past(text, "viction manager: pod ")) return false;
  if (text.starts_with("is evicted successfully\""))
    return skip_past(text, " pod=\"") && skip_past(text, "/") &&
           text.substr(0, text.find('"')) == query.host;
  return text.find(" is evicted successfully") != text.npos &&
         text.substr(0, text.find('_')) == query.host;
}

// `"Eviction manager: attempting to reclaim" resourceName="memory"`, before 1.21
// `eviction manager: attempting to reclaim memory`. Nothing: another line.
std::optional<bool> is_memory_reclaimed(std::string_view text) {
  if (!skip_past(text, "viction manager: attempting to reclaim")) return std::nullopt;
  return text.find("memory") != text.npos;
}

struct Daemon {
  std::string_view sender;
  UserKiller killer;
  bool (*is_kill)(std::string_view text, const KillQuery& query);
};
constexpr Daemon kDaemons[] = {
    {"earlyoom", UserKiller::earlyoom, is_by_earlyoom},
    {"systemd-oomd", UserKiller::systemd_oomd, is_by_oomd},
    {"systemd", UserKiller::systemd_oomd, is_of_unit},
    {"", UserKiller::oomd, is_by_metas_oomd},
    {"kubelet", UserKiller::kubelet, is_evicted_pod},
    {"k3s", UserKiller::kubelet, is_evicted_pod},
    {"lowmemorykiller", UserKiller::lmkd, is_by_lmkd},
    {"lmkd", UserKiller::lmkd, is_by_lmkd},
    {"nohang", UserKiller::nohang, is_by_nohang},
    {"talos", UserKiller::talos, is_by_talos},
};

void append(std::vector<LogRecord>& records, std::vector<LogRecord> more) {
  records.insert(records.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

std::string line_of(const LogRecord& record) {
  return record.sender.empty() ? record.text : record.sender + ": " + record.text;
}

}  // namespace

std::optional<UserKill> user_kill_of(const std::vector<LogRecord>& log, const KillQuery& query) {
  std::optional<UserKill> found;
  // At this place of the log: what the kubelet does, and to whom nohang does something.
  bool is_for_memory = false, is_victim = false;
  for (const LogRecord& record : log) {
    is_for_memory = is_memory_reclaimed(record.text).value_or(is_for_memory);
    is_victim = is_nohang_victim(record, query).value_or(is_victim);
    if (record.realtime_ns < query.from_realtime_ns || record.realtime_ns > query.to_realtime_ns)
      continue;
    for (const Daemon& daemon : kDaemons) {
      if (record.sender != daemon.sender || !daemon.is_kill(record.text, query)) continue;
      if (daemon.killer == UserKiller::kubelet && !is_for_memory) continue;
      if (daemon.killer == UserKiller::nohang && !is_victim) continue;
      if (!found || found->realtime_ns <= record.realtime_ns)
        found = UserKill{daemon.killer, record.realtime_ns, line_of(record)};
    }
  }
  return found;
}

std::vector<LogRecord> read_daemon_log(const LogClock& clock, std::uint64_t from_realtime_ns,
                                       const KernelLogFile& file) {
  if (const std::optional<std::string> named = named_kernel_log(file))
    return parse_log(log_file_text(named->c_str(), from_realtime_ns), clock);
  std::vector<LogRecord> records;
  for (const char* const path : kSystemLogFiles)
    append(records, parse_log(log_file_text(path, from_realtime_ns), clock));
  append(records, parse_log(daemon_journal_text(from_realtime_ns), clock));
  return records;
}

}  // namespace oomrec::tools::deaths
