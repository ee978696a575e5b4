#include "tools/processes/attach/sandbox.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/machine/platform.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/tracee.h"

namespace oomrec::tools::processes {
namespace {

// What the attach and the recorder call in a process, until and with a bundle (strace -f of a
// program that loads the library and calls oomrec_attach).
constexpr std::pair<std::uint32_t, std::string_view> kCalls[] = {
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_mprotect, "mprotect"},
    {SYS_mremap, "mremap"},
    {SYS_madvise, "madvise"},
    {SYS_msync, "msync"},
    {SYS_mlock, "mlock"},
    {SYS_brk, "brk"},
    {SYS_openat, "openat"},
    {SYS_read, "read"},
    {SYS_pread64, "pread64"},
    {SYS_write, "write"},
    {SYS_lseek, "lseek"},
    {SYS_close, "close"},
    {SYS_fstat, "fstat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_getdents64, "getdents64"},
    {SYS_getcwd, "getcwd"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_ioctl, "ioctl"},
    {SYS_futex, "futex"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_clock_gettime, "clock_gettime"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_getrandom, "getrandom"},
    {SYS_getpid, "getpid"},
    {SYS_gettid, "gettid"},
    {SYS_getppid, "getppid"},
    {SYS_geteuid, "geteuid"},
    {SYS_uname, "uname"},
    {SYS_sysinfo, "sysinfo"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_prctl, "prctl"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_rt_sigaction, "rt_sigaction"},
    {SYS_rt_sigprocmask, "rt_sigprocmask"},
    {SYS_sigaltstack, "sigaltstack"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_clone, "clone"},
    {SYS_wait4, "wait4"},
    {SYS_exit_group, "exit_group"},
};

constexpr __ptrace_request kGetFilter = static_cast<__ptrace_request>(0x420c);
constexpr unsigned kMostSteps = 100'000;

bool is_harmless(std::uint32_t result) {
  const std::uint32_t action = result & SECCOMP_RET_ACTION_FULL;
  return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_ERRNO;
}

// --- Follows a filter ----------------------------------------------------------------------------

using Value = std::optional<std::uint32_t>;  // nullopt: not known

struct Machine {
  std::size_t at = 0;
  Value a = 0, x = 0;
  std::array<Value, BPF_MEMWORDS> memory{};
};

Value data_at(std::uint32_t offset, std::uint32_t call) {
  if (offset == offsetof(seccomp_data, nr)) return call;
  if (offset == offsetof(seccomp_data, arch)) return machine::kAuditArchitecture;
  return std::nullopt;
}

Value computed(std::uint16_t operation, Value left, Value right) {
  if (BPF_OP(operation) == BPF_NEG) return left ? Value{0 - *left} : left;
  if (BPF_OP(operation) == BPF_AND && ((left && *left == 0) || (right && *right == 0))) return 0;
  if (!left || !right) return std::nullopt;
  switch (BPF_OP(operation)) {
    case BPF_ADD:
      return *left + *right;
    case BPF_SUB:
      return *left - *right;
    case BPF_MUL:
      return *left * *right;
    case BPF_AND:
      return *left & *right;
    case BPF_OR:
      return *left | *right;
    case BPF_XOR:
      return *left ^ *right;
    case BPF_LSH:
      return *right < 32 ? *left << *right : 0;
    case BPF_RSH:
      return *right < 32 ? *left >> *right : 0;
    default:
      return std::nullopt;
  }
}

// nullopt: either way.
std::optional<bool> jumps(std::uint16_t operation, Value left, Value right) {
  if (!left || !right) return std::nullopt;
  switch (BPF_OP(operation)) {
    case BPF_JEQ:
      return *left == *right;
    case BPF_JGT:
      return *left > *right;
    case BPF_JGE:
      return *left >= *right;
    case BPF_JSET:
      return (*left & *right) != 0;
    default:
      return std::nullopt;
  }
}

// What it returns; nullopt: it goes on, at `machine.at`, and, with an unknown condition, at
// `other`.
std::optional<Value> step(const sock_filter& one, std::uint32_t call, Machine& machine,
                          std::optional<std::size_t>& other) {
  const Value k = one.k;
  const Value operand = BPF_SRC(one.code) == BPF_X ? machine.x : k;
  ++machine.at;
  switch (BPF_CLASS(one.code)) {
    case BPF_RET:
      return BPF_RVAL(one.code) == BPF_A ? machine.a : k;
    case BPF_LD:
      if (BPF_MODE(one.code) == BPF_ABS) machine.a = data_at(one.k, call);
      if (BPF_MODE(one.code) == BPF_IMM) machine.a = k;
      if (BPF_MODE(one.code) == BPF_LEN) machine.a = sizeof(seccomp_data);
      if (BPF_MODE(one.code) == BPF_MEM) machine.a = machine.memory[one.k % BPF_MEMWORDS];
      break;
    case BPF_LDX:
      if (BPF_MODE(one.code) == BPF_IMM) machine.x = k;
      if (BPF_MODE(one.code) == BPF_LEN) machine.x = sizeof(seccomp_data);
      if (BPF_MODE(one.code) == BPF_MEM) machine.x = machine.memory[one.k % BPF_MEMWORDS];
      break;
    case BPF_ST:
      machine.memory[one.k % BPF_MEMWORDS] = machine.a;
      break;
    case BPF_STX:
      machine.memory[one.k % BPF_MEMWORDS] = machine.x;
      break;
    case BPF_ALU:
      machine.a = computed(one.code, machine.a, operand);
      break;
    case BPF_MISC:
      if (BPF_MISCOP(one.code) == BPF_TAX)
        machine.x = machine.a;
      else
        machine.a = machine.x;
      break;
    case BPF_JMP:
      if (BPF_OP(one.code) == BPF_JA) {
        machine.at += one.k;
      } else if (const auto taken = jumps(one.code, machine.a, operand)) {
        machine.at += *taken ? one.jt : one.jf;
      } else {
        other = machine.at + one.jf;
        machine.at += one.jt;
      }
      break;
  }
  return std::nullopt;
}

// --- Of a process --------------------------------------------------------------------------------

unsigned filters_of(pid_t pid) {
  return parse_number<unsigned>(status_field(pid, "Seccomp_filters")).value_or(0);
}

// Reads the filters of a stopped thread, the newest first. False: they may not be read, which needs
// CAP_SYS_ADMIN and a command without a filter.
bool read_filters(pid_t thread, std::vector<std::vector<sock_filter>>& filters) {
  for (unsigned long number = 0;; ++number) {
    errno = 0;
    const long count = ptrace(kGetFilter, thread, number, nullptr);
    if (count < 0) return errno == ENOENT;
    std::vector<sock_filter> filter(static_cast<std::size_t>(count));
    if (ptrace(kGetFilter, thread, number, filter.data()) != count) return false;
    filters.push_back(std::move(filter));
  }
}

std::optional<std::vector<std::vector<sock_filter>>> filters_of_thread(pid_t thread) {
  Tracee tracee{thread};
  std::vector<std::vector<sock_filter>> filters;
  if (tracee.seize() != 0) return std::nullopt;
  StopResult stopped = StopResult::busy;
  for (int tries = 0; tries < 10 && stopped == StopResult::busy; ++tries) stopped = tracee.stop();
  if (stopped == StopResult::ended) return filters;
  if (stopped != StopResult::stopped || !read_filters(thread, filters)) return std::nullopt;
  return filters;
}

using Calls = std::span<const std::pair<std::uint32_t, std::string_view>>;

void require_harmless(const std::vector<sock_filter>& filter, Calls calls, pid_t pid) {
  for (const auto& [number, name] : calls)
    if (may_punish(filter, number))
      throw refusal(fmt::format("process {} is in a sandbox (seccomp), which would not let the "
                                "recorder call {}, but kill or signal it",
                                pid, name),
                    kStartRecorded);
}

}  // namespace

bool may_punish(std::span<const sock_filter> filter, std::uint32_t call) {
  std::vector<Machine> open(1);
  for (unsigned steps = 0; !open.empty(); ++steps) {
    Machine machine = open.back();
    open.pop_back();
    if (steps == kMostSteps || machine.at >= filter.size()) return true;
    std::optional<std::size_t> other;
    if (const auto result = step(filter[machine.at], call, machine, other)) {
      if (!*result || !is_harmless(**result)) return true;
      continue;
    }
    open.push_back(machine);
    if (other) {
      machine.at = *other;
      open.push_back(machine);
    }
  }
  return false;
}

void require_harmless_filters(pid_t pid) {
  for (const pid_t thread : threads_of(pid)) {
    const std::string mode = status_field(thread, "Seccomp");
    if (mode == "1")
      throw refusal(fmt::format("process {} has put itself into a sandbox (seccomp, strict mode), "
                                "which would kill it for the recorder's system calls",
                                pid),
                    kStartRecorded);
    if (mode != "2" || filters_of(thread) <= filters_of(getpid())) continue;
    const auto filters = filters_of_thread(thread);
    if (!filters)
      throw refusal(
          fmt::format("process {} is in a sandbox (seccomp), which may kill it for the recorder's "
                      "system calls; what it forbids cannot be read",
                      pid),
          fmt::format("As root, outside of any container: sudo oomrec attach {}", pid));
    for (const Calls calls : {Calls{kCalls}, Calls{machine::kPathCalls}})
      for (const std::vector<sock_filter>& filter : *filters) require_harmless(filter, calls, pid);
  }
}

}  // namespace oomrec::tools::processes
