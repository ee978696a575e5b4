#include "tools/deaths/kernel_kills.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "common/system/text.h"

namespace oomrec::tools::deaths {
namespace {

using session::KernelLine;

constexpr std::uint64_t kOneKillNs = 5'000'000'000;  // lines about one kill are not further apart
constexpr std::size_t kNameBytes = 15;               // of a task; longer names are cut

// The text between `before` and the last `after`.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  const std::size_t from = text.find(before);
  if (from == text.npos) return std::nullopt;
  text.remove_prefix(from + before.size());
  const std::size_t to = text.rfind(after);
  if (to == text.npos) return std::nullopt;
  return text.substr(0, to);
}

std::uint64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == text.npos ? 0 : system::number_in(text.substr(at + word.size()));
}

// What the kernel logs before it names the victim.
struct Announcement {
  std::uint64_t realtime_ns = 0;
  std::uint64_t pid = 0;  // 0: the next one that it names
  KernelLine kind = KernelLine::none;
  std::string limited_cgroup, cgroup;
};

// Reads the lines that one thread of the kernel has logged; all of them if it does not name them.
class Reader {
 public:
  explicit Reader(std::vector<KernelKill>& found) : kills_(found) {}

  void read(const LogRecord& record) {
    const std::string_view text = record.text;
    report_.read(text);
    if (text.starts_with("oom-kill:constraint=")) {
      read_summary(record);
    } else if (text.starts_with("Tasks in ")) {
      read_group(record);
    } else if (text.starts_with("Task in ")) {
      read_old_cgroups(record);
    } else if (text.find("Killed process ") != text.npos) {
      read_kill(record);
    } else if (text.find(": Kill process ") != text.npos) {
      // Until 4.20, the line before "Killed process". The kernel may then kill a child of this
      // process instead.
      announce(record, 0, kind_of(text));
    } else if (text.starts_with("oom_reaper: reaped process ")) {
      read_reaped(record);
    } else if (text.ends_with("Manual OOM execution")) {
      is_requested_ = true;
    } else if (text.find(" invoked oom-killer: ") != text.npos) {
      is_group_ = false;
      invocation_ = invocation_of(text);
      is_requested_ = false;
    }
  }

 private:
  static KernelLine kind_of(std::string_view text) {
    if (text.starts_with("Memory cgroup out of memory")) return KernelLine::cgroup;
    return text.starts_with("Out of memory") ? KernelLine::system : KernelLine::none;
  }

  // "x invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0": no allocation asks with such a
  // mask, and with order=-1 only SysRq; none: an allocation of the machine's or of a cgroup's.
  KernelLine invocation_of(std::string_view text) const {
    if (is_requested_ || text.find(" order=-1,") != text.npos) return KernelLine::sysrq;
    const bool is_fault =
        text.find("gfp_mask=0x0,") != text.npos || text.find("gfp_mask=0x0(") != text.npos;
    return is_fault ? KernelLine::page_fault : KernelLine::none;
  }

  static KernelLine constraint_of(std::string_view text) {
    constexpr std::pair<std::string_view, KernelLine> kConstraints[] = {
        {"CONSTRAINT_MEMCG", KernelLine::cgroup},
        {"CONSTRAINT_CPUSET", KernelLine::cpuset},
        {"CONSTRAINT_MEMORY_POLICY", KernelLine::policy},
    };
    for (const auto& [name, kind] : kConstraints)
      if (text.find(name) != text.npos) return kind;
    return KernelLine::system;
  }

  // In RHEL 7.8 and 7.9 the user's id follows the name: "(java), UID 1000, total-vm:…".
  static std::string name_of_victim(std::string_view victim) {
    const auto name = between(victim.substr(0, victim.find("total-vm:")), "(", ")");
    return std::string{name.value_or("")};
  }

  bool is_old(const LogRecord& record) const {
    return announced_.realtime_ns + kOneKillNs < record.realtime_ns;
  }

  // A second line about the same kill adds to the first.
  void announce(const LogRecord& record, std::uint64_t pid, KernelLine kind) {
    if (is_old(record)) announced_ = {};
    announced_.realtime_ns = record.realtime_ns;
    announced_.pid = pid;
    announced_.kind = kind;
  }

  // "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/x,
  // task_memcg=/x/y,task=python,pid=123,uid=0", since 4.19.
  void read_summary(const LogRecord& record) {
    const std::string_view text = record.text;
    announced_ = {};
    const std::size_t pid = text.rfind(",pid=");
    if (pid == text.npos) return;
    announce(record, system::number_in(text.substr(pid + 5)), constraint_of(text));
    announced_.limited_cgroup = between(text, "oom_memcg=", ",task_memcg=").value_or("");
    announced_.cgroup = between(text, "task_memcg=", ",task=").value_or("");
  }

  // "Tasks in /x are going to be killed due to memory.oom.group set"
  void read_group(const LogRecord& record) {
    const auto cgroup = between(record.text, "Tasks in ", " are going to be killed");
    if (!cgroup) return;
    announced_ = {};
    announce(record, 0, KernelLine::cgroup);
    announced_.limited_cgroup = *cgroup;
    is_group_ = true;
  }

  // "Task in /x/y killed as a result of limit of /x", until 4.18.
  void read_old_cgroups(const LogRecord& record) {
    constexpr std::string_view kLimit = " killed as a result of limit of ";
    const std::string_view text = record.text;
    const auto cgroup = between(text, "Task in ", kLimit);
    if (!cgroup) return;
    announced_ = {};
    announce(record, 0, KernelLine::cgroup);
    announced_.cgroup = *cgroup;
    announced_.limited_cgroup = text.substr(text.rfind(kLimit) + kLimit.size());
  }

  // "Memory cgroup out of memory: Killed process 123 (python) total-vm:…kB, anon-rss:…kB, …", until
  // 4.20 without the part before the colon; in the oldest "Killed process 123, UID 48, (httpd)".
  void read_kill(const LogRecord& record) {
    const std::string_view text = record.text;
    const std::string_view victim = text.substr(text.find("Killed process "));
    KernelKill kill;
    kill.realtime_ns = record.realtime_ns;
    kill.pid = number_after(victim, "Killed process ");
    kill.name = name_of_victim(victim);
    kill.kind = kind_of(text);
    kill.line = text;
    kill.resident.anonymous_bytes = number_after(text, "anon-rss:") * 1024;
    kill.resident.file_bytes = number_after(text, "file-rss:") * 1024;
    kill.resident.shared_bytes = number_after(text, "shmem-rss:") * 1024;
    kill.resident.rss_bytes =
        kill.resident.anonymous_bytes + kill.resident.file_bytes + kill.resident.shared_bytes;
    const bool is_announced = announced_.pid == 0 || announced_.pid == kill.pid;
    if (!is_old(record) && is_announced) {
      if (announced_.kind != KernelLine::none) kill.kind = announced_.kind;
      kill.limited_cgroup = announced_.limited_cgroup;
      kill.cgroup = announced_.cgroup;
    }
    if (kill.kind == KernelLine::system && invocation_ != KernelLine::none) kill.kind = invocation_;
    add_report(kill);
    kills_.push_back(std::move(kill));
  }

  // The report before the kill's line belongs to it, and to those killed with it. The kernel leaves
  // it out if it kills often.
  void add_report(KernelKill& kill) {
    const bool is_group = last_report_ != nullptr && is_group_;
    if (!is_group) {
      OomReport report = report_.take(kill.pid, kill.resident.rss_bytes);
      if (report.usage_bytes == 0 || report.is_mixed) return;
      last_report_ = std::make_shared<const OomReport>(std::move(report));
    }
    const ReportedProcess* const killed = last_report_->process(kill.pid);
    if (killed != nullptr) {
      kill.process = killed->pid;
      kill.report = last_report_;
    }
  }

  // "oom_reaper: reaped process 123 (python), now anon-rss:0kB, …". Needed only if the kill line
  // is missing.
  void read_reaped(const LogRecord& record) {
    KernelKill kill;
    kill.realtime_ns = record.realtime_ns;
    kill.pid = number_after(record.text, "reaped process ");
    kill.name = between(record.text, "(", "), ").value_or("");
    kill.line = record.text;
    const bool is_known = std::ranges::any_of(kills_, [&](const KernelKill& earlier) {
      return earlier.pid == kill.pid && earlier.name == kill.name;
    });
    if (!is_known) kills_.push_back(std::move(kill));
  }

  std::vector<KernelKill>& kills_;
  Announcement announced_;
  OomReportReader report_;
  std::shared_ptr<const OomReport> last_report_;
  KernelLine invocation_ = KernelLine::none;
  bool is_requested_ = false;  // the next invocation, by SysRq
  bool is_group_ = false;      // the kernel kills all processes of a cgroup
};

bool matches_cgroup(const KernelKill& kill, const KillQuery& query) {
  if (!kill.cgroup.empty()) return is_same_cgroup(kill.cgroup, query.cgroup);
  // All processes of the cgroup at its limit were killed together.
  return kill.limited_cgroup.size() > 1 && (query.cgroup == kill.limited_cgroup ||
                                            query.cgroup.starts_with(kill.limited_cgroup + '/'));
}

bool matches_size(const KernelKill& kill, const KillQuery& query) {
  constexpr std::uint64_t kSlackBytes = std::uint64_t{64} << 20;
  const std::uint64_t resident = kill.resident.rss_bytes;
  if (resident == 0 || query.rss_bytes == 0) return false;
  const std::uint64_t most = std::max(query.rss_bytes, query.most_bytes);
  return resident + kSlackBytes >= query.rss_bytes && resident <= most + most / 4 + kSlackBytes;
}

bool matches_time(const KernelKill& kill, const KillQuery& query) {
  return query.from_realtime_ns <= kill.realtime_ns && kill.realtime_ns <= query.to_realtime_ns;
}

// Soon after its last sign of life, of which a recorded process gives ten a second. Only the time
// tells it from others of its name and size that were killed in its cgroup.
bool matches_end(const KernelKill& kill, const KillQuery& query) {
  constexpr std::uint64_t kLongestSilenceNs = 10'000'000'000;
  return kill.realtime_ns <= query.from_realtime_ns + 2 * query.clock_error_ns + kLongestSilenceNs;
}

bool matches_pid(const KernelKill& kill, const KillQuery& query) {
  if (kill.pid == query.pid || (query.helper_pid != 0 && kill.pid == query.helper_pid)) return true;
  if (kill.process != 0) return kill.process == query.pid;
  return std::ranges::find(query.threads, kill.pid) != query.threads.end();
}

bool matches(const KernelKill& kill, const KillQuery& query) {
  if (!matches_time(kill, query)) return false;
  if (matches_pid(kill, query)) return is_named(query, kill.name) || matches_cgroup(kill, query);
  return !query.same_pid_namespace && matches_cgroup(kill, query) && is_named(query, kill.name) &&
         matches_size(kill, query) && matches_end(kill, query);
}

}  // namespace

bool is_same_cgroup(std::string_view path, std::string_view other) {
  if (path.size() <= 1 || other.size() <= 1) return false;
  return path.size() < other.size() ? other.ends_with(path) : path.ends_with(other);
}

std::vector<KernelKill> kills_in(const KernelLog& log) {
  std::vector<KernelKill> kills;
  std::map<std::string_view, Reader> readers;  // reports of several callers interleave
  for (const LogRecord& record : log.records)
    readers.try_emplace(record.caller, kills).first->second.read(record);
  return kills;
}

bool is_named(const KillQuery& query, std::string_view logged) {
  return std::ranges::any_of(query.names, [&](const std::string& name) {
    return name.substr(0, kNameBytes) == logged.substr(0, kNameBytes);
  });
}

const KernelKill* kill_of(const std::vector<KernelKill>& kills, const KillQuery& query) {
  const auto found = std::find_if(kills.rbegin(), kills.rend(),
                                  [&](const KernelKill& kill) { return matches(kill, query); });
  return found == kills.rend() ? nullptr : &*found;
}

bool is_by_pid(const KernelKill& kill, const KillQuery& query) {
  return query.same_pid_namespace && matches_pid(kill, query);
}

bool only_others_killed(const std::vector<KernelKill>& kills, const KillQuery& query) {
  bool others = false;
  for (const KernelKill& kill : kills) {
    if (!matches_time(kill, query)) continue;
    if (matches_pid(kill, query)) return false;
    others |=
        kill.cgroup.empty() || query.cgroup.empty() || is_same_cgroup(kill.cgroup, query.cgroup);
  }
  return others;
}

namespace {

// arch/x86/mm/fault.c: "python3[4711]: segfault at 10 ip …", with "traps: " before the others of
// arch/x86/kernel/traps.c: "traps: python3[4711] trap divide error ip:…".
struct Form {
  std::string_view words;  // behind "NAME[PID]"
  int signal;
};
constexpr Form kForms[] = {
    {": segfault at ", SIGSEGV},
    {" general protection", SIGSEGV},
    {" trap divide error", SIGFPE},
    {" trap invalid opcode", SIGILL},
    {" trap int3", SIGTRAP},
    {" trap stack segment", SIGBUS},
    {" trap alignment check", SIGBUS},
    {" trap bounds", SIGSEGV},
    {" trap coprocessor error", SIGFPE},
    {" trap simd exception", SIGFPE},
};

struct Task {
  std::string_view name, behind;  // behind "NAME[PID]"
  std::uint64_t pid = 0;
};

// A name may contain brackets: the last "[PID]" before the words counts.
std::optional<Task> task_in(std::string_view text, std::string_view words) {
  const std::size_t close = text.find(words);
  if (close == text.npos || close == 0 || text[close - 1] != ']') return std::nullopt;
  const std::size_t open = text.rfind('[', close);
  if (open == text.npos) return std::nullopt;
  Task task{text.substr(0, open), text.substr(close), 0};
  const auto [end, error] =
      std::from_chars(text.data() + open + 1, text.data() + close - 1, task.pid);
  return error == std::errc{} && end == text.data() + close - 1 ? std::optional{task}
                                                                : std::nullopt;
}

std::optional<KernelFault> fault_in(const LogRecord& record, const KillQuery& query) {
  constexpr std::string_view kTraps = "traps: ";
  std::string_view text = record.text;
  if (text.starts_with(kTraps)) text.remove_prefix(kTraps.size());
  for (const Form& form : kForms) {
    const std::optional<Task> task = task_in(text, form.words);
    if (!task) continue;
    const bool is_own = task->pid == query.pid ||
                        std::ranges::find(query.threads, task->pid) != query.threads.end();
    if (is_own && is_named(query, task->name))
      return KernelFault{form.signal, record.realtime_ns, record.text};
  }
  return std::nullopt;
}

}  // namespace

std::optional<KernelFault> fault_of(const KernelLog& log, const KillQuery& query) {
  if (!query.same_pid_namespace) return std::nullopt;
  for (auto record = log.records.rbegin(); record != log.records.rend(); ++record) {
    const bool in_time = record->realtime_ns >= query.from_realtime_ns &&
                         record->realtime_ns <= query.to_realtime_ns;
    if (!in_time || record->sender != "kernel") continue;
    if (auto fault = fault_in(*record, query)) return fault;
  }
  return std::nullopt;
}

}  // namespace oomrec::tools::deaths
