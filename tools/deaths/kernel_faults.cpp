#include "tools/deaths/kernel_faults.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string_view>

namespace oomrec::tools::deaths {
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
    const bool is_own =
        task->pid == query.pid ||
        std::find(query.threads.begin(), query.threads.end(), task->pid) != query.threads.end();
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
